"""What was made of a description, found by the next process: the same bits, and nothing stale."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.disk.object_cache import CacheWarning, ObjectCache
from axode.mechanism import description_cache
from axode.mechanism.description_cache import DescriptionCache, NoDigest, digest_of
from axode.symbolic import equations as derivation

RUN = """
import sys, hashlib
import axode as ax
from axode.symbolic import equations as derivation
from tests.model.test_description_cache import four_bar

if "known" in sys.argv:
    def refuse(*_, **options):
        raise AssertionError("built again")
    derivation.build_system = refuse
def law(s):  # of speeds, energies and measures, which a model's functions give
    rates = s["coupler.rate"] * s["rocker.rate"] + s["tip.x"] - s.t * s["crank"]
    return {"torque": 1e-3 * (rates + s["kinetic"] - s.nu[0])}

passing = ax.Event("passing", lambda s: s["rocker.rate"] - 0.1 * s["tip.x"])
model = four_bar().derive().compile()
run = ax.simulate(model, 0.5, start={"crank.rate": 20.0}, input=law, events=[passing])
print(run.info["switches"], hashlib.sha256(run.values.tobytes()).hexdigest())
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Folder of a cache that is empty and on."""
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AXODE_MODEL_CACHE", raising=False)
    return tmp_path / "cache"


def pendulum(length: float = 0.5) -> ax.Mechanism:
    bot = ax.Mechanism("pendulum")
    com = (ax.Parameter("l", length), 0, 0)
    rod = bot.add_body("rod", mass=1.0, com=com, inertia=(0.02, 0.02, 0.02))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=rod)
    bot.add_motor("drive", "hinge", input="torque")
    return bot


def four_bar() -> ax.Mechanism:
    """One that changes its independent speeds where the rocker turns back."""
    bot = ax.Mechanism("four_bar", gravity=(0, 0, 0))
    last, end = bot.ground, 0.0
    for name, length, angle in (("crank", 0.2, 1.0), ("coupler", 0.6, -0.6), ("rocker", 0.5, -1.9)):
        body = bot.add_body(name, mass=1.0, com=(length / 2, 0, 0), inertia=(0.01, 0.01, 0.01))
        bot.add_joint(name, ax.Revolute("z"), parent=last, child=body, at=(end, 0, 0))
        bot.set_home({name: angle})
        last, end = body, length
    ground = {"parent": bot.ground, "at": (0.6, 0, 0)}
    bot.add_loop("end", ax.Revolute("z"), child=last, child_at=(end, 0, 0), **ground)
    bot.add_motor("drive", "rocker", input="torque")
    bot.measure("tip", "position", body=last, at=(0.1, 0, 0))
    return bot


def refuse(*_, **options):
    raise AssertionError("built again")


def process(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "AXODE_CACHE": str(folder), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment.pop("AXODE_MODEL_CACHE", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_second_process_derives_nothing_and_has_the_same_bits(tmp_path):
    """Through changes of speeds too; a process without the cache agrees."""
    folder = tmp_path / "cache"
    first = process(folder)
    assert int(first.split()[0]) > 0
    assert process(folder, "known") == first == process(tmp_path / "other")


def test_laws_read_signals_and_frames(folder, monkeypatch):
    """The former without equations, the latter with them; parameters are checked without, too."""
    bot, duration = pendulum(), {"duration": 0.1, "parameters": {"l": 0.4}}

    def by_angle(s):
        return {"torque": -0.3 * np.sin(s["hinge"]) * s["hinge.rate"] - 0.1 * s["l"]}

    def by_height(s):
        return {"torque": 0.3 * s.position("rod", (1, 0, 0))[2] * s["hinge.rate"] - 0.04}

    start = {"hinge": 0.3, "hinge.rate": 1.0}
    model = bot.derive().compile(parameters="free")
    first = ax.simulate(model, start=start, input=by_angle, **duration)
    with monkeypatch.context() as known:
        known.setattr(derivation, "build_system", refuse)
        model = pendulum().derive().compile(parameters="free")
        second = ax.simulate(model, start=start, input=by_angle, **duration)
    third = ax.simulate(model, start=start, input=by_height, **duration)
    np.testing.assert_array_equal(second.values, first.values)
    np.testing.assert_allclose(third["hinge"], first["hinge"], rtol=1e-7)


@pytest.mark.slow
def test_processes_at_the_same_time(tmp_path):
    with ThreadPoolExecutor() as pool:
        found = set(pool.map(process, [tmp_path / "cache"] * 3))
    assert len(found) == 1 and process(tmp_path / "cache", "known") in found


def test_functions_are_read_and_the_rest_is_built_when_it_is_needed(folder, monkeypatch):
    first = pendulum().derive()
    expected = first.compile().forward_dynamics([0.3], [0.1], [2.0])
    second = pendulum().derive()
    with monkeypatch.context() as patch:
        patch.setattr(derivation, "build_system", refuse)
        model = second.compile()
        assert model.forward_dynamics([0.3], [0.1], [2.0]) == expected
        assert model.scene.solids == first.compile().scene.solids
        again = pickle.loads(pickle.dumps(model))
        assert again.forward_dynamics([0.3], [0.1], [2.0]) == expected
        with pytest.raises(AssertionError, match="built again"):
            _ = second.system
    assert repr(second) == repr(first) and second.latex() == first.latex()
    assert model.mass_matrix([0.3]) == first.compile().mass_matrix([0.3])


def test_a_later_change_of_the_description_is_not_seen(folder):
    pendulum().derive()
    bot = pendulum()
    equations = bot.derive()
    bot.add_body("late", mass=1.0, inertia=(1, 1, 1))
    assert [body.name for body in equations.system.mechanism.bodies] == ["rod"]


@pytest.mark.parametrize(
    "changed",
    [
        lambda: pendulum(length=np.nextafter(0.5, 1.0)).derive(),
        lambda: pendulum().derive("lagrange"),
        lambda: pendulum().derive(independent=["hinge.rate"]),
        lambda: pendulum().derive(self_check=False),
    ],
)
def test_what_changes_is_derived_anew(folder, monkeypatch, changed):
    pendulum().derive()
    monkeypatch.setattr(derivation, "build_system", refuse)
    pendulum().derive()
    with pytest.raises(AssertionError, match="built again"):
        changed()


def test_other_code_derives_anew(folder, monkeypatch):
    pendulum().derive()
    monkeypatch.setattr(description_cache, "_code_digest", lambda: b"of the next version")
    monkeypatch.setattr(derivation, "build_system", refuse)
    with pytest.raises(AssertionError, match="built again"):
        pendulum().derive()


@pytest.mark.parametrize("variable", ["AXODE_CACHE", "AXODE_MODEL_CACHE"])
def test_switched_off(folder, monkeypatch, variable):
    pendulum().derive()
    monkeypatch.setenv(variable, "off")
    monkeypatch.setattr(derivation, "build_system", refuse)
    with pytest.raises(AssertionError, match="built again"):
        pendulum().derive()


def test_digests():
    """A digest follows content alone, to the last bit and the sign of zero."""
    assert digest_of(pendulum()) == digest_of(copy.deepcopy(pendulum()))
    one = ax.Parameter("a", 1.0)
    assert digest_of([one, one]) == digest_of([one, ax.Parameter("a", 1.0)])
    different = [0.0, -0.0, 0, False, "0", None, (0,), [(0,)], {"0": 0}, np.zeros(1), one, one + 0]
    assert len(set(map(digest_of, different))) == len(different)
    deep = one
    for _ in range(60):
        deep = deep + deep  # a tree of 2^60 terms
    assert len(digest_of(deep)) == 32


def test_functions_of_python_have_no_digest(folder):
    bot = pendulum()
    bot.measure("height", lambda s: s["hinge"] * 2)
    with pytest.raises(NoDigest):
        digest_of(bot)
    assert DescriptionCache.of(bot) is None

    class Odd(ax.Revolute):
        """A joint from outside of the package, whose motion may change at any time."""

    with pytest.raises(NoDigest):
        digest_of(Odd("y"))
    assert [bot.derive().compile().measures([0.3])[0] for _ in range(2)] == [0.6, 0.6]


def warned(bot: ax.Mechanism) -> list[tuple[type, str, str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        bot.derive()
    return [(w.category, str(w.message), w.filename) for w in found]


def test_warnings_are_repeated(folder, monkeypatch):
    first = warned(light())
    monkeypatch.setattr(derivation, "build_system", refuse)
    assert warned(light()) == first
    assert [category for category, _, _ in first] == [ax.PlausibilityWarning]
    assert "Forward dynamics is not defined" in first[0][1] and first[0][2] == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ax.PlausibilityWarning):
            light().derive()


def light() -> ax.Mechanism:
    """A mechanism one of whose motions nothing resists."""
    bot = ax.Mechanism("light")
    rod = bot.add_body("rod", mass=1.0, inertia=ax.Inertia(0.0, 0.0, 0.0, ideal=True))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=rod)
    return bot


def test_errors_are_repeated(folder):
    for _ in range(2):
        with pytest.raises(ax.InvalidIndependent, match="1 independent speeds"):
            pendulum().derive(independent=[])
        with pytest.raises(ax.NotApplicable):
            pendulum().derive("legs")


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.o"))


@pytest.mark.parametrize("damage", ["truncate", "flip", "junk"])
def test_damaged_entries_are_written_again(folder, damage):
    expected = pendulum().derive().compile().mass_matrix([0.3])
    names = entries(folder)
    for path in names:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes({"truncate": data[:-7], "flip": data, "junk": b"x" * 99}[damage])
    with pytest.warns(CacheWarning, match="is damaged"):
        assert pendulum().derive().compile().mass_matrix([0.3]) == expected
    assert entries(folder) == names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pendulum().derive().compile().mass_matrix([0.3]) == expected


@pytest.mark.parametrize("forged", [b"", b"[]", b"{", b'[["a", 1]]', b"\x80\x04.", b"[[1]]"])
def test_entries_that_are_intact_but_nonsense(folder, forged):
    """As another version or a user with the right to write may leave them."""
    expected = pendulum().derive().compile().mass_matrix([0.3])
    cache = DescriptionCache.of(pendulum(), "recursive", None, True, True)
    assert cache is not None and json.loads(cache.read("derived") or b"") == []
    for what in ("derived", "facts, fixed False", "row numbers", "tape mass_matrix, fixed False"):
        ObjectCache(folder).write(cache._key(what), forged)
        model = pendulum().derive().compile()
        assert model.mass_matrix([0.3]) == expected
        assert ax.simulate(model, 0.1).status == "finished"


def test_full_disk(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("axode.disk.object_cache.replace_private_file", full)
    with pytest.warns(CacheWarning, match="No space left"):
        model = pendulum().derive().compile()
        assert np.isfinite(model.mass_matrix([0.3])).all()
    assert not entries(folder)


def test_a_folder_that_cannot_be_written(folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "file" / "below"))
    with pytest.warns(CacheWarning, match="not cached"):
        assert np.isfinite(pendulum().derive().compile().mass_matrix([0.3])).all()
