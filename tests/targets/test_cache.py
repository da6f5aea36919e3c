"""The object cache: hits, damage, permissions, eviction, switching off."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from axode.codegen import jit, kernel
from axode.codegen.cache import CacheWarning, ObjectCache, cache_directory
from axode.codegen.llvm import CompiledFunction
from axode.codegen.tape import Tape
from tests.targets import functions


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
    monkeypatch.setattr(jit, "_compiled", lambda *_: pytest.fail("compiled again"))
    monkeypatch.setattr(kernel, "module", lambda *_: pytest.fail("wrote IR again"))
    second = arm()
    np.testing.assert_array_equal(run(second), result)
    assert second.from_cache == {1: True} and second.compile_seconds[1] < 0.5


def test_directory_is_private(folder):
    run(arm())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    arm().prepare(single=False)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.glob("*.part"))


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
    def refused(**_):
        raise PermissionError("read-only")

    monkeypatch.setattr("tempfile.mkstemp", refused)  # permissions do not stop root
    with pytest.warns(CacheWarning, match="cannot write"):
        assert np.isfinite(run(arm())).all()


def test_other_users_directory_is_not_trusted(folder, monkeypatch):
    run(arm())
    monkeypatch.setattr(os, "getuid", lambda: 12345)
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
        cache.write(f"key{k}", bytes(1000))
        os.utime(tmp_path / "cache" / f"key{k}.o", (k, k))
    assert cache.read("key0") == bytes(1000)  # now the most recently used
    cache.write("key3", bytes(1000))
    # Down to three quarters of the limit: 2625 bytes hold two.
    assert [cache.read(f"key{k}") is not None for k in range(4)] == [True, False, False, True]


def test_the_folder_is_not_looked_through_for_every_object(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache", limit=100_000)
    looks = []
    evict = ObjectCache._evict
    monkeypatch.setattr(ObjectCache, "_evict", lambda self: looks.append(1) or evict(self))
    for k in range(300):
        cache.write(f"key{k}", bytes(1000))
    assert 3 <= len(looks) <= 40
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 100_000


def test_key_depends_on_tape_width_and_processor(folder, monkeypatch):
    run(arm())
    first = set(folder.glob("*.o"))
    arm().prepare(single=False)
    assert len(set(folder.glob("*.o")) - first) == 1
    other = jit.Host(**(jit.host().__dict__ | {"cpu": "another"}))
    key = jit._key("same")
    monkeypatch.setattr(jit, "host", lambda: other)
    assert jit._key("same") != key
