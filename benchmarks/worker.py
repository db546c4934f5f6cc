"""One engine on one workload in a process of its own, told over its standard input what to do.

    python -m benchmarks.worker WORKLOAD ENGINE VARIANT THREADS

Each line in asks for one run; each line out is a JSON object.  The first one says that the rows
are loaded.  Anything that goes wrong is reported as ``error``.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from benchmarks.checksum import checksum
from benchmarks.measure import measured
from benchmarks.peers import Job, jobs
from benchmarks.workloads import WORKLOADS


def one_run(job: Job) -> dict[str, Any]:
    """Run once; the checksum is taken after the clock has stopped."""
    answer, cost = measured(job.run)
    members = job.members(answer)
    del answer
    return {**asdict(cost), "results": len(members[0]), "checksum": checksum(members)}


def main(workload: str, engine: str, variant: str, threads: str) -> None:
    """Load, then run once per line of the input."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints must not be taken for a reply

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    try:
        chosen = WORKLOADS[workload]
        job = jobs(engine)[workload][variant](chosen, chosen.tables(), int(threads))
        reply({"ready": True})
        for _ in sys.stdin:
            reply(one_run(job))
    except BaseException as error:  # an engine's panic is a BaseException too; the parent shows it
        first = (str(error).strip() or "no message").splitlines()[0]
        reply({"error": f"{type(error).__name__}: {first}"})


if __name__ == "__main__":
    main(*sys.argv[1:])
