"""Saved numbers to the manual: its tables between marks, and its figures.

    python -m benchmarks.report

takes the newest file of every section in results/ that has all of its numbers, and rewrites
docs/develop/benchmarks.md.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import SCALAR, SIMD
from benchmarks.from_python import COLUMNS, calls
from benchmarks.gpu import tables
from benchmarks.machine import rival, times_of
from benchmarks.simulation import ACCURACY
from benchmarks.timing import Times
from benchmarks.workspace import summary as workspace_rows

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PAGE = ROOT / "docs" / "develop" / "benchmarks.md"
IMAGES = ROOT / "docs" / "assets" / "images"


def newest(section: str, folder: Path = RESULTS, back: int = 0) -> dict[str, Any]:
    """The last saved numbers of a section, or those saved some files before."""
    files = sorted(folder.glob(f"????-??-??-{section}.json"))  # not of another that ends so
    if not files:
        raise SystemExit(
            f"no numbers of '{section}' in {folder.name}/; "
            f"run python -m benchmarks.run {section} --save"
        )
    if back >= len(files):
        raise IndexError(f"only {len(files)} files of '{section}'")
    return json.loads(files[-1 - back].read_text())


def written(section: str) -> tuple[dict[str, str], str]:
    """The parts of the page of a section, and what the newest of its numbers lack.

    They are made of the last numbers that are complete; of none, there are no parts.
    """
    lacks = ""
    for back in range(len(list(RESULTS.glob(f"????-??-??-{section}.json"))) or 1):
        numbers = newest(section, back=back)
        try:
            parts = PARTS.items()
            return {part: write(numbers) for part, (s, write) in parts if s == section}, lacks
        except LookupError as error:
            lacks = lacks or (f"no {error}" if isinstance(error, KeyError) else str(error))
    return {}, lacks


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown, all columns but the first to the right."""
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def conditions(found: dict[str, Any]) -> str:
    """Where and with what, in a sentence."""
    c = found["conditions"]
    versions = ", ".join(
        f"{name} {c[name]}"
        for name in ("casadi", "numpy", "scipy", "llvmlite", "pin", "mujoco", "sympy")
    )
    return (
        f"{c['date'][:10]}, commit `{c['commit']}`, {c['processor']}, {c['system']}; load "
        f"average before {c['load before']}, after {c['load after']} (1, 5, 15 minutes; the "
        f"run itself counts); {c['quiet']}; {versions}."
    )


def targets(found: dict[str, Any]) -> str:
    rows = []
    for t in found["targets"]:
        sign = "≤" if t["at_most"] else "≥"
        measured = "-" if t["measured"] is None else f"{t['measured']:.3g}"
        verdict = t["verdict"] if t["verdict"] == "met" else f"**{t['verdict']}**"
        rows.append(
            (
                t["what"],
                t["against"] or "-",
                f"{sign} {t['wanted']:g} {t['unit']}",
                measured,
                verdict,
            )
        )
    return table(("what", "against", "target", "measured", ""), rows)


