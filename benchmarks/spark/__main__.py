"""All of it, written to benchmarks/results/spark: ``python -m benchmarks.spark``."""

import subprocess
import sys

from benchmarks.spark import bytes as shuffled
from benchmarks.spark import fixed, memory, scaling

RUNS = [  # a peer that has to be stopped leaves tasks behind, so it is the last of its session
    ["W1", "--engines", "naive", "cells", "--repeat", "6"],
    *(["W2", "--engines", peer, "--repeat", "6"] for peer in ("cells", "naive")),
    *(["W7", "--engines", peer, "--repeat", "10"] for peer in ("cells", "naive")),
    ["W7", "--engines", "cells", "--times", "10"],
    *(["W3", "--engines", peer] for peer in ("naive", "cells", "pandas")),
    *(["W4", "--engines", peer] for peer in ("naive", "cells", "pandas")),
    *(["W6", "--engines", peer] for peer in ("naive", "cells", "pandas")),
]
for options in RUNS:
    subprocess.run([sys.executable, "-m", "benchmarks.spark.run", *options, "--record"], check=True)
fixed.main()
scaling.main([])
shuffled.main([])
memory.main([])
