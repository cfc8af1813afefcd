"""The array types that fragments are made of."""

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
Symbols = npt.NDArray[np.uint8]
