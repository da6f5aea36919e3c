"""What a new process waits for: import, derivation, compilation, and the same from the disk cache.

    python -m benchmarks.startup platform forward_dynamics

prints the seconds of this process as JSON; `startup_times` runs it with an empty cache and again
with the cache that left behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent


def startup_times(mechanism: str, function: str, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of every stage, `fresh` and `warm`, in new processes."""
    from benchmarks.timing import turns  # not in the processes that are measured

    def turn() -> dict[str, list[float]]:
        with tempfile.TemporaryDirectory() as folder:
            done = {kind: _process(mechanism, function, folder) for kind in ("fresh", "warm")}
        return {
            f"{kind} {stage}": [spent]
            for kind, stages in done.items()
            for stage, spent in stages.items()
        }

    found: dict[str, dict[str, list[float]]] = {"fresh": {}, "warm": {}}
    for name, times in turns(turn, repeat).items():
        kind, stage = name.split(" ")
        found[kind][stage] = list(times.seconds)
    return found


def _process(mechanism: str, function: str, cache: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.startup", mechanism, function]
    environment = os.environ | {"AXODE_CACHE": cache}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def measure(mechanism: str, function: str) -> dict[str, float]:
    """Seconds of the stages of this process; nothing may have been imported before."""
    clock = time.perf_counter
    marks = {"start": clock()}
    import axode  # noqa: F401

    marks["import"] = clock()
    import casadi  # noqa: F401
    import llvmlite.binding  # noqa: F401

    from axode.codegen.targets.cpu import CompiledFunction
    from axode.model.function_source import graph_tape
    from axode.symbolic.functions import function_graph
    from benchmarks import mechanisms

    marks["import_rest"] = clock()
    twist = mechanisms.platform_twist() if mechanism == "platform" else None
    equations = getattr(mechanisms, mechanism)().derive(independent=twist)
    marks["derive"] = clock()
    graph = function_graph(equations, function, fixed=True)
    marks["graph"] = clock()
    tape = graph_tape(graph)
    marks["tape"] = clock()
    compiled = CompiledFunction(tape).prepare(batch=False)
    marks["compile_single"] = clock()
    compiled.prepare(single=False)
    marks["compile_batch"] = clock()
    times = list(marks.items())
    return {name: after - before for (_, before), (name, after) in pairwise(times)}


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
