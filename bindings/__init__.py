"""Exact windowed joins of any number of streams on any predicate, on Arrow data."""
