"""All of it: ``python -m benchmarks.spark``."""

from benchmarks.spark import fixed, memory, run, scaling

run.main(["W1", "--engines", "windjoin", "cells", "naive"])
run.main(["W2", "W7", "--engines", "windjoin", "cells"])
run.main(["W2", "W7", "--engines", "windjoin", "naive", "--share", "0.05"])
run.main(["W3", "W6", "--engines", "windjoin", "pandas", "--share", "0.1"])
run.main(["W3", "W4", "--engines", "windjoin", "cells", "--share", "0.1"])
fixed.main()
scaling.main([])
memory.main([])
