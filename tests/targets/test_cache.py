"""The object cache: hits, damage, permissions, eviction, switching off."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.tape.tape import Tape
from axode.codegen.targets import jit
from axode.codegen.targets.cpu import CompiledFunction
from axode.disk.object_cache import CacheWarning, ObjectCache, cache_directory
from tests.targets import functions

KEYS = [f"{k:064x}" for k in range(4)]

ROOT = Path(__file__).parents[2]
of_posix = pytest.mark.skipif(
    not hasattr(os, "geteuid"), reason="Windows keeps neither owners nor modes of files"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("AXODE_CACHE", str(path))
    return path


def arm() -> CompiledFunction:
    return CompiledFunction(Tape.from_casadi(functions.spatial_arm(3)))


def run(compiled: CompiledFunction):
    return compiled(*(np.full(3, x) for x in (0.1, 0.2, 0.3)))


def test_a_second_start_compiles_nothing(folder, monkeypatch):
    first = arm()
    result = run(first)
    assert first.from_cache == {1: False}
    monkeypatch.setattr(jit, "_compile", lambda *_: pytest.fail("compiled again"))
    monkeypatch.setattr(kernel, "module", lambda *_: pytest.fail("wrote IR again"))
    second = arm()
    np.testing.assert_array_equal(run(second), result)
    assert second.from_cache == {1: True} and second.compile_seconds[1] < 0.5


@of_posix
def test_directory_is_private(folder):
    run(arm())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    assert not list(folder.glob("*.part"))


@of_posix
@pytest.mark.parametrize("folder", [".", "cache", "../cache"])
def test_no_code_is_read_from_below_the_working_folder(monkeypatch, tmp_path, folder):
    """What came with a folder of files that somebody sent ran, if the cache was named so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXODE_CACHE", folder)
    with pytest.warns(CacheWarning, match="AXODE_CACHE a full path"):
        assert cache_directory() is None
    monkeypatch.delenv("AXODE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "axode"
    monkeypatch.setenv("HOME", "home")
    with pytest.warns(CacheWarning, match="AXODE_CACHE a full path"):
        assert cache_directory() is None


@of_posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o720])
def test_a_folder_that_others_can_write_to_is_refused_and_not_changed(folder, mode):
    """A shared temporary folder, named as the cache, must not become one user's own."""
    run(arm())
    before = sorted(path.name for path in folder.iterdir())
    folder.chmod(mode)
    again = arm()
    with pytest.warns(CacheWarning, match=rf"others can write to .*mode {mode:o}.*chmod 700"):
        run(again)
    assert again.from_cache == {1: False}
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    assert sorted(path.name for path in folder.iterdir()) == before


@of_posix
def test_a_folder_that_others_can_read_serves(folder):
    folder.mkdir(mode=0o755)
    run(arm())
    again = arm()
    run(again)
    assert again.from_cache == {1: True} and stat.S_IMODE(folder.stat().st_mode) == 0o755


@of_posix
def test_a_linked_folder_is_refused(folder, tmp_path):
    (tmp_path / "planted").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "planted")
    with pytest.warns(CacheWarning, match="is a link; name the folder itself"):
        run(arm())
    assert not list((tmp_path / "planted").iterdir())


@of_posix
@pytest.mark.parametrize("harm", ["writable", "linked", "fifo", "another key", "foreign"])
def test_planted_files_do_not_run(folder, tmp_path, monkeypatch, harm):
    """Each file is judged after it was opened; none of these is the user's own object."""
    result = run(arm())
    (path,) = folder.glob("*.o")
    if harm == "writable":
        path.chmod(0o666)
    elif harm == "linked":
        path.rename(tmp_path / "planted.o")
        path.symlink_to(tmp_path / "planted.o")
    elif harm == "fifo":
        path.unlink()
        os.mkfifo(path, 0o600)
    elif harm == "another key":
        CompiledFunction(Tape.from_casadi(functions.planar_chain(2))).prepare(batch=False)
        (other,) = set(folder.glob("*.o")) - {path}
        other.replace(path)
    else:
        real = os.fstat

        def of_another(handle):
            status = real(handle)
            regular = stat.S_ISREG(status.st_mode)
            return os.stat_result([*status[:4], status[4] + int(regular), *status[5:]])

        monkeypatch.setattr(os, "fstat", of_another)
    again = arm()
    with pytest.warns(CacheWarning, match="not cached"):
        np.testing.assert_array_equal(run(again), result)
    assert again.from_cache == {1: False}


def test_an_intact_file_that_holds_no_object_is_compiled_afresh(folder):
    result = run(arm())
    (path,) = folder.glob("*.o")
    ObjectCache(folder).write(path.stem, b"certainly no object file")
    again = arm()
    np.testing.assert_array_equal(run(again), result)
    assert again.from_cache == {1: False}
    third = arm()
    run(third)
    assert third.from_cache == {1: True}


