"""Measure the peers on this GPU, each in a process of its own that may fail or take too long.

    python benchmarks/gpu/peers/parts.py SITE out/peers/mujoco-0 ...
    python benchmarks/gpu/peers/measure.py out/peers/data results.json --site SITE [stage ...]

Stages: jax-pendulum, jax-arm, jax-platform, mjx, warp, jax-gradient, mjx-gradient; all unless
named. Numbers of stages that are not measured now stay in the file as they are. `--limit` is the
seconds that a stage may take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.gpu.peers.reporting import MARK

HERE = Path(__file__).parent

STAGES = {
    "jax-pendulum": ("run_jax.py", "pendulum"),
    "jax-arm": ("run_jax.py", "arm"),
    "jax-platform": ("run_jax.py", "platform"),
    "mjx": ("run_mjx.py",),
    "warp": ("run_warp.py",),
    "jax-gradient": ("run_gradients.py", "jax"),
    "mjx-gradient": ("run_gradients.py", "mjx"),
}
LAST_WORDS = 1500  # characters of what a peer said before it failed


def measure(stage: str, data: Path, site: Path | None, limit: float) -> dict[str, Any]:
    """Rows of one stage, all that came before it ended, and how it ended."""
    script, *more = STAGES[stage]
    command = [sys.executable, str(HERE / script), str(data), *more]
    # They put it behind what is installed here: only what is missing comes from there.
    environment = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "PEERS_SITE": str(site or ""),
        "PEERS_LIMIT": str(limit),
    }
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit)
            ended = f"exit {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            ended = f"stopped after {limit:.0f} s"
    lines = said.splitlines()
    rows = [json.loads(line[len(MARK) :]) for line in lines if line.startswith(MARK)]
    found: dict[str, Any] = {"ended": ended, "rows": rows}
    if ended != "exit 0":
        words = "\n".join(line for line in lines if not line.startswith(MARK))
        found["last words"] = words[-LAST_WORDS:]
    return found


def show(stage: str, found: dict[str, Any]) -> None:
    """A line a row."""
    print(f"\n{stage}: {found['ended']}")
    for row in found["rows"]:
        if "about" in row:
            print(row["about"])
            continue
        head = f"{row['peer']:12} {row['what']:16} {row['precision']:8} {row['batch']:8d}"
        rest = [f"{k} {v:.3g}" for k, v in row.items() if isinstance(v, float) and k != "rate"]
        speed = f"{row['rate']:12.4g} /s" if "rate" in row else f"failed: {row['failed']}"
        print(f"{head} {speed}  {', '.join(rest)}")
    print(found.get("last words", ""), flush=True)


def main() -> None:
    """Every stage; what is measured is written at once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("stages", nargs="*", metavar="stage", help=", ".join(STAGES))
    parser.add_argument("--site", type=Path, help="folder with the unpacked wheels")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds a stage")
    given = parser.parse_args()
    unknown = [stage for stage in given.stages if stage not in STAGES]
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}; there are {', '.join(STAGES)}")
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    for stage in given.stages or STAGES:
        found = measure(stage, given.data, given.site, given.limit)
        show(stage, found)
        results[stage] = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), **found}
        given.results.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
