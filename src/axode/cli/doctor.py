"""`axode doctor`: what is installed, and whether it works."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from axode.cli.options import Result
from axode.cli.output import show_entries
from axode.errors import AxodeError, install_command
from axode.model.model_parts import function_tape


@dataclass(frozen=True)
class Finding:
    """Result of one check."""

    what: str
    passed: bool
    detail: str
    seconds: float


def doctor(result: Result) -> None:
    """Print what a bug report needs: what is installed, whether it works, and problems.

    axode doctor

    axode doctor --json
    """

    facts = _all_facts()
    found: list[Finding] = []
    if not result.as_json:
        show_entries("Axode on this machine", _entries(facts))
        print()
    for finding in _findings():
        found.append(finding)
        if not result.as_json:
            word = "OK    " if finding.passed else "FAILED"
            print(f"{word}  {finding.what}: {finding.detail} ({finding.seconds:.1f} s)", flush=True)
    problems = _problems(facts, found)
    data = facts | {"checks": [asdict(finding) for finding in found], "problems": problems}
    data["passed"] = not problems
    text = "\n  ".join(["\nProblems:", *problems]) if problems else "All is well."
    result.deliver(data, lambda: print(text))


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


# facts -------------------------------------------------------------------------------------------


def _all_facts() -> dict[str, Any]:
    from axode.codegen.host import host
    from axode.codegen.targets.cpu import cpu_count

    return {
        "system": system(),
        "processor": processor(),
        "target": host().cpu,
        "lanes": host().lanes,
        "threads": cpu_count(),
        "gpu": gpu(),
        "cache": cache(),
        "folders": folders(),
        "versions": versions(),
        "extras": extras(),
    }


def _entries(facts: dict[str, Any]) -> list[tuple[str, str]]:
    system, extras = facts["system"], facts["extras"]
    packages = {name: v for one in extras.values() for name, v in one["packages"].items()}
    there = [f"{name} {version}" for name, version in packages.items() if version != "missing"]
    absent = [
        (f"no {name}", f"for {one['for']}: {install_command(extra)}")
        for extra, one in extras.items()
        for name, version in one["packages"].items()
        if version == "missing"
    ]
    variables = [f"{name}={value}" for name, value in system["variables"].items()]
    stored = facts["cache"]
    kept = "off (AXODE_CACHE)"
    if stored["folder"]:
        state = "" if stored["writable"] else "not writable, "
        kept = f"{stored['folder']}, {state}{stored['files']} files, "
        kept += f"{stored['bytes'] / 2**20:.1f} MiB"
    return [
        ("system", system["platform"]),
        ("python", system["python"]),
        ("processor", f"{facts['processor']} ({facts['target']})"),
        ("code", f"{facts['lanes']} lanes, {facts['threads']} threads"),
        ("compiler", system["compiler"] or "none (FMUs for this machine need one)"),
        *_gpu_entries(facts["gpu"], system["ptxas"]),
        ("cache", kept),
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
    from axode.disk.object_cache import ObjectCache, cache_directory

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

    if not gpu()["name"]:
        return True, ""
    states = _states(known["model"], 101)
    got = np.asarray(known["equations"].compile("cuda").forward_dynamics(*states))
    size = np.abs(known["vector"]).max()
    error = float(np.abs(got - known["vector"]).max() / size)
    return error < 1e-11, f"differs from the processor by {error:.0e}"


# this machine and this installation ---------------------------------------------------------------


NEEDED = ("numpy", "scipy", "casadi", "llvmlite", "pydantic", "typer", "rich")
# what each extra brings, and what for
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "plot": (("matplotlib",), "figures"),
    "view": (("viser",), "the viewer in a browser"),
    "report": (("latex2mathml", "ziamath"), "equations in reports"),
    "control": (("control",), "python-control systems"),
    "data": (("pandas", "pyarrow", "xarray"), "tables"),
    "cluster": (("distributed",), "sweeps on a Dask cluster"),
    "sym": (("sympy",), "SymPy expressions"),
    "mujoco": (("mujoco",), "MJCF files"),
    "xacro": (("xacrodoc",), "xacro files"),
    "movie": (("av",), "MP4 and WebM movies"),
    "mcap": (("mcap",), "logs of ROS 2 messages"),
    "rerun": (("rerun",), "recordings of Rerun"),
    "cuda": (("cupy",), "runs on NVIDIA GPUs"),
    "torch": (("torch",), "functions in PyTorch"),
    "jax": (("jax",), "functions in JAX"),
}
PACKED_AS = {
    "cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy"),
    "rerun": ("rerun-sdk",),
}
DRIVER = Path("/proc/driver/nvidia/version")
VARIABLES = (
    "AXODE_CACHE",
    "XDG_CACHE_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_PATH",
    "CUDA_FORCE_PTX_JIT",
    "CUPY_CACHE_DIR",
    "OMP_NUM_THREADS",
    "CC",
)


def system() -> dict[str, Any]:
    """Return the operating system, which Python runs, and variables that Axode depends on."""
    from axode.codegen.targets.jit import find_program

    return {
        "platform": platform.platform(),
        "python": sys.executable,
        "compiler": find_program(os.environ.get("CC", "").split(" ")[0] or "cc"),
        "ptxas": find_program("ptxas"),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def folders() -> dict[str, dict[str, Any]]:
    """Return the folders that Axode writes to, and whether it can."""
    home = Path.home() if "HOME" in os.environ or os.name == "nt" else Path()
    found = {
        "current": Path.cwd(),
        "temporary": Path(tempfile.gettempdir()),
        "cuda cache": Path(os.environ.get("CUDA_CACHE_PATH", home / ".nv" / "ComputeCache")),
        "cupy cache": Path(os.environ.get("CUPY_CACHE_DIR", home / ".cupy" / "kernel_cache")),
    }
    return {
        name: {"folder": str(path), "exists": path.is_dir(), "writable": _writable(path)}
        for name, path in found.items()
    }


def _writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, or the folder itself."""
    nearest = next((p for p in (folder, *folder.parents) if p.exists()), folder)
    return os.access(nearest, os.W_OK | os.X_OK)


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(
            line.split(":", 1)[1].strip()
            for line in lines
            if line.startswith(("model name", "Hardware"))
        )
    except (OSError, StopIteration, IndexError):
        return platform.processor() or platform.machine() or "unknown processor"