def test_only_own_files_are_removed(tmp_path):
    """A folder of the user's own objects may be named by mistake."""
    folder = tmp_path / "cache"
    cache = ObjectCache(folder, limit=3500)
    cache.write(KEYS[0], bytes(1000))
    own = folder / "program.o"
    own.write_bytes(bytes(9000))
    draft, old = (folder / f"{KEYS[1]}.{'0' * 15}{k}.part" for k in (1, 2))
    for path in (draft, old):
        path.write_bytes(b"unfinished")
    os.utime(old, (0, 0))
    for key in KEYS[1:]:
        cache.write(key, bytes(1000))
    assert own.exists() and draft.exists() and not old.exists()


@of_posix
def test_home_is_expanded_and_may_be_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AXODE_CACHE", "~/objects")
    assert cache_directory() == tmp_path / "objects"
    code = """
import os, sys, warnings
os.environ.pop("HOME", None), os.environ.pop("AXODE_CACHE", None)
os.environ.pop("XDG_CACHE_HOME", None)
import pwd
pwd.getpwuid = lambda uid: (_ for _ in ()).throw(KeyError(uid))
warnings.simplefilter("always")
from tests.targets.test_cache import arm, run
print(run(arm()).shape)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )
    assert done.returncode == 0, done.stderr
    assert "there is no home folder; set AXODE_CACHE" in done.stderr


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "junk"])
def test_damaged_objects_are_compiled_afresh(folder, damage):
    result = run(arm())
    for path in folder.glob("*.o"):
        data = bytearray(path.read_bytes())
        if damage == "flip":
            data[len(data) // 2] ^= 1
        path.write_bytes(
            {"truncate": data[:-7], "flip": data, "empty": b"", "junk": b"x" * 999}[damage]
        )
    again = arm()
    with pytest.warns(CacheWarning, match="is damaged"):
        np.testing.assert_array_equal(run(again), result)
    assert again.from_cache == {1: False}
    third = arm()
    run(third)
    assert third.from_cache == {1: True}


def test_unusable_directory_is_a_warning(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("not a directory")
    monkeypatch.setenv("AXODE_CACHE", str(file / "below"))
    with pytest.warns(CacheWarning, match="Compiled code is not cached: cannot"):
        assert np.isfinite(run(arm())).all()


def test_unwritable_directory_is_a_warning(folder, monkeypatch):
    real = os.open

    def refused(path, flags, *rest, **options):
        if flags & os.O_CREAT and str(path).endswith(".part"):
            raise PermissionError("read-only")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refused)  # permissions do not stop root
    with pytest.warns(CacheWarning, match="cannot write"):
        assert np.isfinite(run(arm())).all()


@of_posix
def test_other_users_directory_is_not_trusted(folder, monkeypatch):
    run(arm())
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    again = arm()
    with pytest.warns(CacheWarning, match="belongs to another user"):
        run(again)
    assert again.from_cache == {1: False}


def test_cache_can_be_moved_and_switched_off(tmp_path, monkeypatch):
    for off in ("off", "0", ""):
        monkeypatch.setenv("AXODE_CACHE", off)
        assert cache_directory() is None
    compiled = arm()
    run(compiled)
    assert compiled.from_cache == {1: False}
    monkeypatch.delenv("AXODE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "axode"


def test_least_recently_used_objects_go_first(tmp_path):
    cache = ObjectCache(tmp_path / "cache", limit=3500)
    for k in range(3):
        cache.write(KEYS[k], bytes(1000))
        os.utime(tmp_path / "cache" / f"{KEYS[k]}.o", (k, k))
    assert cache.read(KEYS[0]) == bytes(1000)  # now the most recently used
    cache.write(KEYS[3], bytes(1000))
    # Down to three quarters of the limit: 2625 bytes hold two.
    assert [cache.read(KEYS[k]) is not None for k in range(4)] == [True, False, False, True]


def test_the_folder_is_not_looked_through_for_every_object(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache", limit=100_000)
    looks = []
    evict = ObjectCache._evict
    monkeypatch.setattr(ObjectCache, "_evict", lambda *a: looks.append(1) or evict(*a))
    for k in range(300):
        cache.write(f"{k:064x}", bytes(1000))
    assert 3 <= len(looks) <= 40
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 100_000


def test_key_depends_on_tape_width_and_processor(folder, monkeypatch):
    run(arm())
    first = set(folder.glob("*.o"))
    arm().prepare(single=False)
    assert len(set(folder.glob("*.o")) - first) == 1
    other = type(jit.host())(**(jit.host().__dict__ | {"cpu": "another"}))
    key = jit.cache_key("same")
    monkeypatch.setattr(jit, "host", lambda: other)
    assert jit.cache_key("same") != key
