"""Whatever is passed to the public functions: an error of ours with a remedy, at once."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import axode as ax
from tests.users.hostile_arguments import JUNK, Sound, attempt

SLOW = ("compare", "compile", "derive", "verify", "model.export")  # tried in the long run only
TRIALS = 2  # per argument; the long run tries the rest


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return Sound(tmp_path_factory.mktemp("hostile"))


def test_only_our_own_errors_come_out(sound, monkeypatch):
    monkeypatch.chdir(sound.folder)
    dice = random.Random(1)
    for call in sorted(set(sound.calls).difference(SLOW)):
        for name in sound.names(call):
            for junk in dice.sample(JUNK, TRIALS):
                try:
                    attempt(sound, call, {name: junk})
                except ax.AxodeError:
                    pass
                except Exception as error:
                    pytest.fail(f"{call}, {name}: {type(error).__name__}: {error}")


def test_paths_that_cannot_be_drawn_are_refused():
    with pytest.raises(
        ax.InvalidArgument, match="x: expected a formula or function of t, got None"
    ):
        ax.paths.along(None, 0.0, 1.0)
    with pytest.raises(ax.InvalidArgument, match=r"parallel_lines: a distance of 1e\+300 m over 1"):
        ax.paths.parallel_lines(1e300, 1.0, 1.0)


def test_an_array_without_axes_is_no_list(sound):
    with pytest.raises(ax.InvalidArgument, match=r"functions: expected a list, got array\("):
        sound.model.save("m.axm", np.array("mass_matrix"))


@pytest.mark.parametrize("q", [-1.0, [1.0, 2.0, 3.0]])
def test_coordinates_beside_speeds_by_name_have_their_shape(q, sound):
    with pytest.raises(ax.InvalidArgument, match=r"'q' has shape \(3?,?\), expected \(\.\.\., 6\)"):
        sound.model.contact_forces(q, {"theta1": 1.0})


def test_an_array_is_no_executor(sound):
    with pytest.raises(ax.InvalidArgument, match=r"executor: expected .*; got array\(\[\]"):
        ax.sweep(sound.model, 0.01, step=1e-3, executor=np.zeros(0))


def test_fractions_of_seconds_are_printed(sound):
    run = ax.simulate(sound.model, 0.01, method="rk4", step=1e-3)
    with pytest.raises(ax.InvalidArgument, match=r"no sample from 0\.333333 s to 1 s"):
        run.between(Fraction(1, 3), 1)


IMPOSSIBLE = [
    ({"save_every": 1e-12}, r"save_every: 1e-12 s makes 1e\+10 samples.*make it longer"),
    ({"step": 1e-18}, r"step: 1e-18 s is too short at t = 0\.01 s.*make it longer"),
    ({"t0": 1e16}, r"duration: 0\.01 s is too short at t = 1e\+16 s.*or t0 smaller"),
    ({"duration": 1e10}, r"step: 0\.001 s makes 1e\+13 steps.*or the duration shorter"),
    ({"rtol": "tight"}, r"rtol: expected a number, got 'tight'"),
    ({"duration": 10**400}, r"duration: expected a number of seconds, got a whole number of very"),
]


@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE)
def test_impossible_requests_get_a_remedy(options, message, sound):
    model = sound.model
    with pytest.raises(ax.InvalidArgument, match=message):
        ax.simulate(model, **{"duration": 0.01, "method": "rk4", "step": 1e-3, **options})
