"""The wheel and the source archive: the same bytes from the same sources, for any system."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import axode
from tests.house.tree import ROOT, tracked_files

pytest.importorskip("hatchling")


def build(folder: Path, stamp: float) -> dict[str, str]:
    """Build from a copy whose files have another date; digests by name."""
    for file in tracked_files():
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        os.utime(target, (stamp, stamp))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "hatchling", "build"],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600", "PYTHONHASHSEED": str(int(stamp))},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "dist").iterdir())
    }


@pytest.mark.slow
def test_distributions_have_the_same_bytes_and_the_files_that_users_need(tmp_path):
    first = build(tmp_path / "one", 1e9)
    assert first == build(tmp_path / "two", 1.5e9)
    stem = f"axode-{axode.__version__}"
    assert set(first) == {f"{stem}.tar.gz", f"{stem}-py3-none-any.whl"}
    folder = tmp_path / "one" / "dist"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        about = wheel.read(f"{stem}.dist-info/METADATA").decode()
    package = {path.relative_to(ROOT / "src").as_posix() for path in tracked_files()
               if path.is_relative_to(ROOT / "src")}  # fmt: skip
    assert package <= names and "axode/py.typed" in package
    assert {name.partition("/")[0] for name in names} == {"axode", f"{stem}.dist-info"}
    assert "Typing :: Typed" in about and "Requires-Python: >=3.11" in about
    with tarfile.open(folder / f"{stem}.tar.gz") as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "CITATION.cff", "CHANGELOG.md", "pyproject.toml", "recipe/meta.yaml"}
    assert wanted <= inside and "src/axode/py.typed" in inside
