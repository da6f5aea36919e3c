"""The wheels of the peers, fetched for a machine without a network, less what they do not need."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PYTHON = "3.12"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")

# What JAX's own installation brings (NumPy, SciPy) is not carried.
MUJOCO = (
    "mujoco==4.0.0",
    "mujoco-core==4.0.0",
    "mujoco-mjx==3.17.0",
    "mujoco-warp==4.0.0",
    "etils==1.14.0",
    "absl-py",
    "fsspec",
    "trimesh",
    "typing_extensions",
    "zipp",
)
WARP = ("warp-lang==1.19.0",)

# Folders and files that only tests, pictures and the CPU need.
SPARE = (
    "mujoco/mjx/test_data",
    "mujoco/studio",
    "mujoco/include",
    "mujoco/doc",
    "mujoco/plugin",
    "mujoco/mjx/third_party/mujoco_warp/test_data",
    "mujoco_warp/test_data",
    "mujoco/_render_filament*",
    "mujoco/_simulate*",
    "warp/bin/warp-clang.so",
    "warp/examples",
    "warp/tests",
    "warp/__init__.pyi",
)


def fetch(wheels: tuple[str, ...], folder: Path) -> None:
    """Download wheels for the other machine and unpack them into one folder."""
    shutil.rmtree(folder, ignore_errors=True)
    store = folder.with_name(f"{folder.name}-wheels")
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    command = [
        *(
            sys.executable,
            "-P",
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
        ),
        *("--python-version", PYTHON, *platforms, "--dest", str(store), *wheels),
    ]
    subprocess.run(command, check=True)
    for wheel in sorted(store.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    for pattern in SPARE:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(store)
