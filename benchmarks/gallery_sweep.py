"""Sweep every mechanism of the gallery, and check what becomes of every row.

    python -m benchmarks.gallery_sweep --out benchmarks/results/DATE-gallery-sweep.json

Rows start at home with random independent speeds, without inputs, and run for half a second with
the default settings of `sweep`. Per mechanism: how many rows finished, are inaccurate or were
refused; the largest energy error of a finished row, relative to the row's largest energy (kinetic,
change of potential, work), and how many are beyond the tolerance of the audit; the largest distance
of some finished rows from a fine adaptive `simulate`; how many refused rows a fine `simulate`
finishes; and how many numbers change when the sweep is repeated, when its chunks are shorter, and
when rows are swept alone. `--markdown` prints the table of such a file. With `--target cuda` all
sweeps run on a GPU, and every row is compared with the CPU's too.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import axode as ax
from axode.model.model import Model
from axode.results.sweep_result import Sweep
from benchmarks.conditions import conditions

Array = npt.NDArray[np.float64]
DURATION = 0.5  # [s]
SPEED = 0.3  # largest independent speed [rad/s, m/s]
SEED = 26
ALONE = 8  # rows that are swept alone, and finished rows that are simulated
FINE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14}
ENERGIES = ("kinetic", "supplied", "dissipated")
COUNTS = ("finished", "inaccurate", "refused")


def starts(model: Model, rows: int) -> tuple[Array, Array]:
    """Home configurations with random independent speeds, (rows, size) each."""
    q = ax.assemble(model).q
    nu = np.random.default_rng(SEED).uniform(-SPEED, SPEED, (rows, len(model.independent)))
    return np.broadcast_to(q, (rows, len(q))).copy(), nu


def swept(model: Model, start: tuple[Array, Array], **options: Any) -> Sweep:
    """Sweep the rows; outputs are the last state, the balance of energies and their sizes."""
    outputs = {name: ("last", name) for name in (*model.coordinates, *model.independent)}
    outputs |= {f"largest {name}": ("largest", name) for name in ("error", *ENERGIES)}
    outputs |= {"lowest": ("min", "potential"), "highest": ("max", "potential")}
    return ax.sweep(model, DURATION, start=start, outputs=outputs, **options)


def bits(result: Sweep, rows: Any = slice(None)) -> list[bytes]:
    """All numbers and the status of each row."""
    table = np.stack([np.asarray(result[name])[rows] for name in result], axis=-1)
    table[np.isnan(table)] = np.nan  # all NaN alike
    return [row.tobytes() + t.encode() for row, t in zip(table, texts(result)[rows], strict=True)]


def texts(result: Sweep) -> Any:
    """How each row ended."""
    return np.array([str(result.status[row]) for row in range(result.runs)], dtype=object)


def differ(some: list[bytes], others: list[bytes]) -> int:
    """Count rows that are not the same."""
    return sum(a != b for a, b in zip(some, others, strict=True))


def simulated(model: Model, start: tuple[Array, Array], row: int) -> tuple[str, Any]:
    """Simulate one row finely: how it ended, and the trajectory."""
    q, nu = start
    try:
        run = ax.simulate(model, DURATION, start=(q[row], nu[row]), save_every=DURATION, **FINE)
    except ax.SimulationFailed as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}", error.trajectory
    return run.status, run


def beside(model: Model, start: tuple[Array, Array], result: Sweep) -> dict[str, Any]:
    """Compare rows with those of the CPU: how they end, and their last states."""
    others = swept(model, start)
    same = texts(result) == texts(others)
    done = same & (texts(others) == "finished")
    names = (*model.coordinates, *model.independent)
    far = [np.abs(np.asarray(result[name]) - np.asarray(others[name]))[done] for name in names]
    return {
        "rows that end otherwise": int((~same).sum()),
        "distance": max((float(f.max(initial=0.0)) for f in far), default=0.0),
    }


def judge(model: Model, rows: int, target: str = "cpu") -> dict[str, Any]:
    """Sweep a model, and compare its rows with themselves and with fine runs."""
    start = starts(model, rows)
    there: dict[str, Any] = {"target": target}
    began = time.perf_counter()
    result = swept(model, start, **there)
    seconds = time.perf_counter() - began
    status = texts(result)
    finished = np.flatnonzero(status == "finished")
    refused = [
        k for k, text in enumerate(status) if text != "finished" and "inaccurate" not in text
    ]
    sizes = [np.asarray(result[f"largest {name}"]) for name in ENERGIES]
    begun = float(model.energy(start[0][0], start[1][0])[1])
    sizes += [np.abs(np.asarray(result[name]) - begun) for name in ("lowest", "highest")]
    size = np.max(sizes, axis=0)
    error = np.asarray(result["largest error"]) / np.where(size > 0, size, 1.0)
    found: dict[str, Any] = {
        "rows": rows,
        "seconds": round(seconds, 2),
        "finished": len(finished),
        "inaccurate": rows - len(finished) - len(refused),
        "refused": len(refused),
        "statuses": dict(result.statuses),
        "info": {key: value for key, value in result.info.items() if key != "seconds"},
    }
    if finished.size:
        worst = int(finished[np.argmax(error[finished])])
        beyond = error[finished] > (result.info.get("energy_tolerance") or np.inf)
        found |= {"energy error": float(error[worst]), "worst row": worst}
        found |= {"beyond tolerance": int(beyond.sum())}
    found["distances"] = {}
    for row in sorted({*finished[:ALONE].tolist(), *([worst] if finished.size else [])}):
        text, run = simulated(model, start, row)
        names = (*model.coordinates, *model.independent)
        far = max(abs(float(result[name][row]) - float(run.final[name])) for name in names)
        found["distances"][row] = far if text == "finished" else text
    ends = {row: simulated(model, start, row)[0] for row in refused}
    found["not confirmed"] = [row for row, text in ends.items() if text == "finished"]
    reasons = {row: result.reasons.get(row, status[row]) for row in refused}
    found["reasons"] = {row: [reasons[row], ends[row]] for row in refused[:ALONE]}
    alone = sorted({*np.linspace(0, rows - 1, ALONE).astype(int).tolist(), *refused[:2]})
    pieces = [(start[0][k : k + 1], start[1][k : k + 1]) for k in alone]
    singly = [bits(swept(model, piece, **there))[0] for piece in pieces]
    shorter = swept(model, start, chunk=max(rows // 7, 1), **there)
    found["bits"] = {
        "second time": differ(bits(result), bits(swept(model, start, **there))),
        "other chunks": differ(bits(result), bits(shorter)),
        "alone": differ(bits(result, alone), singly),
    }
    if target != "cpu":
        found["beside the CPU"] = beside(model, start, result)
    return found


def markdown(table: dict[str, dict[str, Any]]) -> str:
    """Table for the documentation."""
    lines = [
        "| mechanism | finished | inaccurate | refused | of these a fine run finishes "
        "| energy error | beyond tolerance | distance from fine runs | rows that change |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in table.items():
        if "crash" in found:
            lines.append(f"| {name} | {found['crash']} |")
            continue
        far = [x for x in found["distances"].values() if isinstance(x, float)]
        lines.append(
            f"| {name} | "
            + " | ".join(str(found[key]) for key in COUNTS)
            + f" | {len(found['not confirmed'])} | {found.get('energy error', np.nan):.0e} | "
            f"{found.get('beyond tolerance', '')} | "
            f"{max(far, default=np.nan):.0e} | {sum(found['bits'].values())} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Sweep, print and record after every mechanism."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--only", nargs="+", default=list(ax.gallery.NAMES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path, help="print the table of such a file, and stop")
    options = parser.parse_args()
    if options.markdown:
        print(markdown(json.loads(options.markdown.read_text())["mechanisms"]))
        return
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {"conditions": conditions(), "mechanisms": {}}
    for name in options.only:
        try:
            model = ax.gallery.build(name).derive().compile()
            found = judge(model, options.rows, options.target)
        except ax.AxodeError as error:  # a finding too, and the others go on
            found = {"crash": f"{type(error).__name__}: {error}"}
        record["mechanisms"][name] = found
        shown = {key: value for key, value in found.items() if key not in ("info", "reasons")}
        print(name, json.dumps(shown, default=str), flush=True)
        if options.out:
            draft = options.out.with_suffix(".part")
            draft.write_text(json.dumps(record, indent=1, default=str) + "\n")
            os.replace(draft, options.out)
    print(markdown(record["mechanisms"]))


if __name__ == "__main__":
    main()
