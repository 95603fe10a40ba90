"""The two protocols of the socket: bytes to values and back, without sockets."""

LIBUUID_FIRST = frozenset(range(6))
"""First bytes of a libuuid request: its ops."""

RPC_FIRST = frozenset((0x93, 0x94, 0xDC, 0xDD))
"""First bytes of an rpc request: the heads of MessagePack arrays of 3 or 4, and of any length."""

MOST_PATH_BYTES = 107
"""The longest path of a socket: sockaddr_un has room for 108 bytes, of which the last is zero."""
