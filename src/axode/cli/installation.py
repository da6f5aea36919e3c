"""Facts about this machine and this installation."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NEEDED = ("numpy", "scipy", "casadi", "llvmlite", "pydantic", "typer", "rich")
# what each extra brings, and what for: pip install 'axode[plot]'
EXTRAS = {
    "plot": ("matplotlib", "figures"),
    "view": ("viser", "the viewer in a browser"),
    "control": ("control", "python-control systems"),
    "data": ("pandas", "tables"),
    "sym": ("sympy", "SymPy expressions"),
    "mujoco": ("mujoco", "MJCF files"),
    "movie": ("av", "MP4 and WebM movies"),
    "mcap": ("mcap", "logs of ROS 2 messages"),
    "rerun": ("rerun", "recordings of Rerun"),
    "cuda": ("cupy", "runs on NVIDIA GPUs"),
}
PACKED_AS = {
    "cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy"),
    "rerun": ("rerun-sdk",),
}


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


def extras() -> dict[str, dict[str, str]]:
    """Return which optional packages are installed, and how to install the others."""
    return {
        extra: {"package": package, "version": version_of(package), "for": use}
        for extra, (package, use) in EXTRAS.items()
    }


def cache() -> dict[str, Any]:
    """Return the folder of compiled code, its size, and whether it can be written."""
    from axode.codegen.targets.object_cache import cache_directory

    folder = cache_directory()
    if folder is None:
        return {"folder": None, "check_writable": False, "files": 0, "bytes": 0}
    sizes = []
    for file in folder.glob("*") if folder.is_dir() else ():
        try:
            sizes.append(file.stat().st_size)
        except OSError:  # another process may have removed it
            continue
    nearest = next((p for p in (folder, *folder.parents) if p.exists()), folder)
    return {
        "folder": str(folder),
        "check_writable": os.access(nearest, os.W_OK | os.X_OK),
        "files": len(sizes),
        "bytes": sum(sizes),
    }


def gpu() -> dict[str, Any]:
    """Return the GPU that CuPy finds, or why there is none."""
    from axode.errors import AxodeError
    from axode.runtime.cuda import cupy

    try:
        module = cupy()
        device = module.cuda.runtime.getDeviceProperties(0)
        return {
            "name": device["name"].decode(),
            "memory": int(device["totalGlobalMem"]),
            "driver": module.cuda.runtime.driverGetVersion(),
            "capability": str(module.cuda.Device().compute_capability),
        }
    except AxodeError as error:
        why = (
            "not used: CuPy is not installed"
            if find_spec("cupy") is None
            else str(error).splitlines()[0]
        )
        return {"name": None, "why": why}
    except Exception as error:  # a driver may fail in ways of its own
        return {"name": None, "why": f"{type(error).__name__}: {error}".splitlines()[0]}
