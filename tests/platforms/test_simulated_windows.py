"""Branches for Windows, run where the calls of POSIX are taken away.

Windows has neither owners and modes of files nor handles of folders, no `fcntl` and no `fork`; open
files can be neither renamed nor removed there. `tests/platforms/wine.md` of no file says more: what
ran on a real Windows interpreter stands in docs/develop/trust.md.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from axode.disk import atomic, bounded, object_cache
from axode.disk.object_cache import CacheWarning, ObjectCache, cache_directory
from axode.errors import FileError
from tests.house.tree import relative, sources

ROOT = Path(__file__).parents[2]
# Names of `os` that Windows lacks, or has from Python 3.12 on.
POSIX = (
    *("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "geteuid", "getuid", "chown", "set_blocking"),
    *("register_at_fork", "fork", "sched_getaffinity", "sysconf", "mkfifo", "killpg", "getpgid"),
)
KEY, OTHER = "a" * 64, "b" * 64


class Msvcrt:
    """Locks of one byte that every handle has for itself, as the C library of Windows has them."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, handle: int, mode: int, count: int) -> None:
        status = os.fstat(handle)
        place = (status.st_dev, status.st_ino)
        if self.held.setdefault(place, handle) != handle:
            raise PermissionError(13, "Permission denied")


@pytest.fixture
def windows(monkeypatch, tmp_path):
    """Take away what Windows lacks; functions refuse handles of folders, as they do there."""
    for name in POSIX:
        monkeypatch.delattr(os, name, raising=False)
    for name in ("open", "stat", "unlink", "utime"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    monkeypatch.setattr(atomic, "fcntl", None)
    library = Msvcrt()
    monkeypatch.setattr(atomic, "msvcrt", library, raising=False)
    monkeypatch.setattr(object_cache, "_HAS_OWNERS", False)
    monkeypatch.delattr(bounded.select, "poll", raising=False)
    return library


def refusing(function):
    def called(path, *rest, dir_fd=None, **options):
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        return function(path, *rest, **options)

    return called


def test_compiled_code_is_kept(windows, tmp_path):
    cache = ObjectCache(tmp_path / "cache", limit=3500)
    assert cache.read(KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.write(KEY, bytes(1000))
        assert cache.read(KEY) == bytes(1000)
        os.utime(tmp_path / "cache" / f"{KEY}.o", (1, 1))
        for k in range(3):  # the oldest one goes
            cache.write(f"{k:064x}", bytes(1000))
    assert cache.read(KEY) is None and cache.read(f"{2:064x}") == bytes(1000)
    (tmp_path / "cache" / f"{OTHER}.o").write_bytes(b"damaged")
    with pytest.warns(CacheWarning, match="is damaged"):
        assert cache.read(OTHER) is None


def test_a_link_is_no_cache_there_either(windows, tmp_path):
    (tmp_path / "planted").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "planted")
    with pytest.warns(CacheWarning, match="is a link"):
        ObjectCache(tmp_path / "cache").write(KEY, b"code")
    assert not list((tmp_path / "planted").iterdir())


@pytest.mark.parametrize(
    ("system", "below"),
    [
        ("win32", ("local", "axode")),
        ("darwin", ("home", "Library", "Caches", "axode")),
        ("linux", ("home", ".cache", "axode")),
    ],
)
def test_the_cache_lies_where_the_system_keeps_caches(monkeypatch, tmp_path, system, below):
    for name in ("AXODE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(object_cache.sys, "platform", system)
    assert cache_directory() == tmp_path.joinpath(*below)
    if system == "win32":
        monkeypatch.setenv("LOCALAPPDATA", "relative")
        assert cache_directory() == tmp_path / "home" / "AppData" / "Local" / "axode"


def test_files_are_written_whole(windows, tmp_path, monkeypatch):
    """A draft is closed before it is renamed, and a reader that is slow to close is waited for."""
    file = tmp_path / "robot.toml"
    atomic.write_atomically(file, b"first")
    real, refusals = os.replace, [1, 1]

    def busy(source, target):
        if refusals:
            refusals.pop()
            raise PermissionError(13, "Access is denied")
        return real(source, target)

    monkeypatch.setattr(os, "replace", busy)
    atomic.write_atomically(file, b"second")
    assert file.read_bytes() == b"second" and not refusals
    monkeypatch.setattr(atomic, "PATIENCE", 0.0)
    refusals.extend([1] * 3)
    with pytest.raises(FileError, match="Access is denied"):
        atomic.write_atomically(file, b"third")
    assert file.read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["robot.toml"]


def test_old_drafts_are_removed_and_young_ones_are_left(windows, tmp_path):
    """Without locks only age tells a draft that a killed process left."""
    file = tmp_path / "run.npz"
    old, young = (tmp_path / f".run.npz.axode-{k}.part" for k in (0, 1))
    for draft in (old, young):
        draft.write_bytes(b"unfinished")
    os.utime(old, (1, 1))
    atomic.write_atomically(file, b"whole")
    assert file.read_bytes() == b"whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "run.npz"]


def test_one_process_writes_to_a_folder(windows, tmp_path):
    first = atomic.FolderLock(tmp_path)
    with pytest.raises(FileError, match="is being written by another process"):
        atomic.FolderLock(tmp_path)
    first.release()
    windows.held.clear()  # as closing does
    atomic.FolderLock(tmp_path).release()


def test_a_folder_is_named_as_one(windows, tmp_path):
    """Windows says 'Permission denied' where a folder is opened as a file."""
    for read in (lambda: bounded.read_bounded(tmp_path, 10, "file"), bounded.open_plain):
        with pytest.raises(IsADirectoryError):
            read() if read is not bounded.open_plain else read(tmp_path)
    (tmp_path / "file").write_bytes(b"\r\n\x1a")
    assert bounded.read_bounded(tmp_path / "file", 10, "file") == b"\r\n\x1a"


@pytest.mark.parametrize(("terminal", "expected"), [(False, "Θ → ∞".encode()), (True, b"? ? ?")])
def test_letters_of_other_alphabets_can_be_printed(monkeypatch, terminal, expected):
    """Output of Windows is in the alphabet of the country, where it is no terminal."""
    from axode import cli

    raw = io.BytesIO()
    raw.isatty = lambda: terminal  # type: ignore[method-assign]
    stream = io.TextIOWrapper(raw, encoding="cp1252", newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    cli._print_any_letter()
    stream.write("Θ → ∞")
    stream.flush()
    assert raw.getvalue() == expected


def test_meshes_on_another_drive_keep_their_place(monkeypatch, tmp_path):
    from axode.mechanism.elements.bodies import Mesh
    from axode.mechanism.files import imported

    def refused(*paths):
        raise ValueError("path is on mount 'C:', start on mount 'D:'")

    (tmp_path / "wheel.stl").write_bytes(b"solid")
    mesh = Mesh(file="wheel.stl", folders=(str(tmp_path),))
    assert imported._address(mesh, tmp_path / "out") == "../wheel.stl"
    monkeypatch.setattr(os.path, "relpath", refused)
    assert imported._address(mesh, tmp_path / "out") == (tmp_path / "wheel.stl").as_posix()


def test_a_port_in_use_is_not_taken(monkeypatch):
    """Reuse of addresses, as POSIX has it, takes a port from another server on Windows."""
    from axode.show.viewer import server

    asked = []

    class Probe:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def setsockopt(self, level, option, value):
            asked.append(option)

        def bind(self, address):
            pass

    fake = SimpleNamespace(
        AF_INET=2, AF_INET6=10, SOCK_STREAM=1, SOL_SOCKET=1, SO_REUSEADDR=4,
        SO_EXCLUSIVEADDRUSE=-5, socket=lambda *_: Probe(),
    )  # fmt: skip
    monkeypatch.setattr(server, "socket", fake)
    assert server._is_free("127.0.0.1", 1) and asked == [-5]


def test_paths_of_compilers_keep_their_backslashes(monkeypatch):
    from axode.exports import fmu

    asked = []
    monkeypatch.setattr(fmu, "os", SimpleNamespace(environ=os.environ, name="nt"))
    monkeypatch.setenv("CC", r'"C:\Program Files\LLVM\bin\clang.exe" -O1')
    monkeypatch.setattr(fmu, "find_program", lambda name: asked.append(name))
    with pytest.raises(fmu._NoBinary):
        fmu.find_compiler()
    assert asked == [r"C:\Program Files\LLVM\bin\clang.exe"]


def unnamed_encodings(text: str) -> list[int]:
    """Lines that read or write text in whatever alphabet the system has."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        named = any(keyword.arg == "encoding" for keyword in node.keywords)
        if name in ("read_text", "write_text") and isinstance(node.func, ast.Attribute):
            named |= len(node.args) > (name == "write_text")
            lines += [] if named else [node.lineno]
        elif isinstance(node.func, ast.Name) and name == "open":
            lines += [] if named else [node.lineno]
    return lines


def test_text_files_have_one_encoding():
    """Windows reads and writes texts in the alphabet of the country unless it is named."""
    assert unnamed_encodings("path.read_text()\npath.write_text(x)\nopen(f)") == [1, 2, 3]
    assert not unnamed_encodings("path.read_text('utf-8')\npath.write_text(x, encoding='utf-8')")
    texts = {path: path.read_text("utf-8") for path in sources()}
    faults = {
        relative(path): lines
        for path, text in texts.items()
        if re.search(r"\.(read|write)_text\(|(?<![.\w])open\(", text)
        and (lines := unnamed_encodings(text))
    }
    assert not faults


WHOLE = """
import os, select, sys
sys.path[:0] = {folders!r}
import casadi, llvmlite.binding, numpy, scipy.linalg, scipy.sparse
from platforms.test_simulated_windows import refusing
for name in [name for name in sys.modules if name.startswith("axode")]:
    del sys.modules[name]
for name in {names!r}:
    vars(os).pop(name, None)
vars(select).pop("poll", None)
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None

class Msvcrt:
    LK_NBLCK = 2
    locking = staticmethod(lambda handle, mode, count: None)

sys.modules["msvcrt"] = Msvcrt
for name in ("open", "stat", "unlink", "utime"):
    setattr(os, name, refusing(getattr(os, name)))
import numpy as np
import axode as ax
from axode.disk import atomic, object_cache
assert atomic.fcntl is None and not object_cache._HAS_OWNERS
model = ax.gallery.build("wheeled_pendulum").derive().compile()
run = ax.simulate(model, 0.2, start={{"theta3": 0.3}}, progress=False)
stepper = model.stepper(step=1e-3)
stepper.step(steps=10)
run.save(sys.argv[1] + "/run.npz")
model.save(sys.argv[1] + "/model.axm")
again = ax.load_model(sys.argv[1] + "/model.axm")
print(float(run.energy_error), again.name)
"""


@pytest.mark.slow
def test_everything_runs_without_the_calls_of_posix(tmp_path):
    """In a process that never had them: import, derive, compile, simulate, write, read."""
    code = WHOLE.format(names=POSIX, folders=[str(ROOT / "src"), str(ROOT), str(ROOT / "tests")])
    env = {**os.environ, "AXODE_CACHE": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-P", "-W", "error::UserWarning", "-c", code, str(tmp_path)],
            capture_output=True, text=True, env=env, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.split()[0]) < 1e-6
    assert list((tmp_path / "cache").glob("*.o"))
    assert np.load(tmp_path / "run.npz", allow_pickle=False).files
