"""Calls that are broken off in their midst, as a signal handler's exception may do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Given = TypeVar("Given")


def profiled(call: Callable[[], Given], look: Callable[[FrameType, str, Any], None]) -> Given:
    """Return what *call* returns, with *look* as CPython's profiler meanwhile.

    The garbage collector pauses. In CPython 3.11.2 it reads objects that are freed already, on the
    stack of a generator that runs under a profiler (github.com/python/cpython/issues/101975).
    """
    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(look)
    try:
        return call()
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()


def come_between(call: Callable[[], Given], at: int, handler: Callable[[], object]) -> Given:
    """Call, with *handler* called at the *at*-th point where CPython looks for signals.

    Those are the begin of each function and the return of each that is written in C. Gives what
    *call* gives. The handler is not called when there are fewer points.
    """
    left = at

    def look(_: FrameType, event: str, __: object) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if not left:
                # Python does not call this function from within itself.
                handler()

    return profiled(call, look)


class Broken(Exception):
    """What comes in its midst."""


def break_off(call: Callable[[], object], at: int) -> Broken | None:
    """Call, broken off at the *at*-th of those points.

    Gives what broke it off, with its traceback; None when there were fewer points.
    """

    def handler() -> None:
        raise Broken

    try:
        come_between(call, at, handler)
    except Broken as broken:
        return broken
    return None
