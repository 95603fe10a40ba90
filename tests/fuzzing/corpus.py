"""Inputs that are kept: valid ones, those at an edge, and those that once broke something.

Each stands with what has to come of it. The fuzzer mutates them, so a new form of message belongs
here as well.
"""

from __future__ import annotations

from struct import pack

TAKE = b"\x94\x00\x07\xa4take\x93\xa3utc\xcd\x01\x2c\xc3"
ONE = b"\x94\x00\x01\xa4take\x92\xa3utc\x01"
STEADY = b"\x94\x00\x02\xa4take\x92\xa6steady\x64"
MAKE = b"\x94\x00\x03\xa4make\x92\xa2v7\x03"
STATUS = b"\x94\x00\xce\xff\xff\xff\xff\xa6status\x90"
NOTE = b"\x93\x02\xa4make\x91\xa2v4"
LONG_HEADS = b"\xdc\x00\x04\x00\x01\xd9\x04make\xdd\x00\x00\x00\x01\xc4\x01\x00"

DEEP = b"\x91" * 1000 + b"\xc0"
"""A thousand arrays within each other."""

Case = tuple[bytes, str]
"""An input, and its outcome."""

REQUESTS: list[Case] = [
    (TAKE, "ok"),
    (ONE, "ok"),
    (STEADY, "ok"),
    (MAKE, "ok"),
    (STATUS, "ok"),
    (NOTE, "ok"),
    # Longer heads than needed are MessagePack too.
    (LONG_HEADS, "ok"),
    (b"\xdd\x00\x00\x00\x04\xcf" + bytes(8) + b"\xce" + bytes(4) + b"\xa1x\xde\x00\x00", "ok"),
    # Pipelined.
    (TAKE + NOTE + STATUS + MAKE * 40, "ok"),
    # A request, and a part of the next.
    (TAKE + STATUS[:5], "ok"),
    (b"", "unfinished"),
    (TAKE[:9], "unfinished"),
    # What MessagePack never uses; what begins no array; another shape.
    (b"\xc1", "MalformedError"),
    (TAKE + b"\xc1", "MalformedError"),
    (b"\x00", "MalformedError"),
    (b"\x90", "MalformedError"),
    (b"\x94\xc3\x01\xa6status\x90", "MalformedError"),
    (b"\x94\x00\xc2\xa6status\x90", "MalformedError"),
    (b"\x93\x00\x01\xa6status", "MalformedError"),
    # A response to what was never asked.
    (b"\x94\x01\x01\xc0\xc0", "ok"),
    # A msgid below zero, and of more than 32 bits.
    (b"\x94\x00\xff\xa6status\x90", "ok"),
    (b"\x94\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x00\xa6status\x90", "ok"),
    # A method as bytes, as no text, and as text that is no UTF-8, or has a surrogate in it.
    (b"\x94\x00\x01\xc4\x04make\x91\xc4\x02v4", "ok"),
    (b"\x94\x00\x01\xc0\x90", "ok"),
    (b"\x94\x00\x01\xa1\xff\x90", "ok"),
    (b"\x94\x00\x01\xa3\xed\xa0\x80\x90", "ok"),
    # Params that are no array; a notification with odd ones.
    (b"\x94\x00\x01\xa4make\xc0", "ok"),
    (b"\x94\x00\x01\xa4make\x81\xa4kind\xa2v4", "ok"),
    (b"\x93\x02\xc4\x05hello\x81\x01\x02", "ok"),
    # Keys that are no text; times that are none, and one far off.
    (b"\x94\x00\x01\xa1x\x91\x81\x01\x02", "ok"),
    (b"\x94\x00\x01\xa1x\x91\x81\x90\x02", "ok"),
    (b"\x94\x00\x01\xa1x\x91\xc7\x03\xff\x00\x00\x00", "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91\xd6\xff\x00\x00\x00\x00", "ok"),
    (b"\x94\x00\x01\xa1x\x91\xd7\xff" + b"\xff" * 8, "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91\xc7\x0c\xff" + b"\xff" * 12, "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91\xd4\x80\x00", "MalformedError"),
    # No number.
    (b"\x94\x00\x01\xa4take\x92\xa3utc\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "ok"),
    # Heads that promise 4 GB.
    (b"\xdd\xff\xff\xff\xff", "MalformedError"),
    (b"\x94\x00\x01\xa1x\xdf\xff\xff\xff\xff", "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91\xc6\xff\xff\xff\xff", "unfinished"),
    (b"\x94\x00\x01\xa1x\x91\xdb\xff\xff\xff\xff", "unfinished"),
    (b"\x94\x00\x01\xa1x\x91\xc9\xff\xff\xff\xff\x01", "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91" + b"\xdc\x00\x40" * 1000, "unfinished"),
    (b"\x94\x00\x01\xa1x\x91" + b"\xdc\xff\xff" * 1000, "MalformedError"),
    # Nested as deep as is read, and deeper.
    (b"\x94\x00\x01\xa1x\x91" + DEEP, "ok"),
    (b"\x94\x00\x01\xa4take\x92" + DEEP + DEEP, "ok"),
    (b"\x94\x00\x01\xa1x\x91" + b"\x91" * 2000, "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91" + b"\x81\xa0" * 1000 + b"\xc0", "ok"),
    # As long as a request may be, and a byte longer.
    (b"\x94\x00\x01\xa1x\x91\xc5\x0f\xf7" + bytes(4087), "ok"),
    (b"\x94\x00\x01\xa1x\x91\xc5\x0f\xf8" + bytes(4088), "MalformedError"),
    (b"\x94\x00\x01\xa1x\x91\xc5\x0f\xf8" + bytes(4087), "unfinished"),
]

CALLS: list[Case] = [
    (b"\x92\xa4take\x92\xa3utc\x01", "Take"),
    (b"\x92\xa4take\x93\xa6steady\xce\x00\x0f\x42\x40\xc3", "Take"),
    (b"\x92\xa4take\x94\xa3utc\x01\xc2\xc2", "Take"),
    (b"\x92\xa4take\x94\xa3utc\x01\xc2\x00", "bad_params"),
    (b"\x92\xa4take\x95\xa3utc\x01\xc2\xc3\xc3", "bad_params"),
    (b"\x92\xa4make\x93\xa2v1\x01\xc2", "Make"),
    (b"\x92\xa4make\x91\xa2v1", "Make"),
    (b"\x92\xa4make\x92\xa7push_id\xcd\x03\xe8", "Make"),
    (b"\x92\xa6status\x90", "status"),
    (b"\x92\xa4take\x90", "bad_params"),
    (b"\x92\xa4take\x92\xa3utc\x00", "bad_params"),
    (b"\x92\xa4take\x92\xa3utc\xc3", "bad_params"),
    (b"\x92\xa4take\x92\xa3utc\xcb" + bytes(8), "bad_params"),
    (b"\x92\xa4take\x92\xa3utc\xce\x00\x0f\x42\x41", "bad_params"),
    (b"\x92\xa4take\x92\xa3utc\xcf" + b"\xff" * 8, "bad_params"),
    (b"\x92\xa4take\x93\xa3utc\x01\x01", "bad_params"),
    (b"\x92\xc4\x04take\x92\xc4\x03utc\x01", "Take"),
    (b"\x92\xa4take\x92\xc4\x03\xff\xff\xff\x01", "bad_params"),
    (b"\x92\xa4take\x80", "bad_params"),
    (b"\x92\xa6status\xc0", "bad_params"),
    (b"\x92\xc0\x90", "unknown_method"),
    (b"\x92\xa4make\x92\xa2v1\xcd\x03\xe9", "bad_params"),
    (b"\x92\xa4make\x91" + DEEP, "bad_params"),
    (b"\x92\xa6status\x91\xc0", "bad_params"),
    (b"\x92\xa0\x90", "unknown_method"),
    (b"\x92\xda\x04\x00" + b"x" * 1024 + b"\x90", "unknown_method"),
]

NODE = b"\x9f\x6b\xde\xce\xd8\x46"
BLOCK = (
    b"\x84\xa5first\xcf\x01\xec\x94\x14\xc2\x32\xab\x00\xa5count\x0a"
    b"\xa4node\xc4\x06" + NODE + b"\xa9clock_seq\xcd\x33\xc8"
)
STEADY_BLOCK = (
    b"\x85\xa5first\xcf\x01\xec\x94\x14\xc2\x32\xab\x00\xa5count\x0a"
    b"\xa4node\xc4\x06" + NODE + b"\xa6worker\x05\xa5epoch\xcf\x00\x00\x01\x2c\xed\xd5\xd0\x00"
)
LAST_BLOCK = BLOCK.replace(b"\x01\xec\x94\x14\xc2\x32\xab\x00", b"\x0f" + b"\xff" * 6 + b"\xf6")

RESPONSES: list[Case] = [
    (b"\x94\x01\x07\xc0" + BLOCK, "Block"),
    (b"\x94\x01\x07\xc0" + LAST_BLOCK, "Block"),
    (b"\x94\x01\x07\xc0" + LAST_BLOCK.replace(b"\x0a", b"\x0b"), "ValueError"),
    (b"\x94\x01\x07\xc0" + STEADY_BLOCK, "SteadyBlock"),
    (b"\x94\x01\x07\xc0" + STEADY_BLOCK.replace(b"worker\x05", b"worker\xc0"), "SteadyBlock"),
    (b"\x94\x01\x07\xc0" + STEADY_BLOCK.replace(b"worker\x05", b"worker\xc3"), "ValueError"),
    (b"\x94\x01\x07\xc0" + BLOCK.replace(b"count\x0a", b"count\xc3"), "ValueError"),
    (b"\x94\x01\x07\xc0\x80", "ValueError"),
    (b"\x94\x01\x07\xc0\x92\xa2v1\xa2v2", "ValueError"),
    (b"\x94\x01\x07\xa8busy: no\xc0", "refused"),
    (b"\x94\x01\x07\xa4busy\xc0", "refused"),
    (b"\x94\x01\x07\xa8busy: no", "unfinished"),
    (b"", "unfinished"),
    (b"\x94\x01\x07\x92\xa4busy\xa2no\xc0", "MalformedError"),
    (b"\x94\x01\x07\xa8busy: no\x00", "MalformedError"),
    (b"\x94\x01\x07\xc0\xc0\xc0", "MalformedError"),
    (b"\x94\xc3\x07\xc0\xc0", "MalformedError"),
    (TAKE, "MalformedError"),
    (b"\xc1", "MalformedError"),
    (b"\x94\x01\x07\xc0" + DEEP, "ValueError"),
    # Heads of a million items each, in a few hundred bytes.
    (b"\x94\x01\x07\xc0" + b"\xdd\x00\x0f\xff\xff" * 100, "MalformedError"),
]

ASKS: list[Case] = [
    (b"", "unfinished"),
    *((bytes([op]), "ok") for op in range(4)),
    (b"\x04", "unfinished"),
    (b"\x05\x01\x00\x00", "unfinished"),
    *(
        (bytes([op]) + pack("=i", count), "ok")
        for op in (4, 5)
        for count in (-(1 << 31), -1, 0, 1, 63, 64, 1_000_000)
    ),
    (b"\x04" + pack("=i", 1_000_001), "ProtocolError"),
    (b"\x04" + pack("=i", (1 << 31) - 1), "ProtocolError"),
    (b"\x05" + pack("=i", (1 << 31) - 1), "ok"),
    (b"\x06", "ProtocolError"),
    (b"\xff", "ProtocolError"),
]

UUID = bytes.fromhex("c232ab00941411ecb3c89f6bdeced846")
LAST_UUID = bytes.fromhex("ffffffffffff1fffb3c89f6bdeced846")

REPLIES: list[Case] = [
    (pack("=i16si", 20, UUID, 10), "Block"),
    (pack("=i16si", 20, UUID, -10), "Block"),
    (pack("=i16si", 20, UUID, (1 << 31) - 1), "Block"),
    (pack("=i16si", 20, bytes(16), 10), "uuids"),
    (pack("=i16s", 16, UUID), "uuids"),
    (pack("=ii", 4, 0), "uuids"),
    (pack("=ii48s", 52, 3, UUID * 3), "uuids"),
    (pack("=ii40s", 44, 3, bytes(40)), "uuids"),
    (pack("=i", 0), "uuids"),
    (b"", "unfinished"),
    (b"\x02\x00\x00\x00\x35", "unfinished"),
    (pack("=i", 1012), "unfinished"),
    (pack("=i", 1013), "ProtocolError"),
    (pack("=i", -1), "ProtocolError"),
]

STATE = b"""\
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "generation": 51,
 "floor": 0,
 "steady": 138648505420000001,
 "leases": 138648505420000002,
 "now": 138648505420000003,
 "elapsed": 36000000000,
 "worker": null,
 "product": "",
 "epochs": {
  "5": 1288834974657
 },
 "marks": {
  "0": 1,
  "51": 138648505420000000
 }
}
"""

STATES: list[Case] = [
    (STATE, "ok"),
    (STATE.replace(b' "leases": 138648505420000002,\n', b""), "UnusableError"),
    # Without the checksum that the target puts before all others.
    (b"!" + STATE, "UnusableError"),
    (b"!", "UnusableError"),
    (b"!uuidd-state 1 sha256:\n", "UnusableError"),
    (b"!uuidd-state 6 sha256:\n", "UnusableError"),
    (b"", "UnusableError"),
    # Deeper than Python's JSON goes.
    (b"[" * 8000, "UnusableError"),
    (b'{"node":' * 8000, "UnusableError"),
    (b"null", "UnusableError"),
    (b"[]", "UnusableError"),
    (b"\xff\xfe{\x00}\x00", "UnusableError"),
    (STATE.replace(b'"0x9f6bdeced846"', b"[[1]]"), "UnusableError"),
    (STATE.replace(b'"0x9f6bdeced846"', b'"0x1000000000000"'), "UnusableError"),
    (STATE.replace(b'"0x9f6bdeced846"', b"9" * 5000), "UnusableError"),
    (STATE.replace(b'"random"', b'"\\ud800"'), "ok"),
    (STATE.replace(b'"51": ', b'"64": '), "UnusableError"),
    (STATE.replace(b'"5": ', b'"1024": '), "UnusableError"),
    (STATE.replace(b'"5": ', b'"5": -'), "UnusableError"),
    (STATE.replace(b'"floor": 0', b'"floor": -1'), "UnusableError"),
    (STATE.replace(b'"floor": 0', b'"floor": true'), "UnusableError"),
    (STATE.replace(b'"floor": 0', b'"floor": 1e400'), "UnusableError"),
    (STATE.replace(b'"floor": 0', b'"floor": NaN'), "UnusableError"),
    (STATE.replace(b"{\n  ", b"[").replace(b" }\n", b"]"), "UnusableError"),
]

TEXTS: list[Case] = [
    (b"\x00c232ab00-9414-11ec-b3c8-9f6bdeced846", "ok"),
    (b"\x00{C232AB00-9414-11EC-B3C8-9F6BDECED846}", "ok"),
    (b"\x00urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "ok"),
    (b"\x00 017f22e279b07cc398c4dc0c0c07398f\n", "ok"),
    (b"\x0000000000-0000-0000-0000-000000000000", "ok"),
    (b"\x00ffffffff-ffff-ffff-ffff-ffffffffffff", "ok"),
    (b"\x00c232ab00-9414-01ec-b3c8-9f6bdeced846", "ok"),
    (b"\x0000000000-0000-0000-e000-000000000000", "ok"),
    (b"\x0001ARYZ6S41TSV4RRFFQ69G5FAV", "ok"),
    (b"\x007ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ok"),
    (b"\x008ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ValueError"),
    (b"\x000uk1HcdvF0p8C20KtTfdRSB9XIm", "ok"),
    (b"\x00aWgEPTl1tmebfsQzFP4bxwgy80V", "ok"),
    (b"\x00aWgEPTl1tmebfsQzFP4bxwgy80W", "ValueError"),
    (b"\x00-JhLeOlGIEjaIOFHR0xd", "ok"),
    (b"\x00zzzzzzzzzzzzzzzzzzzz", "ok"),
    (b"\x00333a2276d000.0d.00.00.80.9c.00.00.00", "ValueError"),
    (b"\x00333a2276.d0000d00", "ValueError"),
    (b"\x008HFaR8qWtRlGDHnO57", "ok"),
    (b"\x00856165981072306191", "ok"),
    (b"\x00b8wjm1zroyyyy", "ValueError"),
    (b"\x0024467927614188555520896788267013", "ok"),
    (b"\x000669F7EFB5A1CD34B5F99D1154FB6853345C9735", "ok"),
    (b"\x000x0be1b8a0d4c1f00f", "ok"),
    (b"\x00" + b"9" * 100, "ValueError"),
    (b"\x00" + b"9" * 101, "ValueError"),
    (b"\x00", "ValueError"),
    (b"\x000", "ok"),
    # Digits and letters that are not ASCII, a lone surrogate, a NUL.
    ("\x00\u0663\u0664\u0665".encode(), "ValueError"),
    ("\x0001ARYZ6S41T\u017fV4RRFFQ69G5FAV".encode(), "ValueError"),
    ("\x0001ARYZ6S41T\u00dfV4RRFFQ69G5FAV".encode(), "ValueError"),
    (b"\x00\xed\xa0\x80", "ValueError"),
    (b"\x00c232ab00-9414-11ec-b3c8-9f6bdeced84\0", "ValueError"),
    *((bytes([kind]) + b"c232ab00-9414-11ec-b3c8-9f6bdeced846", "any") for kind in range(1, 32)),
    *((bytes([kind]) + b"856165981072306191", "any") for kind in range(1, 32)),
    *((bytes([kind]) + b"01ARYZ6S41TSV4RRFFQ69G5FAV", "any") for kind in range(1, 32)),
]
