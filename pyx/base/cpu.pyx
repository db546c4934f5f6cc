"""Which vector instructions the kernels use."""
import os


cdef extern from "isa.h" nogil:
    int isa_supported()
    int isa_level()


_NAMES = ("plain", "avx2", "avx512")


def isa():
    """The path in use: "plain", "avx2" or "avx512"."""
    return _NAMES[isa_level()]


def supported():
    """Every path this CPU can run, slowest first."""
    return _NAMES[: isa_supported() + 1]


def check(offered=None):
    """Refuse a WINDJOIN_ISA that is no word or that this CPU does not have.

    offered: paths of another CPU than this one
    """
    asked = os.environ.get("WINDJOIN_ISA", "")
    offered = supported() if offered is None else offered
    if asked and asked not in _NAMES:
        raise ValueError(f"WINDJOIN_ISA={asked!r} is not known; use one of {', '.join(_NAMES)}")
    if asked and asked not in offered:
        raise ValueError(
            f"WINDJOIN_ISA={asked} is not supported by this CPU; it offers {', '.join(offered)}"
        )
