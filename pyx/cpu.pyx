"""Which vector instructions the kernels use."""


cdef extern from "isa.h" nogil:
    int isa_supported()
    int isa_requested()
    int isa_level()


_NAMES = ("plain", "avx2", "avx512")


def isa():
    """The path in use: "plain", "avx2" or "avx512"."""
    return _NAMES[isa_level()]


def supported():
    """Every path this CPU can run, slowest first."""
    return _NAMES[: isa_supported() + 1]


def check():
    """Refuse a WINDJOIN_ISA that is no word or that this CPU does not have."""
    cdef int requested = isa_requested()
    if requested == -2:
        import os
        raise ValueError(
            f"WINDJOIN_ISA={os.environ['WINDJOIN_ISA']!r} is not known;"
            f" use one of {', '.join(_NAMES)}"
        )
    if requested > isa_supported():
        raise ValueError(
            f"WINDJOIN_ISA={_NAMES[requested]} is not supported by this CPU; "
            f"it offers {', '.join(supported())}"
        )
