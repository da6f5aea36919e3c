"""`axode doctor`: what is installed, and whether it works."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import typer

from axode.cli.shared import WRONG_DATA, AsJson, JsonFile, deliver


@dataclass(frozen=True)
class Finding:
    """Result of one check."""

    what: str
    passed: bool
    detail: str
    seconds: float


def doctor(as_json: AsJson = False, out: JsonFile = None) -> None:
    """Print what is installed and check that it works; takes a few seconds.

    axode doctor

    axode doctor --json
    """
    from axode.cli.tables import show_entries

    facts = _facts()
    found: list[Finding] = []
    if not as_json:
        show_entries("Axode on this machine", _entries(facts))
        print()
    for finding in _findings():
        found.append(finding)
        if not as_json:
            word = "OK    " if finding.passed else "FAILED"
            print(f"{word}  {finding.what}: {finding.detail} ({finding.seconds:.1f} s)", flush=True)
    passed = all(finding.passed for finding in found)
    data = facts | {"checks": [asdict(finding) for finding in found], "passed": passed}
    last = "All is well." if passed else "Something is wrong: see the lines that say FAILED."
    deliver(data, lambda: print(last), as_json=as_json, out=out)
    if not passed:
        raise typer.Exit(WRONG_DATA)


# facts -------------------------------------------------------------------------------------------


def _facts() -> dict[str, Any]:
    from axode.cli import installation
    from axode.codegen.targets.cpu import cpu_count
    from axode.codegen.targets.jit import host

    return {
        "processor": installation.processor(),
        "target": host().cpu,
        "lanes": host().lanes,
        "threads": cpu_count(),
        "gpu": installation.gpu(),
        "cache": installation.cache(),
        "versions": installation.versions(),
        "extras": installation.extras(),
    }


def _entries(facts: dict[str, Any]) -> list[tuple[str, str]]:
    gpu, cache = facts["gpu"], facts["cache"]
    kept = "off (AXODE_CACHE)"
    if cache["folder"]:
        state = "" if cache["check_writable"] else "NOT check_writable, "
        kept = f"{cache['folder']}, {state}{cache['files']} files, {cache['bytes'] / 2**20:.1f} MiB"
    graphics = gpu.get("why") or (
        f"{gpu['name']}, {gpu['memory'] / 2**30:.0f} GiB, capability "
        f"{gpu['capability']}, driver {gpu['driver']}"
    )
    there = [
        f"{one['package']} {one['version']}"
        for one in facts["extras"].values()
        if one["version"] != "missing"
    ]
    absent = [
        (f"no {one['package']}", f"for {one['for']}: pip install 'axode[{extra}]'")
        for extra, one in facts["extras"].items()
        if one["version"] == "missing"
    ]
    return [
        ("processor", f"{facts['processor']} ({facts['target']})"),
        ("code", f"{facts['lanes']} lanes, {facts['threads']} threads"),
        ("gpu", graphics),
        ("cache", kept),
        ("versions", ", ".join(f"{name} {text}" for name, text in facts["versions"].items())),
        ("extras", ", ".join(there) or "none"),
        *absent,
    ]


# checks ------------------------------------------------------------------------------------------


def _findings() -> Iterator[Finding]:
    """Run the checks one after the other; one that raises does not stop the others."""
    known: dict[str, Any] = {}
    checks: list[tuple[str, Callable[[dict[str, Any]], tuple[bool, str]]]] = [
        ("derive", _derive),
        ("machine code", _machine_code),
        ("threads", _threads),
        ("cache", _cache),
        ("simulate", _simulate),
        ("loops", _loops),
        ("published case", _case),
        ("gpu", _gpu),
    ]
    for what, check in checks:
        started = time.perf_counter()
        try:
            passed, detail = check(known)
        except Exception as error:  # whatever it is, it is the finding
            passed, detail = False, f"{type(error).__name__}: {error}".splitlines()[0]
        if detail:
            yield Finding(what, passed, detail, time.perf_counter() - started)


def _derive(known: dict[str, Any]) -> tuple[bool, str]:
    from axode import gallery

    known["equations"] = gallery.build("wheeled_pendulum").derive()
    report = known["equations"].mobility
    return report.mobility == 3, f"a wheeled pendulum has mobility {report.mobility}"


def _states(model: Any, count: int) -> tuple[Any, Any, Any]:
    import numpy as np

    rng = np.random.default_rng(1)
    sizes = (len(model.coordinates), len(model.independent), len(model.inputs))
    return tuple(rng.normal(size=(count, size)) for size in sizes)  # type: ignore[return-value]


def _machine_code(known: dict[str, Any]) -> tuple[bool, str]:
    import numpy as np

    known["model"] = known["equations"].compile()
    q, nu, u = _states(known["model"], 101)
    vector = known["model"].forward_dynamics(q, nu, u, threads=1)
    rows = zip(q, nu, u, strict=True)
    scalar = np.array([known["model"].forward_dynamics(*row) for row in rows])
    expected = known["equations"].compile("interpreter").forward_dynamics(q, nu, u)
    known["vector"] = vector
    size = np.abs(expected).max(axis=-1, keepdims=True)
    errors = [float((np.abs(got - expected) / size).max()) for got in (scalar, vector)]
    return max(errors) < 1e-11, (
        f"differs from the interpreter by {errors[0]:.0e} (scalar) and {errors[1]:.0e} (vector)"
    )


def _threads(known: dict[str, Any]) -> tuple[bool, str]:
    import numpy as np

    from axode.codegen.targets.cpu import cpu_count

    states = _states(known["model"], 101)
    got = known["model"].forward_dynamics(*states, threads=cpu_count())
    same = bool(np.array_equal(got, known["vector"]))
    return (
        same,
        f"{cpu_count()} give {'the same bits as one' if same else 'other numbers than one'}",
    )


def _cache(known: dict[str, Any]) -> tuple[bool, str]:
    """Check that the cache can be written and read."""
    from axode.codegen.targets.object_cache import ObjectCache, cache_directory

    folder = cache_directory()
    if folder is None:
        return True, "off"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache, name, probe = ObjectCache(folder), f"doctor-{os.getpid()}", b"is it kept?"
        cache.write(name, probe)
        kept = cache.read(name) == probe
        (folder / f"{name}.o").unlink(missing_ok=True)
    return kept, str(caught[0].message) if caught else f"{folder} keeps what is compiled"


def _simulate(known: dict[str, Any]) -> tuple[bool, str]:
    from axode.problems.simulate.simulate import simulate

    run = simulate(known["model"], 2.0, start={"theta3": 0.5, "surge": 0.3}, progress=False)
    return run.energy_error < 1e-6, f"energy is conserved to {run.energy_error:.0e} over 2 s"


def _loops(known: dict[str, Any]) -> tuple[bool, str]:
    from axode import gallery
    from axode.problems.assemble.assemble import assemble

    model = gallery.build("four_bar").derive().compile("interpreter")
    state = assemble(model, {"theta1": 1.0})
    return state.residual < 1e-9, f"a four-bar linkage closes to {state.residual:.0e} m"


def _case(known: dict[str, Any]) -> tuple[bool, str]:
    from axode.literature.acceptance import checks_of
    from axode.literature.acceptance.cases import load_cases

    case = load_cases()[0]
    checks = checks_of(case)
    good = sum(check.passed for check in checks)
    return good == len(checks), f"{good} of {len(checks)} quantities of {case.id} agree"


def _gpu(known: dict[str, Any]) -> tuple[bool, str]:
    import numpy as np

    from axode.cli.installation import gpu

    if not gpu()["name"]:
        return True, ""
    states = _states(known["model"], 101)
    got = np.asarray(known["equations"].compile("cuda").forward_dynamics(*states))
    size = np.abs(known["vector"]).max()
    error = float(np.abs(got - known["vector"]).max() / size)
    return error < 1e-11, f"differs from the processor by {error:.0e}"
