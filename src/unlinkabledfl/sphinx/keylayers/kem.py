"""What the layers with a fresh encapsulation a hop have in common: the next element travels inside the slot."""

from collections.abc import Sequence

from unlinkabledfl.sphinx.multiplier import Multiplier


class CarriedElements:
    """A hop reads the next element from its slot; nothing is computed and nothing is blinded."""

    def next_element(self, element: bytes, blind: bytes, carried: bytes) -> bytes:
        return carried

    def next_elements(
        self,
        elements: Sequence[bytes],
        blinds: Sequence[bytes],
        carried: Sequence[bytes],
        multiplier: Multiplier,
    ) -> list[bytes]:
        return list(carried)
