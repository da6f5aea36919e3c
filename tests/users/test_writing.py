"""Every writer: the umask's mode, links followed, all of a file or nothing, nothing left behind."""

from __future__ import annotations

import os
import pickle
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.cli.output import write_text
from axode.disk import atomic
from tests.house.tree import relative, sources


@cache
def robot() -> ax.Mechanism:
    return gallery.build("chaplygin_sleigh")


@cache
def model() -> ax.Model:
    return robot().derive().compile()


@cache
def run() -> ax.Trajectory:
    return ax.simulate(model(), 0.1, start={"v": 1.0})


@cache
def linear() -> Any:
    return ax.linearize(gallery.build("wheeled_pendulum").derive().compile())


WRITERS: dict[str, Callable[[Path], Any]] = {
    "robot.toml": lambda path: robot().save(path),
    "robot.axm": lambda path: model().save(path),
    "robot.c": lambda path: model().export(path, ["energy"]),
    "robot.ptx": lambda path: model().export(path, ["energy"]),
    "run.npz": lambda path: run().save(path),
    "run.parquet": lambda path: run().save(path),
    "plot.svg": lambda path: run().plot("v", save=path),
    "linear.npz": lambda path: linear().save(path),
    "linear.json": lambda path: linear().save(path),
    "check.json": lambda path: write_text(path, "{}"),
}
every = pytest.mark.parametrize("name", WRITERS)


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@every
def test_new_files_have_the_mode_that_the_umask_leaves(tmp_path, name):
    WRITERS[name](tmp_path / name)
    assert {mode(path) for path in tmp_path.iterdir()} == {0o640}


@every
def test_links_are_followed_and_modes_kept(tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / name
    target.write_bytes(b"")
    target.chmod(0o604)
    link = tmp_path / name
    link.symlink_to(target)
    WRITERS[name](link)
    assert link.is_symlink() and mode(target) == 0o604 and target.stat().st_size > 0


@every
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_the_old_file_alone(tmp_path, monkeypatch, name, error):
    """A hidden draft of 168 MB stayed behind."""
    path = tmp_path / name
    WRITERS[name](path)
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir()}

    def stop(*_):
        raise error

    monkeypatch.setattr(atomic.os, "fsync", stop)
    with pytest.raises((KeyboardInterrupt, ax.FileError)):
        WRITERS[name](path)
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == before


def test_nobody_else_can_read_what_takes_the_place_of_a_private_file(tmp_path, monkeypatch):
    """The draft of a file of mode 600 had the mode that the umask leaves."""
    path = tmp_path / "robot.toml"
    path.touch(0o600)
    drafts = []
    replace = atomic.os.replace

    def look(draft, target):
        drafts.append(mode(draft))
        replace(draft, target)

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", lambda handle: drafts.append(os.fstat(handle).st_mode))
        patch.setattr(atomic.os, "replace", look)
        robot().save(path)
    assert [drafts[0] & 0o777, drafts[1], mode(path)] == [0o600] * 3


@pytest.mark.skipif(
    getattr(os, "geteuid", int)() != 0 or os.name == "nt", reason="only root may give files away"
)
@pytest.mark.parametrize("had", [0o4755, 0o6777, 0o640])
def test_root_leaves_files_to_their_owners_and_gives_them_no_rights(tmp_path, had):
    """A file that runs as its owner became one that runs as root."""
    path = tmp_path / "robot.toml"
    path.touch()
    os.chown(path, 1234, 4321)
    path.chmod(had)
    robot().save(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode(path)) == (1234, 4321, had & 0o777)


def test_a_group_that_cannot_be_kept_has_no_permissions(tmp_path, monkeypatch):
    """Another group read what was written for the one that the file had."""
    path = tmp_path / "robot.toml"
    path.touch()
    path.chmod(0o664)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(atomic.os, "chown", refuse)
    robot().save(path)
    assert mode(path) == 0o604


KILLED = """
import os, sys
from axode.disk.atomic import stream_atomically
with stream_atomically(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("go", flush=True)
    sys.stdin.read()
"""


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    """And nothing of one that still writes: both write the whole file."""
    path = tmp_path / f"{'ä' * 120}.toml"  # names may have 255 bytes, and drafts are longer
    command = [sys.executable, "-P", "-c", KILLED, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"go\n"
        robot().save(path)
        assert len(list(tmp_path.iterdir())) == 2
        process.kill()
        process.wait()
        assert len(list(tmp_path.iterdir())) == 2
        robot().save(path)
        assert list(tmp_path.iterdir()) == [path]


def test_all_that_was_left_by_several_is_removed(tmp_path):
    """Drafts but the first stayed for ever."""
    path = tmp_path / "robot.toml"
    command = [sys.executable, "-P", "-c", KILLED, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == b"go\n"
    for process in processes:
        process.kill()
        process.communicate()
    assert len(list(tmp_path.iterdir())) == 3
    robot().save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_many_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "numbers.bin"
    texts = [bytes([k]) * 4096 for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda text: atomic.write_atomically(path, text), texts * 5):
            assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_there_is_one_writer():
    """Nothing else writes files, except for assembler and compiler, in folders of their own."""
    writes = re.compile(
        r"\.write_(text|bytes)\(|open\([^)]*[\"'][wax]b?[\"']|os\.(replace|rename)\("
    )
    found = {
        relative(path)
        for path in sources()
        if writes.search(path.read_text()) and path.parent.name != "disk"
    }
    encoder = "src/axode/show/render/movie_files.py"  # into a stream of the one writer
    cells = "src/axode/printing/derivation/pages.py"  # what a notebook does when it is run
    tools = {"src/axode/codegen/targets/ptx.py", "src/axode/exports/fmu.py"}
    assert found == {*tools, encoder, cells}


def test_a_pipe_that_nobody_reads_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ax.FileError, match="cannot write"):
        robot().save(tmp_path / "pipe.toml")


def test_a_path_with_a_zero_byte_is_an_error(tmp_path):
    with pytest.raises(ax.FileError, match="null byte"):
        model().save(str(tmp_path / "a\0.axm"))
    with pytest.raises(ax.FileError, match="null byte"):
        robot().save(str(tmp_path / "a\0.toml"))


@pytest.mark.parametrize("formulation", ["recursive", "lagrange"])
def test_equations_travel_to_other_processes(formulation):
    equations = gallery.build("four_bar").derive(formulation)
    again = pickle.loads(pickle.dumps(equations))
    assert (again.formulation, again.independent) == (formulation, equations.independent)
    first, second = (e.compile(target="interpreter") for e in (equations, again))
    q, nu = first.home, np.ones(len(first.independent))
    np.testing.assert_allclose(
        first.forward_dynamics(q, nu), second.forward_dynamics(q, nu), rtol=1e-12
    )
