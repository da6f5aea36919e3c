"""Facts about this machine and this installation."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NEEDED = ("numpy", "scipy", "casadi", "llvmlite", "pydantic", "typer", "rich")
# what each extra brings, and what for: pip install 'axode[plot]'
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "plot": (("matplotlib",), "figures"),
    "view": (("viser",), "the viewer in a browser"),
    "report": (("latex2mathml", "ziamath"), "equations in reports"),
    "control": (("control",), "python-control systems"),
    "data": (("pandas", "pyarrow", "xarray"), "tables"),
    "cluster": (("distributed",), "sweeps on a Dask cluster"),
    "sym": (("sympy",), "SymPy expressions"),
    "mujoco": (("mujoco",), "MJCF files"),
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
    from axode.codegen.targets.compiler_process import find_program

    return {
        "platform": platform.platform(),
        "python": sys.executable,
        "compiler": find_program(os.environ.get("CC", "").split(" ")[0] or "cc"),
        "ptxas": find_program("ptxas"),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def folders() -> dict[str, dict[str, Any]]:
    """Return the folders that Axode writes to, and whether it can."""
    home = Path.home() if "HOME" in os.environ else Path()
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
    from axode.codegen.targets.object_cache import cache_directory

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
    from axode.errors import AxodeError
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
