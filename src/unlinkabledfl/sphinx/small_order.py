"""The points that share no secret: whoever multiplies them gets zero, with any private key."""

from typing import Final

PRIME: Final = (1 << 255) - 19

SMALL_ORDER_U: Final = frozenset(
    {
        0,
        1,
        # Order 8, on the curve.
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        PRIME - 1,
    }
)
"""The u-coordinates of the points whose order divides 8, on Curve25519 or on its twist."""

_U_RANGE: Final = 1 << 255


def is_small_order(point: bytes) -> bool:
    """Whether X25519 reads one of them in these 32 bytes; it ignores the top bit and reduces."""
    return int.from_bytes(point, "little") % _U_RANGE % PRIME in SMALL_ORDER_U
