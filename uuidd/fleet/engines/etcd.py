"""etcd as the engine, through its JSON gateway (``/v3``, etcd 3.4 and later).

etcd's own protocol is gRPC, whose library is large. In the gateway's JSON a key or value is base64,
a number of 64 bits is text, and a field that is false or zero is left out.
"""

from __future__ import annotations

import json
import socket
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

from uuidd.fleet.address import Address, host_and_port
from uuidd.fleet.engines import HOST_SECONDS, Away, Changed, Entry, one_line, tls_context

CONNECT_SECONDS = 0.7
"""For a TCP connection to one host."""

MAX_BYTES = 4 << 20
"""Of an answer; all 1,024 registers have some 350 kB."""


class _NotAsked(Away):
    """No host has got the question."""


class Etcd:
    """The keys at the hosts of *address*."""

    def __init__(self, address: Address, password: str) -> None:
        self._hosts = list(address.hosts)
        self._user, self._password = address.user, password
        self._http: Callable[..., HTTPConnection] = HTTPConnection
        if address.tls:
            self._http = partial(HTTPSConnection, context=tls_context(address))
        self._token = ""
        self._connection: HTTPConnection | None = None

    def get(self, key: str) -> Entry | None:
        """See ``Engine``."""
        return self._range({"key": _text(key)}, key).get(key)

    def list(self, prefix: str) -> Mapping[str, Entry]:
        """See ``Engine``."""
        # "0" is what follows "/".
        end = prefix.removesuffix("/") + "0"
        return self._range({"key": _text(prefix), "range_end": _text(end)}, prefix)

    def put(
        self, key: str, value: bytes, old: Entry | None, guard: tuple[str, bytes] | None
    ) -> None:
        """See ``Engine``."""
        compare = [] if guard is None else [_is_value(*guard)]
        if old is None:
            compare.append({"key": _text(key), "target": "VERSION", "version": "0"})
        else:
            revision = str(old.version)
            compare.append({"key": _text(key), "target": "MOD", "mod_revision": revision})
            compare.append(_is_value(key, old.value))
        body = {
            "compare": [{"result": "EQUAL", **each} for each in compare],
            "success": [{"request_put": {"key": _text(key), "value": _base64(value)}}],
        }
        answer = self._ask("kv/txn", body, repeat=False)
        refused = "succeeded" not in answer and "responses" not in answer
        if "header" not in answer or not (refused or answer.get("succeeded") is True):
            raise Away("its answer about a transaction is not etcd's")
        if refused:
            raise Changed

    def close(self) -> None:
        """See ``Engine``. A connection lasts for one question."""
        connection = self._connection
        with suppress(OSError, AttributeError):
            connection.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]

    def _range(self, body: dict[str, Any], where: str) -> dict[str, Entry]:
        answer = self._ask("kv/range", body, repeat=True)
        found = {}
        try:
            for each in answer.get("kvs", []):
                key = b64decode(each["key"], validate=True).decode()
                value = b64decode(each.get("value", ""), validate=True)
                found[key] = Entry(value, int(each["mod_revision"]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Away(f"its answer about {where} is not etcd's") from error
        return found

    def _ask(self, method: str, body: dict[str, Any], *, repeat: bool) -> dict[str, Any]:
        """Return a host's answer, and remember the host. Raises Away or HTTPException.

        Another host is asked if none has got the question, or if it can be put twice (*repeat*).
        """
        for left in reversed(range(len(self._hosts))):
            try:
                return self._ask_host(method, body)
            except (Away, HTTPException) as error:
                self._hosts.append(self._hosts.pop(0))
                if not (left and (repeat or isinstance(error, _NotAsked))):
                    raise
        raise AssertionError("there is a host")

    def _ask_host(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._password and not self._token:
            self._authenticate()
        status, answer = self._post(method, body)
        if status == 401 and self._password:
            # A token ends after some minutes; the question was not looked at.
            self._authenticate()
            status, answer = self._post(method, body)
        if status != 200:
            # After a change of etcd's users it refuses older tokens, and says so in several ways.
            self._token = ""
            raise Away(f"it answers {status}: {_message(answer)}")
        return answer

    def _authenticate(self) -> None:
        self._token = ""
        body = {"name": self._user, "password": self._password}
        status, answer = self._post("auth/authenticate", body)
        token = answer.get("token")
        if status != 200 or type(token) is not str or not (token.isascii() and token.isprintable()):
            raise Away(f"it refuses the user {self._user}: {_message(answer)}")
        self._token = token

    def _post(self, method: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        host, port = self._hosts[0]
        self._connection = connection = self._http(host, port, timeout=CONNECT_SECONDS)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise _NotAsked(f"cannot connect to {_told(host, port, error)}") from error
            connection.sock.settimeout(HOST_SECONDS)
            headers = {"Content-Type": "application/json"}
            if self._token:
                headers["Authorization"] = self._token
            connection.request("POST", f"/v3/{method}", json.dumps(body), headers)
            response = connection.getresponse()
            # One that never ends is ended by ``close``.
            data = response.read(MAX_BYTES + 1)
        except OSError as error:
            raise Away(f"no answer from {_told(host, port, error)}") from error
        finally:
            connection.close()
        if len(data) > MAX_BYTES:
            raise Away(f"its answer has more than {MAX_BYTES} bytes")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Away(f"its answer, with status {response.status}, is not etcd's")
        return response.status, answer


def _told(host: str, port: int, error: OSError) -> str:
    return f"{host_and_port(host, port)}: {one_line(error.strerror or error)}"


def _message(answer: dict[str, Any]) -> str:
    """Return why etcd refuses a question, as one line."""
    return one_line(answer.get("message") or answer.get("error") or "no reason")


def _is_value(key: str, value: bytes) -> dict[str, str]:
    return {"key": _text(key), "target": "VALUE", "value": _base64(value)}


def _text(key: str) -> str:
    return _base64(key.encode())


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
