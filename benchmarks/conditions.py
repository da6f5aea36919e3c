"""On what, with what and when something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import axode as ax
from axode.codegen.host import host
from axode.codegen.targets.cpu import cpu_count

PACKAGES = ("casadi", "numpy", "scipy", "llvmlite", "pin", "mujoco", "sympy")
ROOT = Path(__file__).parent.parent


def conditions() -> dict[str, str]:
    """Date, commit, processor, load, system and versions, in words."""
    found = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "processor": f"{_processor()} ({host().cpu}), {cpu_count()} cores, {host().lanes} lanes",
        "load before": load(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    found["axode"] = ax.__version__
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def load() -> str:
    """Load averages of the last 1, 5 and 15 minutes: other work beside ours."""
    return (
        ", ".join(f"{x:.2f}" for x in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    )


def _commit() -> str:
    """The commit of the checkout, marked if files differ from it."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        changed = _git(
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            "src",
            "benchmarks",
            ":!benchmarks/results",
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}, with local changes" if changed else commit


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