def contests(found: dict[str, Any]) -> str:
    """One table a mechanism and function."""
    parts = []
    for case in found["cases"]:
        scalar, simd = times_of(case, SCALAR), times_of(case, SIMD)
        rows = []
        for name in case["seconds"]:
            t = times_of(case, name)
            error = case["errors"].get(name)
            strong = name in (SCALAR, SIMD)
            rows.append(
                (
                    f"**{name}**" if strong else name,
                    f"{1e9 * t.median:.1f}",
                    f"{1e9 * t.least:.1f}",
                    f"{100 * (t.most / t.least - 1):.0f} %",
                    f"{t.median / scalar.median:.2f}",
                    f"{t.median / simd.median:.2f}",
                    "-" if error is None else f"{error:.0e}",
                    case["remarks"].get(name, ""),
                )
            )
        title = f"### {case['mechanism']}: {case['function']} dynamics"
        columns = ("who", "median ns", "least", "spread", "× scalar", "× SIMD", "error", "remark")
        parts.append(f"{title}\n\n{case['operations']} operations.\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def code(found: dict[str, Any]) -> str:
    rows = []
    for case in found["cases"]:
        one, two = (Times(tuple(case["large"][n])) for n in ("1", "2"))
        call, scalar = Times(tuple(case["single_call"])), times_of(case, SCALAR)
        size = case["code_bytes"]
        rows.append(
            (
                f"{case['mechanism']}, {case['function']}",
                str(case["operations"]),
                size["1"],
                list(size.values())[-1],
                f"{1e9 * one.median:.1f}",
                f"{1e9 * two.median:.1f}",
                f"{one.median / two.median:.2f}",
                f"{one.least / two.least:.2f}",
                f"{1e6 * call.median:.2f}",
                f"{1e6 * (call.median - scalar.median):.2f}",
            )
        )
    columns = (
        "function",
        "operations",
        "bytes scalar",
        "bytes SIMD",
        "1 thread, ns",
        "2 threads, ns",
        "gain, medians",
        "gain, least",
        "a call, µs",
        "of it overhead, µs",
    )
    return table(columns, (tuple(map(str, row)) for row in rows))


def startup(found: dict[str, Any]) -> str:
    stages = list(next(iter(found["startup"].values()))["fresh"])
    rows = [
        (f"{label}, {kind}", *(f"{1e3 * Times(tuple(times[s])).median:.1f}" for s in stages))
        for label, kinds in found["startup"].items()
        for kind, times in kinds.items()
    ]
    return table(("milliseconds", *(s.replace("_", " ") for s in stages)), rows)


def disk(found: dict[str, Any]) -> str:
    times = {name: Times(tuple(s)) for name, s in found["rolling_disk"]["seconds"].items()}
    slowest = next(iter(times.values()))
    rows = [
        (name, f"{1e6 * t.median:.3f}", f"{1e6 * t.least:.3f}", f"{slowest.median / t.median:.1f}")
        for name, t in times.items()
    ]
    return table(("rolling disk, direct dynamics", "median µs", "least", "times faster"), rows)


def growth(found: dict[str, Any]) -> str:
    parts = []
    for family, size in (("chain", "links"), ("platform", "legs")):
        rows = []
        for row in found[family]:
            scalar, simd, peer = (times_of(row, n) for n in (SCALAR, SIMD, rival(row)))
            built = [
                f"{1e3 * Times(tuple(row[k])).median:.0f}"
                for k in ("derive", "compile_scalar", "compile_simd")
            ]
            rows.append(
                (
                    str(row["size"]),
                    str(row["operations"]),
                    *built,
                    f"{1e9 * scalar.median:.0f}",
                    f"{1e9 * simd.median:.1f}",
                    f"{1e9 * peer.median:.0f}",
                    rival(row).removeprefix("Pinocchio "),
                    f"{peer.median / scalar.median:.1f}",
                    f"{peer.median / simd.median:.1f}",
                )
            )
        columns = (
            size,
            "operations",
            "derive ms",
            "compile scalar ms",
            "compile SIMD ms",
            "scalar ns",
            "SIMD ns",
            "Pinocchio ns",
            "its fastest",
            "× scalar",
            "× SIMD",
        )
        parts.append(table(columns, rows))
    return "\n\n".join(parts)


def simulation(found: dict[str, Any]) -> str:
    times = {name: Times(tuple(s)) for name, s in found["seconds_a_step"].items()}
    one, many = list(times.values())[:2]
    rows = [
        (
            name,
            f"{1 / t.median:,.0f}".replace(",", " "),
            f"{1e9 * t.median:.1f}",
            f"{1e9 * t.least:.1f}",
            f"{t.median / one.median:.1f}",
            f"{t.median / many.median:.1f}",
        )
        for name, t in times.items()
    ]
    speed = table(
        ("who", "steps per second", "median ns per step", "least", "× one run", "× batch"), rows
    )
    checks = found["checks"]
    rows = [
        (label, *(f"{checks[key]:.5g}" if key in checks else "-" for key in (ours, theirs)))
        for label, ours, theirs in ACCURACY
    ]
    right = table(("90 s at 1 ms", "Axode", "MuJoCo"), rows)
    ends = [
        f"- {name}: {1e3 * Times(tuple(s)).median:.1f} ms for 90 s of motion."
        for name, s in found["adaptive_seconds"].items()
    ]
    whole = Times(tuple(found["whole_call_seconds"]))
    ends.append(
        f"- The whole call of `axode.simulate`, 90 s at 1 ms, all columns recorded at 501 "
        f"instants: {1e3 * whole.median:.1f} ms."
    )
    return "\n\n".join([speed, right, "\n".join(ends)])


def stiff(found: dict[str, Any]) -> str:
    """Who needs how many steps and how long, by mechanism and tolerance."""
    parts = []
    for name, case in found.items():
        if name == "conditions":
            continue
        rows = []
        for row in case["rows"]:
            extended = "extended from" in row
            steps = "-" if row["steps"] is None else f"{row['steps']:,}".replace(",", " ")
            rows.append(
                (
                    f"{row['method']}{', extended' if extended else ''}",
                    f"{row['rtol']:.0e}",
                    steps,
                    str(row.get("rates", "-")),
                    f"{row['seconds']:.3g}",
                    "-" if row["error"] is None else f"{row['error']:.0e}",
                )
            )
        columns = (
            f"{name}, {case['seconds of motion']:g} s",
            "rtol",
            "steps",
            "rates",
            "CPU s",
            "error",
        )
        parts.append(table(columns, rows))
    return "\n\n".join(parts)


def derivatives(found: dict[str, Any]) -> str:
    """Direct dynamics with all first derivatives against Pinocchio, the least of all turns."""
    rows = []
    for label, row in found["derivatives"].items():
        least = {name: min(seconds) for name, seconds in row["times"].items()}
        peer = next((t for name, t in least.items() if name.startswith("Pinocchio")), None)
        if peer is None:
            raise LookupError(
                f"no times of Pinocchio C++ beside {label}; install the peers, then run "
                "python -m benchmarks.run derivatives --save"
            )
        ours = [f"{1e9 * least[name]:.0f} ns ({peer / least[name]:.1f})" for name in (SCALAR, SIMD)]
        compiled = [f"{row['seconds'][f'compile {name}']:.1f}" for name in (SCALAR, SIMD)]
        rows.append(
            (
                label,
                spaced(row["operations"]),
                f"{1e6 * peer:.1f} us",
                *ours,
                " / ".join(compiled),
                f"{row['error']:.0e}",
            )
        )
    heads = ("", "operations", "Pinocchio C++", "single", "batch", "compiled [s]", "error")
    return table(heads, rows)


def derivation(found: dict[str, Any]) -> str:
    rows = []
    for m in found["derivation"]:
        ms = [
            f"{1e3 * Times(tuple(m[k]['seconds'])).median:.0f}"
            for k in ("derive", "build_inverse", "build_direct")
        ]
        rows.append(
            (
                m["label"],
                str(m["speeds"]),
                str(m["mobility"]),
                f"{m['error']:.0e}",
                *ms,
                str(m["inverse_operations"] or "-"),
                str(m["direct_operations"]),
            )
        )
    return table(
        (
            "mechanism",
            "speeds",
            "free",
            "error",
            "derive ms",
            "inverse ms",
            "direct ms",
            "operations inverse",
            "operations direct",
        ),
        rows,
    )


def large(found: dict[str, Any]) -> str:
    """Operations and seconds by size for one robot, then the longest of the others."""
    old = {(r["robot"], r["size"]): r for r in newest("large-before")["robots"]}
    robots = {(r["robot"], r["size"]): r for r in found["robots"]}
    parts = []
    for kind, size in robots:
        rows = [
            _large_row(name, *_large_pair(robots[kind, size], old.get((kind, size)), name))
            for name in (*robots[kind, size]["calls"], *robots[kind, size]["functions"])
        ]
        shown = [row for row in rows if row is not None]
        columns = ("what", "seconds before", "seconds", "operations before", "operations")
        if shown:
            parts.append(f"### {kind}, {size} speeds\n\n{table(columns, shown)}")
    return "\n\n".join(parts)


def _large_pair(new: dict[str, Any], old: dict[str, Any] | None, name: str) -> list[Any]:
    """Seconds before and now, operations before and now; None where not measured."""
    found: list[Any] = []
    for robot in (old, new):
        call = robot and robot["calls"].get(name)
        f = robot and robot["functions"].get(name)
        found.append(
            (call, None)
            if call is not None
            else (f["build"] + f["compile"], f["operations"])
            if f
            else (None, None)
        )
    return found


def _large_row(name: str, old: tuple[Any, Any], new: tuple[Any, Any]) -> tuple[str, ...] | None:
    if max(old[0] or 0.0, new[0]) < 0.5:
        return None
    seconds = ["-" if x is None else f"{x:.1f}" for x in (old[0], new[0])]
    operations = ["" if x is None else str(x) for x in (old[1], new[1])]
    return name, *seconds, *operations


def sweeps(found: dict[str, Any]) -> str:
    """Whole calls, memory, others on the same study, and workers."""
    steps, sizes, cores = found["steps"], found["sizes"], found["cores"]
    rows = []
    for name, seconds in found["whole"].items():
        whole, kernel = (Times(tuple(seconds[part])) for part in ("whole", "kernel"))
        runs = sizes[name]
        ratios = [a / b for a, b in zip(seconds["whole"], seconds["kernel"], strict=True)]
        rows.append(
            (
                f"`{name}`, {spaced(runs)} runs of {steps} steps",
                f"{whole.median:.3g}",
                f"{kernel.median:.3g}",
                f"{Times(tuple(ratios)).median:.2f}",
                f"{runs * steps / whole.median / cores / 1e6:.1f}",
            )
        )
    columns = ("whole call", "s", "compiled steps s", "ratio", "million steps per second and core")
    parts = [table(columns, rows)]
    rows = [
        (spaced(int(runs)), f"{m['seconds']:.3g}", f"{m['before_mb']:.0f}", f"{m['peak_mb']:.0f}")
        for runs, m in found["memory"].items()
    ]
    parts.append(table(("runs into a store", "s", "MB before", "MB at most"), rows))
    times = {name: Times(tuple(s)) for name, s in found["contest"].items()}
    first = next(iter(times.values()))
    rows = [
        (
            name,
            spaced(round(1 / t.median)),
            f"{1e6 * t.median:.1f}",
            f"{t.median / first.median:,.0f}".replace(",", " "),
            f"{found['checks'][name]:.0e}" if name in found["checks"] else "-",
        )
        for name, t in times.items()
    ]
    parts.append(table(("who", "runs per second", "median µs per run", "ratio", "apart"), rows))
    rows = []
    for name, seconds in found["workers"].items():
        one, two = (min(seconds[n]) for n in ("1", "2"))
        rows.append((name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}"))
    title = f"{spaced(sizes['workers'])} runs on"
    parts.append(table((title, "one s", "two s", "gain"), rows))
    return "\n\n".join(parts)


def spaced(number: int) -> str:
    """Thousands apart."""
    return f"{number:,}".replace(",", " ")


def workspaces(found: dict[str, Any]) -> str:
    """A hexapod's workspace, on the CPU and, where that was measured, on a GPU."""
    there = list(RESULTS.glob("*-gpu-workspace.json"))
    columns = ("", "poses", "s", "CPU s", "poses/s")
    return table(columns, workspace_rows(found, newest("gpu-workspace") if there else None))


def loaded(found: dict[str, Any]) -> str:
    """CPU time of reading robots from their files."""
    kinds = ("urdf", "toml", "pinocchio")
    rows = [
        (name, str(robot["links"]), *(Times(tuple(robot[k])).text(digits=2) for k in kinds))
        for name, robot in found["robots"].items()
    ]
    return table(("", "links", "URDF ms", "TOML ms", "Pinocchio, URDF ms"), rows)


PARTS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "machine conditions": ("machine", conditions),
    "machine targets": ("machine", targets),
    "contests": ("machine", contests),
    "code": ("machine", code),
    "startup": ("machine", startup),
    "disk": ("machine", disk),
    "from_python conditions": ("from_python", conditions),
    "from_python": ("from_python", lambda found: table(COLUMNS, calls(found))),
    "growth conditions": ("growth", conditions),
    "growth": ("growth", growth),
    "large conditions": ("large", conditions),
    "large": ("large", large),
    "loading conditions": ("loading", conditions),
    "loading": ("loading", loaded),
    "simulation conditions": ("simulate", conditions),
    "simulation targets": ("simulate", targets),
    "simulation": ("simulate", simulation),
    "sweeps conditions": ("sweeps", conditions),
    "sweeps targets": ("sweeps", targets),
    "sweeps": ("sweeps", sweeps),
    "stiff conditions": ("stiff", conditions),
    "stiff": ("stiff", stiff),
    "workspace conditions": ("workspace", conditions),
    "workspace": ("workspace", workspaces),
    "derivation conditions": ("derive", conditions),
    "derivation": ("derive", derivation),
    "derivatives conditions": ("derivatives", conditions),
    "derivatives": ("derivatives", derivatives),
    "gpu conditions": ("gpu", tables.conditions),
    "gpu kernels": ("gpu", lambda found: tables.kernels(found, table)),
    "gpu calls": ("gpu-calls", lambda found: tables.calls(found, table)),
    "gpu gradients": ("gpu-gradients", lambda found: tables.gradients(found, table)),
    "gpu peers": ("gpu", lambda found: tables.peers(found, newest("gpu-peers"), table)),
}


def filled(page: str, part: str, text: str) -> str:
    """The page with what is between a part's marks replaced."""
    begin, end = f"<!-- {part} begins -->", f"<!-- {part} ends -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{PAGE.name} has no marks '{begin}' and '{end}'")
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page)


def main() -> int:
    """Rewrite the page and the figures; sections without complete numbers stay as they were."""
    from benchmarks.figures import draw_growth, draw_work_precision

    page, missing, older = PAGE.read_text(), list[str](), list[str]()
    for section in dict.fromkeys(s for s, _ in PARTS.values()):
        texts, lacks = written(section)
        if lacks:
            told = f"{section}, whose newest numbers have {lacks}"
            (older if texts else missing).append(told)
        for part, text in texts.items():
            page = filled(page, part, text)
    PAGE.write_text(page)
    files = [PAGE, *draw_growth(newest("growth"), IMAGES)]
    files += draw_work_precision(newest("work-precision")["measured"], IMAGES)
    print("written: " + ", ".join(str(file.relative_to(ROOT)) for file in files))
    for told in older:
        print(f"from older numbers: {told}", file=sys.stderr)
    for told in missing:
        print(f"left as it was: {told}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
