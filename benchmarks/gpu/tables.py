"""Saved numbers of a GPU, Axode's and its peers', as tables of the manual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Table = Callable[[Sequence[str], Any], str]
WORDS = {
    "arm": "7-dof arm, direct dynamics",
    "platform": "6-UPS, direct dynamics",
    "pendulum": "wheeled pendulum, direct dynamics",
    "caster": "caster robot, direct dynamics",
    "pendulum_rk4": "wheeled pendulum, RK4 steps",
    "caster_rk4": "caster robot, RK4 steps",
    "arm_rk4": "7-dof arm, RK4 steps",
}


def conditions(found: dict[str, Any]) -> str:
    """Where, when, and what the chip can do."""
    top = found["ceilings"]
    return (
        f"{found['date']}, commit `{found['commit']}`, {found['gpu']}, CuPy {found['cupy']}. "
        f"Measured ceilings: {top['float64 GFLOP/s']:.3g} GFLOP/s in float64, "
        f"{top['float32 GFLOP/s']:.3g} in float32 (fused multiply-adds, two operations each), "
        f"{top['GB/s']:.3g} GB/s."
    )


def kernels(found: dict[str, Any], table: Table) -> str:
    """The best batch of every kernel."""
    rows = []
    for (kernel, precision), row in fastest(found).items():
        flops = found["ceilings"][f"{precision} GFLOP/s"]
        rows.append(
            (
                WORDS[kernel],
                precision,
                f"{rate(row):.3g}",
                f"2^{row['batch'].bit_length() - 1}",
                f"{100 * row['GFLOP/s'] / flops:.0f} %",
                str(row["registers"]),
                str(row["spilled bytes"]),
                f"{row['error']:.0e}",
            )
        )
    return table(
        (
            "kernel",
            "precision",
            "per second",
            "batch",
            "of the FLOP ceiling",
            "registers",
            "bytes spilled",
            "error",
        ),
        rows,
    )


def fastest(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Row of the best batch by kernel and precision, with as many registers as it asks for."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found["rows"]:
        key = row["kernel"], row["precision"]
        wanted = max(r["registers"] for r in found["rows"] if (r["kernel"], r["precision"]) == key)
        if row["registers"] == wanted and rate(row) > rate(best.get(key, {})):
            best[key] = row
    return best


def rate(row: dict[str, Any]) -> float:
    """Evaluations or steps per second."""
    return float(row.get("evaluations/s", row.get("steps/s", 0.0)))


def peers(found: dict[str, Any], peers: dict[str, Any], table: Table) -> str:
    """The fastest of each peer, and how many times faster Axode is in float64."""
    ours = {name: rate(row) for (name, kind), row in fastest(found).items() if kind == "float64"}
    kernel = {"pendulum": "pendulum_rk4", "arm": "arm", "platform": "platform"}
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for stage in peers["stages"].values():
        for row in (r for r in stage["rows"] if "rate" in r):
            key = row["peer"], row["what"], row["precision"]
            if row["rate"] > best.get(key, {"rate": 0.0})["rate"]:
                best[key] = row
    rows = []
    for (peer, what, precision), row in best.items():
        mine = ours[kernel.get(what, "pendulum_rk4")]
        batch = f"2^{row['batch'].bit_length() - 1}"
        rows.append(
            (f"{peer}, {what}", precision, f"{row['rate']:.3g}", batch, f"{mine / row['rate']:.3g}")
        )
    return table(("peer", "precision", "per second", "batch", "Axode, float64, times faster"), rows)


def calls(found: dict[str, Any], table: Table) -> str:
    """Whole calls: functions of the caster robot, sweeps, and the first call of a process."""
    functions, sweeps, cold = [], [], []
    for row in found["rows"]:
        if "evaluations/s" in row:
            if not row["what"].startswith("caster"):
                continue
            took = f"{row['us a call']:.3g} us"
            batch = f"2^{row['batch'].bit_length() - 1}"
            rate = f"{row['evaluations/s']:.3g}"
            functions.append((row["arrays"], batch, took, rate))
        elif "runs" in row:
            runs, took = f"2^{row['runs'].bit_length() - 1}", f"{row['s a call']:.3g} s"
            kept = row["what"].rpartition("sweep, ")[2]
            rate = f"{row['steps/s']:.3g}"
            sweeps.append((kept, row["arrays"], runs, str(row["steps"]), took, rate))
        else:
            kind = row["what"].rpartition(", ")[2]
            parts = ("s to import axode", "s to import cupy", "s to the result")
            cold.append((kind, *(f"{row[part]:.2f}" for part in parts)))
    about = f"{found['date']}, commit `{found['commit']}`, {found['gpu']}, CuPy {found['cupy']}."
    return "\n\n".join(
        [
            about,
            table(("forward_dynamics, arrays", "batch", "a call", "per second"), functions),
            table(("times the transfers alone", "batch", "NumPy, out=", "NumPy"), _ratios(found)),
            table(("sweep", "results", "runs", "steps", "a call", "steps/s"), sweeps),
            table(("caches", "import axode [s]", "import cupy [s]", "first sweep [s]"), cold),
        ]
    )


def gradients(found: dict[str, Any], table: Table) -> str:
    """Steps backwards, the best batch of each robot, and whole calls of `gradient`."""
    best: dict[str, dict[str, Any]] = {}
    for row in sorted(found["rows"], key=lambda row: float(row["reverse steps/s"])):
        best[row["kernel"]] = row
    names = {"pendulum": "wheeled pendulum", "caster": "caster robot", "arm": "7-dof arm"}
    steps = [
        (
            names[kernel.partition(",")[0]],
            f"{row['logged steps/s']:.3g}",
            f"{row['reverse steps/s']:.3g}",
            f"{row['gradient steps/s']:.3g}",
            f"2^{row['batch'].bit_length() - 1}",
            str(row["registers"]),
            str(row["spilled bytes"]),
            f"{row['error']:.0e}",
        )
        for kernel, row in best.items()
    ]
    calls = [
        (
            f"2^{row['runs'].bit_length() - 1}",
            f"{1e3 * row['s a call']:.3g} ms",
            f"{row['steps/s']:.3g}",
            f"{row['times the sweep']:.3g}",
        )
        for row in found["calls"]
    ]
    heads = ("float64", "logged steps/s", "steps back/s", "both", "batch", "registers")
    about = f"{found['date']}, commit `{found['commit']}`, {found['gpu']}, CuPy {found['cupy']}."
    return "\n\n".join(
        [
            about,
            table((*heads, "bytes spilled", "error"), steps),
            table(("runs of 1000 steps", "a call", "steps/s", "times a sweep"), calls),
        ]
    )


def _ratios(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """How many times as long as the transfers calls on NumPy arrays take, by function and batch."""
    took = {
        (row["what"], row["batch"], row["arrays"]): row["us a call"]
        for row in found["rows"]
        if "evaluations/s" in row
    }
    rows = []
    for what, batch in dict.fromkeys((what, batch) for what, batch, _ in took):
        alone = took[what, batch, "NumPy: transfers alone, page-locked"]
        ratios = (took[what, batch, kind] / alone for kind in ("NumPy, out=", "NumPy"))
        name = what.partition(",")[0]
        rows.append((name, f"2^{batch.bit_length() - 1}", *(f"{ratio:.2f}" for ratio in ratios)))
    return rows
