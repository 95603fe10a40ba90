"""The two dialects of the socket: bytes to values and back, no sockets."""

LIBUUID_FIRST = frozenset(range(6))
"""First bytes of the libuuid dialect: its ops."""

RPC_FIRST = frozenset((0x93, 0x94, 0xDC, 0xDD))
"""First bytes of the rpc dialect: the heads of MessagePack arrays of 3 or 4, and of any length."""
