"""Small benchmarks, one parameter per dimension, each group with a named baseline."""
