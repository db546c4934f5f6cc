"""Inner loops that are the same for every query.  Unchecked: enter through ``windjoin.kernels``."""
