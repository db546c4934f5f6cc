"""All of it, written to benchmarks/results/spark: ``python -m benchmarks.spark``."""

from benchmarks.spark import bytes as shuffled
from benchmarks.spark import fixed, memory, run, scaling

run.main(["W1", "--engines", "naive", "cells", "--repeat", "6", "--record"])
run.main(["W2", "W7", "--engines", "cells", "naive", "--repeat", "6", "--record"])
run.main(["W7", "--engines", "cells", "--times", "10", "--record"])
run.main(["W3", "--engines", "naive", "cells", "pandas", "--record"])
run.main(["W4", "--engines", "naive", "cells", "--record"])
run.main(["W6", "--engines", "pandas", "--record"])
fixed.main()
scaling.main([])
shuffled.main([])
memory.main([])
