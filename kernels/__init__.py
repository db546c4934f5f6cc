"""What one host does with rows: windows, indexes, probing."""

from windjoin.pyx.base.cpu import check

check()  # a wrong WINDJOIN_ISA is an error, not a silent choice of another path
