"""The named workloads on Spark: `windjoin.spark` against Spark SQL, in one run."""
