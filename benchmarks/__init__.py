"""Workloads, peers and measurements; see ``docs/benchmarks.md``."""
