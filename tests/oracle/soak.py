"""Many random mechanisms against the oracle, in several processes, recorded as JSON.

python -m tests.oracle.soak --count 10000 --jobs 2 --out benchmarks/results/DATE-soak.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS)]
CHUNK = 20  # mechanisms a process takes at a time
FIRST_SEED = 100_000  # beyond those of the test suite
SALT = 77  # of what makes mechanisms harder
SWITCHED = 5  # every so many generic mechanisms also move under a law that switches
RIVALS = ("complement", "multipliers", "lagrange", "virtual_work", "spatial_operators", "legs")
RIVALS += ("pseudo_joints", "reduced_order")


def families() -> list[tuple[str, str]]:
    """Kinds and shapes; nearly degenerate ones are drawn twice as often."""
    from near_mechanisms import KINDS, SHAPES

    return [(kind, shape) for kind in (*KINDS, "nearly") for shape in SHAPES]


def judge_range(first: int, last: int) -> list[dict[str, Any]]:
    """Judge the mechanisms of some numbers: family and rival in turn, size three to six."""
    warnings.simplefilter("ignore")
    import numpy as np

    from harder_mechanisms import make_harder
    from near_mechanisms import mechanism_of
    from oracle.agreement import judge
    from oracle.switched_inputs import switched_fault

    drawn, found = families(), []
    for number in range(first, last):
        kind, shape = drawn[number % len(drawn)]
        seed = FIRST_SEED + number
        record: dict[str, Any] = {"kind": kind, "shape": shape, "seed": seed}
        try:
            mechanism = mechanism_of(kind, shape, seed, size=3 + number % 4)
            rng = np.random.default_rng([SALT, seed])
            record["harder"] = make_harder(mechanism, rng)
            turn = number // len(drawn)
            switched = kind == "generic" and turn % SWITCHED == 0
            if switched and not (mechanism.drives or mechanism.wrenches):
                mechanism.add_wrench("kick", mechanism.bodies[-1].name)
            verdict = judge(mechanism, [RIVALS[turn % len(RIVALS)]], thin=True)
            if switched and verdict.equations is not None and not verdict.failed:
                verdict.failed = switched_fault(verdict.equations, rng)
        except Exception as error:  # a crash is a finding too, and the others go on
            found.append(record | {"verdict": "failed", "why": f"{type(error).__name__}: {error}"})
            continue
        record["verdict"] = (
            "failed" if verdict.failed else "refused" if verdict.refused else "agrees"
        )
        record |= {"why": verdict.failed or verdict.refused, "lost": verdict.lost.split(":")[0]}
        found.append(record | {"worst": verdict.worst})
    return found


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts and the largest error of each family, and every failure."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in found:
        groups.setdefault(f"{record['kind']} {record['shape']}", []).append(record)
    table = {}
    for name, records in sorted(groups.items()):
        agreed = [r for r in records if r["verdict"] == "agrees"]
        table[name] = {
            "count": len(records),
            "agree": len(agreed),
            "refused": dict(Counter(r["why"] for r in records if r["verdict"] == "refused")),
            "too few digits": dict(Counter(r["lost"] for r in records if r.get("lost"))),
            "failed": sum(r["verdict"] == "failed" for r in records),
            "worst": max((r["worst"] for r in agreed), default=0.0),
        }
    failures = [r for r in found if r["verdict"] == "failed"]
    return {"families": table, "failures": failures}


def commit() -> str:
    """The commit of the sources."""
    command = ["git", "-C", str(TESTS), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    """Run, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="number of the first mechanism")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    started, found = time.perf_counter(), []
    with ProcessPoolExecutor(options.jobs) as pool:
        last = options.start + options.count
        starts = range(options.start, last, CHUNK)
        futures = [pool.submit(judge_range, n, min(n + CHUNK, last)) for n in starts]
        for future in as_completed(futures):
            for record in future.result():
                found.append(record)
                if record["verdict"] == "failed":
                    print(record, flush=True)
            if len(found) % 500 < CHUNK:
                print(f"{len(found)} of {options.count}", flush=True)
                write(options.out, found, started)
    write(options.out, found, started)
    print(json.dumps(summary(found)["families"], indent=2))
    return any(record["verdict"] == "failed" for record in found)


def write(out: Path | None, found: list[dict[str, Any]], started: float) -> None:
    """Record what there is so far."""
    if out is None:
        return
    head = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "mechanisms": len(found),
        "seconds": round(time.perf_counter() - started),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(head | summary(found), indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
