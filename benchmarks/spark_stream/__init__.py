"""Continuous joins of streaming DataFrames: `windjoin.spark` against Spark's own, in one run."""
