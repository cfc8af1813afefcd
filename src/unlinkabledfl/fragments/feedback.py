"""Error feedback: what quantization took from the last fragment of a range is added to its next one.

An unbiased quantizer needs none to converge. At three or four bits it still helps when few peers average, because the
errors of one sender then cancel over rounds instead of adding up.

    compensate(vector) -> what to encode;  record(what was encoded, the fragment) -> remembers the difference

Invariant: the residual of a range is the error of the last fragment sent of it, so it stays within one step.
"""

import numpy as np

from unlinkabledfl.fragments.arrays import Vector
from unlinkabledfl.fragments.framing import Fragment


class ErrorFeedback:
    """The residual of one sender."""

    __slots__ = ("_residual",)

    def __init__(self, values: int) -> None:
        self._residual = np.zeros(values, dtype=np.float32)

    def compensate(self, vector: Vector) -> Vector:
        """Return the vector with what its receivers are still owed."""
        return vector + self._residual

    def record(self, compensated: Vector, sent: Fragment) -> None:
        """Remember how far the fragment is from what it was to say. Ranges not sent keep their residual."""
        place = slice(sent.start, sent.stop)
        np.subtract(compensated[place], sent.values, out=self._residual[place])
