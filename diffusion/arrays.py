"""Arrays that all files of this folder speak of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]
F64: TypeAlias = NDArray[np.float64]
