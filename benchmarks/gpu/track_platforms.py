"""Postures of very many random platforms on six legs, on this GPU, against stored ones of the CPU.

    python benchmarks/gpu/track_platforms.py out/platforms results.json [100000]

Needs NumPy, CuPy and llvmlite, not CasADi, and the folder that `prepare_platforms.py` wrote.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.platform_numbers import platforms  # noqa: E402

AGREEMENT = 1e-8  # of roots with the CPU's, relative to their size
RESIDUAL = 1e-10  # largest one that a root may have
POSTURES = 40
REPEATS = 3


@dataclass(frozen=True)
class StoredFamily:
    """What is needed of a `PolynomialFamily` whose start sets are known."""

    key: str
    unknowns: int
    parameters: int
    residual_tape: Any
    jacobian_tape: Any

    @property
    def digest(self) -> str:
        """As that of the family."""
        return f"{self.key} {self.residual_tape.digest}"


def read(folder: Path) -> tuple[StoredFamily, Any]:
    """Read the family and the known roots."""
    from axode.codegen.tape.tape import Tape
    from axode.kinematics.polynomials.solve_family import StartSet, remember_start_sets

    known = np.load(folder / "known.npz")
    tapes = [
        Tape.from_bytes((folder / f"{name}.tape").read_bytes()) for name in ("residual", "jacobian")
    ]
    sizes = [port.size for port in tapes[0].inputs]
    family = StoredFamily(str(known["key"]), *sizes, *tapes)
    starts = zip(known["start_roots"], known["start_parameters"], strict=True)
    remember_start_sets(family, [StartSet(*one) for one in starts])  # type: ignore[arg-type]
    return family, known


def check_known(family: StoredFamily, known: Any) -> float:
    """Compare roots with those of the CPU, each with its nearest."""
    from axode.kinematics.polynomials.solve_family import solve_family

    found = solve_family(family, known["targets"], target=TARGET)  # type: ignore[arg-type]
    assert (found.count == POSTURES).all(), f"counts {np.unique(found.count)}"
    worst = 0.0
    for ours, theirs in zip(found.roots, known["roots"], strict=True):
        apart = np.abs(ours[:, np.newaxis] - theirs).max(axis=2)
        assert len(set(apart.argmin(axis=1))) == POSTURES
        worst = max(worst, float((apart.min(axis=1) / np.abs(ours).max(axis=1)).max()))
    assert worst < AGREEMENT, f"roots differ by {worst:.1e}"
    return worst


def largest_residual(family: StoredFamily, targets: np.ndarray, roots: np.ndarray) -> float:
    """Largest residual of any root, relative to its size squared."""
    from axode.kinematics.polynomials.polynomial_family import evaluate_at

    worst = 0.0
    for first in range(0, len(targets), 4096):
        x = roots[first : first + 4096].reshape(-1, family.unknowns)
        p = np.repeat(targets[first : first + 4096], roots.shape[1], axis=0)
        r = np.abs(evaluate_at(family.residual_tape, x, p)).max(axis=1)
        worst = max(worst, float((r / (1.0 + np.square(np.abs(x)).sum(axis=1))).max()))
    return worst


def time_kernel(family: StoredFamily, targets: np.ndarray) -> dict[str, Any]:
    """Time one launch over all paths, of which the arrays are on the GPU."""
    import cupy as cp

    from axode.kinematics.polynomials.path_tracker import USUAL, tracker_of
    from axode.kinematics.polynomials.solve_family import start_set
    from axode.runtime.cuda import soa

    kernel = tracker_of(family, TARGET).kernel  # type: ignore[arg-type]
    start, count = start_set(family), len(targets)  # type: ignore[arg-type]
    paths = count * POSTURES
    x = cp.tile(cp.asarray(start.roots.view(float)), (count, 1))
    given = {
        "start": cp.asarray(start.parameters.view(float)),
        "which": soa(cp.repeat(cp.arange(count, dtype=float), POSTURES)[:, np.newaxis], "float64"),
        "settings": cp.array([USUAL.tolerance, USUAL.radius, USUAL.max_steps], dtype=float),
    }
    table = {"targets": cp.asarray(np.ascontiguousarray(targets).view(float))}
    seconds = []
    for _ in range(REPEATS):
        state = {
            name: soa(cp.zeros((paths, size)), "float64")
            for name, size in kernel.header["state"].items()
        }
        state["x"], state["s"][...], state["factor"][...] = soa(x, "float64"), 1.0, 1.0
        launch = kernel.prepare({**state, **given}, table)
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        seconds.append(cp.cuda.get_elapsed_time(begin, end) / 1e3)
    blocks, threads = kernel.geometry(paths)
    steps = float(state["steps"].sum())
    return {
        "s of the kernel": float(np.median(seconds)),
        "steps": steps,
        "steps/s": steps / float(np.median(seconds)),
        "not finished": int((state["ending"] != 1).sum()),
        "registers": kernel.registers,
        "spilled bytes": kernel.spilled_bytes,
        "blocks": blocks,
        "threads": threads,
    }


def main() -> None:
    """Check, solve, time."""
    from axode.kinematics.polynomials.solve_family import solve_family

    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    family, known = read(folder)
    made: dict[str, Any] = {
        "platforms": count,
        "difference from the CPU": check_known(family, known),
    }
    print(json.dumps(made), flush=True)
    targets = platforms(count, np.random.default_rng(int(known["seed"]) + 1))
    if TARGET == "cuda":
        made |= time_kernel(family, targets)
        print(json.dumps(made), flush=True)
    began = time.perf_counter()
    found = solve_family(family, targets, target=TARGET)  # type: ignore[arg-type]
    made["s of the whole call"] = time.perf_counter() - began
    made |= {k: v for k, v in found.statistics().items() if k != "steps"}
    made["platforms with 40 roots"] = int((found.count == POSTURES).sum())
    made["attempts"] = np.bincount(found.attempts).tolist()
    made["largest Newton step"] = float(found.error[found.finished].max())
    made["largest residual"] = largest_residual(family, targets, found.roots)
    made["us per platform"] = 1e6 * made["s of the whole call"] / count
    if TARGET == "cuda":
        import cupy as cp

        made["gpu"] = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
        made["cupy"] = cp.__version__
    print(json.dumps(made, indent=1), flush=True)
    target.write_text(json.dumps(made, indent=1))
    assert made["platforms with 40 roots"] == count, "some platforms have fewer roots"
    assert made["largest residual"] < RESIDUAL


if __name__ == "__main__":
    TARGET = os.environ.get("TRACK_ON", "cuda")  # "cpu" tries the script without a GPU
    main()
