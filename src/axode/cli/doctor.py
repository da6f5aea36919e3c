"""`axode doctor`: what is installed, and whether it works."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from axode.cli.shared import AsJson, JsonFile, deliver
from axode.model.model_parts import function_tape


@dataclass(frozen=True)
class Finding:
    """Result of one check."""

    what: str
    passed: bool
    detail: str
    seconds: float


def doctor(as_json: AsJson = False, out: JsonFile = None) -> None:
    """Print what a bug report needs: what is installed, whether it works, and problems.

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
    problems = _problems(facts, found)
    data = facts | {"checks": [asdict(finding) for finding in found], "problems": problems}
    data["passed"] = not problems
    deliver(data, lambda: _show_problems(problems), as_json=as_json, out=out)


def _problems(facts: dict[str, Any], found: list[Finding]) -> list[str]:
    """Return what is wrong, a sentence each."""
    problems = [f"{one.what}: {one.detail}" for one in found if not one.passed]
    gpu, cache = facts["gpu"], facts["cache"]
    if gpu["driver"] and not gpu["name"]:
        problems.append(f"there is a driver for NVIDIA GPUs, but no run can use one: {gpu['why']}")
    if cache["folder"] and not cache["writable"]:
        problems.append(
            f"compiled code is not kept: {cache['folder']} cannot be written; AXODE_CACHE names "
            "another folder"
        )
    for name in ("current", "temporary"):
        place = facts["folders"][name]
        if not place["writable"]:
            problems.append(f"the {name} folder {place['folder']} cannot be written")
    return problems


def _show_problems(problems: list[str]) -> None:
    print("All is well." if not problems else "\nProblems:")
    for problem in problems:
        print(f"  {problem}")


# facts -------------------------------------------------------------------------------------------


def _facts() -> dict[str, Any]:
    from axode.cli import installation
    from axode.codegen.host import host
    from axode.codegen.targets.cpu import cpu_count

    return {
        "system": installation.system(),
        "processor": installation.processor(),
        "target": host().cpu,
        "lanes": host().lanes,
        "threads": cpu_count(),
        "gpu": installation.gpu(),
        "cache": installation.cache(),
        "folders": installation.folders(),
        "versions": installation.versions(),
        "extras": installation.extras(),
    }


def _entries(facts: dict[str, Any]) -> list[tuple[str, str]]:
    system, extras = facts["system"], facts["extras"]
    packages = {name: v for one in extras.values() for name, v in one["packages"].items()}
    there = [f"{name} {version}" for name, version in packages.items() if version != "missing"]
    absent = [
        (f"no {name}", f"for {one['for']}: pip install 'axode[{extra}]'")
        for extra, one in extras.items()
        for name, version in one["packages"].items()
        if version == "missing"
    ]
    variables = [f"{name}={value}" for name, value in system["variables"].items()]
    return [
        ("system", system["platform"]),
        ("python", system["python"]),
        ("processor", f"{facts['processor']} ({facts['target']})"),
        ("code", f"{facts['lanes']} lanes, {facts['threads']} threads"),
        ("compiler", system["compiler"] or "none (FMUs for this machine need one)"),
        *_gpu_entries(facts["gpu"], system["ptxas"]),
        ("cache", _cache_entry(facts["cache"])),
        *((name, _folder_entry(place)) for name, place in facts["folders"].items()),
        ("variables", ", ".join(variables) or "none"),
        ("versions", ", ".join(f"{name} {text}" for name, text in facts["versions"].items())),
        ("extras", ", ".join(there) or "none"),
        *absent,
    ]


def _gpu_entries(gpu: dict[str, Any], ptxas: str | None) -> list[tuple[str, str]]:
    driver = f"driver {gpu['driver']}" if gpu["driver"] else "no driver"
    if not gpu["name"]:
        return [("gpu", f"none: {gpu['why']}; {driver}")]
    return [
        ("gpu", f"{', '.join(gpu['names'])}, {gpu['memory'] / 2**30:.0f} GiB"),
        ("cuda", f"{driver} (CUDA {gpu['cuda']}), CuPy {gpu['cupy']} (CUDA {gpu['runtime']})"),
        ("kernels", f"PTX for capability {gpu['capability']}, ptxas {ptxas or 'not installed'}"),
    ]


def _cache_entry(cache: dict[str, Any]) -> str:
    if not cache["folder"]:
        return "off (AXODE_CACHE)"
    state = "" if cache["writable"] else "not writable, "
    return f"{cache['folder']}, {state}{cache['files']} files, {cache['bytes'] / 2**20:.1f} MiB"


def _folder_entry(place: dict[str, Any]) -> str:
    state = "" if place["exists"] else ", not there yet"
    return f"{place['folder']}, {'writable' if place['writable'] else 'not writable'}{state}"


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
        ("kernels", _kernels),
        ("gpu", _gpu),
    ]
    for what, check in checks:
        started = time.perf_counter()
        try:
            passed, detail = check(known)
        except KeyError as error:  # of what an earlier check should have made
            passed, detail = False, f"not checked, there is no {error.args[0]}"
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


def _kernels(known: dict[str, Any]) -> tuple[bool, str]:
    """Check that LLVM writes kernels for GPUs, which needs none."""
    from axode.codegen.targets.ptx import kernel, map_program

    made = kernel(map_program(function_tape(known["model"], "forward_dynamics")))
    version = re.search(r"^\.version\s+(\S+)", made.ptx, re.M)
    return version is not None, f"LLVM writes PTX {version[1] if version else '-'}"


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
