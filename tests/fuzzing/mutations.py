"""Inputs without end: mutations of valid messages, of their bytes and of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from tests.fuzzing.spans import Span

LONGEST = 8192
"""Bytes of the longest input: twice the limit of a request."""

DRIFT = 64
"""Earlier mutations kept, to be mutated further."""

_BYTES = [bytes([byte]) for byte in range(256)]

_NUMBERS = [
    number.to_bytes(width, order, signed=True)
    for width in (2, 4, 8)
    for order in ("big", "little")
    for number in (0, 1, -1, 63, 64, 65, 127, 128, 255, 256, 32767, -32768, 1000, 1001)
]


class Mutations:
    """Mutates *seeds*, at random but repeatably; *parts* are put in the place of their values.

    *spans* tells where the values of a message are.
    """

    def __init__(
        self,
        random: Random,
        seeds: Sequence[bytes],
        parts: Sequence[bytes],
        spans: Callable[[bytes], list[Span]],
    ) -> None:
        self._random = random.random
        self._randbytes = random.randbytes
        self._spans = spans
        self._seeds = [(seed, spans(seed)) for seed in seeds]
        # Long ones take long, so they come up less often.
        short = [seed for seed in self._seeds if len(seed[0]) <= 256]
        self._often = short or self._seeds
        self._drift = [self._often[place % len(self._often)] for place in range(DRIFT)]
        self._parts = [*parts]
        self._changes: list[Callable[[bytes], bytes]] = [
            self._flip,
            self._set,
            self._insert,
            self._drop,
            self._cut,
            self._number,
            self._repeat,
            self._part,
            self._append,
            self._splice,
        ]

    def __iter__(self) -> Iterator[bytes]:
        random, changes, parts = self._random, self._changes, self._parts
        often, seeds, drift = self._often, self._seeds, self._drift
        many, fragments = len(changes), len(parts)
        while True:
            dice = random()
            if dice < 0.04:
                data, spans = seeds[int(random() * len(seeds))]
            elif dice < 0.3:
                data, spans = drift[int(random() * DRIFT)]
            else:
                data, spans = often[int(random() * len(often))]
            if spans and random() < 0.6:
                begin, end = spans[int(random() * len(spans))]
                data = data[:begin] + parts[int(random() * fragments)] + data[end:]
            else:
                data = changes[int(random() * many)](data)
                while random() < 0.25:
                    data = changes[int(random() * many)](data)
            if len(data) > LONGEST:
                data = data[:LONGEST]
            yield data
            if random() < 0.02:
                place = int(random() * DRIFT)
                # Back to a seed now and then, lest all drift into noise.
                if random() < 0.3 or len(data) > 256:
                    drift[place] = often[int(random() * len(often))]
                else:
                    drift[place] = data, self._spans(data)

    def _at(self, data: bytes) -> int:
        return int(self._random() * (len(data) + 1))

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        at = int(self._random() * len(data))
        return data[:at] + _BYTES[data[at] ^ 1 << int(self._random() * 8)] + data[at + 1 :]

    def _set(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + _BYTES[int(self._random() * 256)] + data[at + 1 :]

    def _insert(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + self._randbytes(1 + int(self._random() * 4)) + data[at:]

    def _drop(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + data[at + 1 + int(self._random() ** 2 * 8) :]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._at(data)]

    def _number(self, data: bytes) -> bytes:
        at, number = self._at(data), _NUMBERS[int(self._random() * len(_NUMBERS))]
        return data[:at] + number + data[at + len(number) :]

    def _repeat(self, data: bytes) -> bytes:
        begin, end = sorted((self._at(data), self._at(data)))
        return data[:begin] + data[begin:end] * int(2 + self._random() ** 4 * 30) + data[end:]

    def _part(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + self._parts[int(self._random() * len(self._parts))] + data[at:]

    def _append(self, data: bytes) -> bytes:
        return data + self._often[int(self._random() * len(self._often))][0]

    def _splice(self, data: bytes) -> bytes:
        other = self._drift[int(self._random() * DRIFT)][0]
        return data[: self._at(data)] + other[self._at(other) :]