def versions() -> dict[str, str]:
    """Return the versions of Python, of Axode and of what it requires."""
    found = {"python": platform.python_version(), "axode": sys.modules["axode"].__version__}
    return found | {name: version_of(name) for name in NEEDED}


def version_of(package: str) -> str:
    """Return the version of an installed package, or "missing"."""
    for name in PACKED_AS.get(package, (package,)):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "missing" if find_spec(package) is None else "present"


def extras() -> dict[str, dict[str, Any]]:
    """Return which optional packages are installed, and what they are for."""
    return {
        extra: {"packages": {name: version_of(name) for name in packages}, "for": use}
        for extra, (packages, use) in EXTRAS.items()
    }


def cache() -> dict[str, Any]:
    """Return the folder of compiled code, its size, and whether it can be written."""
    from axode.disk.object_cache import cache_directory

    folder = cache_directory()
    if folder is None:
        return {"folder": None, "writable": False, "files": 0, "bytes": 0}
    sizes = []
    for file in folder.glob("*") if folder.is_dir() else ():
        try:
            sizes.append(file.stat().st_size)
        except OSError:  # another process may have removed it
            continue
    return {
        "folder": str(folder),
        "writable": _writable(folder),
        "files": len(sizes),
        "bytes": sum(sizes),
    }


def gpu() -> dict[str, Any]:
    """Return the GPUs that CuPy finds, or why there are none, and the driver."""
    from axode.runtime.device import cupy, own_capability

    known: dict[str, Any] = {"name": None, "driver": driver(), "cupy": version_of("cupy")}
    try:
        runtime = cupy().cuda.runtime
        devices = [runtime.getDeviceProperties(k) for k in range(runtime.getDeviceCount())]
        names = [device["name"].decode() for device in devices]
        return known | {
            "name": names[0],
            "names": names,
            "memory": int(devices[0]["totalGlobalMem"]),
            "capability": own_capability(),
            "cuda": _cuda_version(runtime.driverGetVersion()),
            "runtime": _cuda_version(runtime.runtimeGetVersion()),
        }
    except AxodeError as error:
        missing = find_spec("cupy") is None
        return known | {"why": "CuPy is not installed" if missing else str(error).splitlines()[0]}
    except Exception as error:  # a driver may fail in ways of its own
        return known | {"why": f"{type(error).__name__}: {error}".splitlines()[0]}


def driver() -> str | None:
    """Return the version of NVIDIA's kernel driver; None if none is loaded."""
    try:
        found = re.search(r"\b\d+\.\d+(\.\d+)?\b", DRIVER.read_text(encoding="utf-8"))
    except OSError:
        return None
    return found[0] if found else "unknown version"


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
