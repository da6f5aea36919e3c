"""What a start names is kept, what it does not name rests, and what cannot be is refused."""

import math
import re
import sys
import warnings
from functools import cache

import numpy as np
import pytest

import axode as ax
import coupled_mechanisms
import random_mechanisms
from axode.errors import InvalidArgument, RequestNotMetWarning
from axode.model.conditions import Conditions
from axode.problems.assemble.assemble import assemble_many, assemble_runs
from axode.problems.assemble.closure import ClosureSystem
from tests.problems import machines

SAME = 1e-9


@pytest.fixture(scope="module")
def balancer() -> ax.Model:
    return random_mechanisms.balancer().derive().compile()


@pytest.mark.parametrize("pitch", [0.0, 0.3, 1.2])
@pytest.mark.parametrize(("left", "right"), [(5.0, 5.0), (5.0, 3.0), (-2.0, 2.0)])
def test_wheels_that_turn_do_not_set_a_balancer_pitching(balancer, left, right, pitch):
    start = {"left.rate": left, "right.rate": right, "pitch": pitch}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RequestNotMetWarning)
        state = ax.assemble(balancer, start)
    assert state["left.rate"] == pytest.approx(left, abs=SAME)
    assert state["right.rate"] == pytest.approx(right, abs=SAME)
    assert state["base.pitch_rate"] == pytest.approx(0.0, abs=SAME)
    assert state["base.surge"] == pytest.approx(0.1 * (left + right) / 2, abs=SAME)


def test_one_wheel_named_moves_it_straight_on(balancer):
    state = ax.assemble(balancer, {"left.rate": 5.0})
    assert state["right.rate"] == pytest.approx(5.0, abs=SAME)
    assert state["base.yaw_rate"] == pytest.approx(0.0, abs=SAME)


def test_a_pitch_rate_that_is_named_is_kept(balancer):
    state = ax.assemble(balancer, {"left.rate": 5.0, "right.rate": 5.0, "pitch_rate": 1.0})
    assert state["base.pitch_rate"] == pytest.approx(1.0, abs=SAME)
    assert state["base.surge"] == pytest.approx(0.6, abs=SAME)


def test_joints_of_a_vehicle_rest():
    """A body that pitches on a planar base, its speed independent beside those of the base."""
    state = ax.assemble(machines.wheeled_pendulum(), {"left.rate": 5.0, "right.rate": 5.0})
    assert state["pitch.rate"] == pytest.approx(0.0, abs=SAME)
    assert state["base.surge"] == pytest.approx(0.5, abs=SAME)


def test_many_starts_are_each_like_one(balancer):
    rates = np.array([1.0, 5.0, -3.0])
    start = {"left.rate": rates, "right.rate": rates, "pitch": np.array([0.0, 0.2, 0.4])}
    run = ax.simulate(balancer, 1e-3, start=start, progress=False)
    assert np.abs(run["base.pitch_rate"][:, 0]).max() < SAME
    assert np.allclose(run["base.surge"][:, 0], 0.1 * rates, atol=SAME)


def leaning_wheel() -> ax.Mechanism:
    """A wheel on a fork that leans, on a carriage that goes up and down and along."""
    bot = ax.Mechanism("leaning wheel")
    bot.add_body("carriage", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_body("slide", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_body("fork", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("along", ax.Prismatic("x"), parent=bot.ground, child="carriage")
    bot.add_joint("lift", ax.Prismatic("z"), parent="carriage", child="slide")
    bot.add_joint("lean", ax.Revolute("x"), parent="slide", child="fork")
    bot.add_wheel("wheel", ax.Rolling(0.3, lateral="free"), on="fork", mass=1.0)
    bot.set_home(lift=0.3)
    return bot


@pytest.mark.parametrize("verb", ["assemble", "simulate"])
def test_a_coordinate_that_is_named_stays_and_another_moves(verb):
    model = leaning_wheel().derive().compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RequestNotMetWarning)
        if verb == "assemble":
            found = ax.assemble(model, {"lean": 0.5})
            lean, lift = found["lean"], found["lift"]
        else:
            run = ax.simulate(model, 1e-3, start={"lean": [0.5, 0.6]}, progress=False)
            lean, lift = run["lean"][0, 0], run["lift"][0, 0]
    assert lean == pytest.approx(0.5, abs=1e-12)
    assert lift == pytest.approx(0.3 * math.cos(0.5), abs=1e-9)


def test_what_a_coupling_moves_follows_what_is_named_however_far():
    bot = ax.Mechanism("gears")
    for name in ("motor", "wheel"):
        body = bot.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        bot.add_joint(f"{name}_axle", ax.Revolute("z"), parent=bot.ground, child=body)
    bot.add_gear("gear", "motor_axle", "wheel_axle", 100.0)
    model = bot.derive().compile("interpreter")
    state = ax.assemble(model, {"wheel_axle": 2.0})
    assert state["wheel_axle"] == pytest.approx(2.0, abs=SAME)
    assert state["motor_axle"] == pytest.approx(-200.0, abs=SAME)


@pytest.mark.parametrize("verb", [ax.assemble, lambda m, start: ax.simulate(m, 0.01, start=start)])
def test_coordinates_that_a_coupling_excludes_are_reported(verb):
    model = coupled_mechanisms.gripper_arm(n=1).derive().compile()

    with pytest.warns(RequestNotMetWarning, match="right = 0 was asked for.*coupling 'fingers'"):
        verb(model, {"left": 0.02, "right": 0.0})


def test_named_coordinates_that_exclude_each_other_give_way():
    model = leaning_wheel().derive().compile()
    with pytest.warns(
        RequestNotMetWarning, match=r"lean = 0\.5 was asked for|lift = 0\.3 was asked for"
    ):
        state = ax.assemble(model, {"lean": 0.5, "lift": 0.3})
    assert state.residual < 1e-10


# parameters ---------------------------------------------------------------------------------------

VERBS = {
    "simulate": lambda model, p: ax.simulate(model, 1e-3, parameters=p, progress=False),
    "sweep": lambda model, p: ax.sweep(model, 1e-3, parameters=p, progress=False),
    "assemble": lambda model, p: ax.assemble(model, parameters=p),
    "linearize": lambda model, p: ax.linearize(model, parameters=p),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mass": -2.0}, r"cannot have mass = -2:\n  \[body\.pole\] mass: must be > 0 kg, got -2"),
        ({"radius": -0.1}, r"\[wheel\.left\] radius: must be > 0 m, got -0\.1.*\n.*wheel\.right"),
        ({"radius": 0.0}, r"radius: must be > 0 m, got 0"),
    ],
)
def test_values_that_no_mechanism_has_are_refused(balancer, verb, given, words):
    with pytest.raises(InvalidArgument, match=words):
        VERBS[verb](balancer, given)


def made_of_formulas() -> ax.Mechanism:
    """Masses, moments, an axis and a spring as formulas."""
    side, tilt, k = (ax.Parameter(n, v) for n, v in (("side", 0.3), ("tilt", 0.2), ("k", 4.0)))
    bot = ax.Mechanism("formulas")
    bot.add_body("box", mass=1.0 - side, inertia=(side, 0.3, 0.25))
    axis = (0.0, np.sin(tilt), np.cos(tilt))
    bot.add_joint("turn", ax.Revolute(axis), parent=bot.ground, child="box")
    bot.add_spring("coil", "turn", stiffness=k - 1.0)
    return bot


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"side": 1.5}, "mass"),
        ({"side": 0.9}, "inertia"),
        ({"side": -0.1}, "inertia"),
        ({"k": 0.5}, "stiffness"),
    ],
)
def test_formulas_are_checked_at_the_values_given(given, word):
    """One run, and one among many; the others pass."""
    model = made_of_formulas().derive().compile()
    with pytest.raises(InvalidArgument, match=rf"cannot have .*\n(.*\n)*.*{word}"):
        ax.simulate(model, 1e-3, parameters=given, progress=False)
    ((name, value),) = given.items()
    usual = model.parameters[name]
    many = {name: [usual, 1.01 * usual, value, usual]}
    with pytest.raises(InvalidArgument, match=r"\(run 2 of 4\)"):
        ax.simulate(model, 1e-3, parameters=many, progress=False)
    ax.simulate(model, 1e-3, parameters={name: [usual, 1.01 * usual], "tilt": 1.0}, progress=False)


# many starts --------------------------------------------------------------------------------------


def count_calls(function, *arguments) -> int:
    """How many functions Python enters."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return calls


@cache
def crank_rocker() -> ax.Model:
    bot = machines.four_bar_of(0.1, 0.35, 0.3, 0.4, "four-bar")
    bot.set_home(machines.four_bar_angles(1.2))
    bot.measure("tip", "position", body="rocker", at=(0.3, 0, 0))
    return bot.derive().compile()


@pytest.mark.parametrize("named", [("crank",), ("crank", "rocker.rate"), ("tip.x",)])
def test_many_starts_are_assembled_together(named):
    """No more calls for 20 000 different starts than for 5000, and each as alone."""
    model, few, many = crank_rocker(), 5000, 20_000

    def start(count):
        turn = np.linspace(-0.3, 0.3, count)
        values = {"crank": 1.2 + turn, "rocker.rate": 2 + turn, "tip.x": 0.3 + 0.05 * turn}
        return {name: values[name] for name in named}

    def assemble(count):
        return assemble_many(model, start(count), count, Conditions())

    q, nu = assemble(few)
    # threads that finish early or late make a few calls more or less
    assert count_calls(assemble, many) < count_calls(assemble, few) + 50
    for k in (0, 417, 4999):
        alone = ax.assemble(model, {name: values[k] for name, values in start(few).items()})
        assert q[k] == pytest.approx(alone.q, abs=1e-11)
        assert nu[k] == pytest.approx(alone.nu, abs=1e-9)


@pytest.mark.parametrize("count", [5, 700])
def test_runs_without_a_start_are_marked(count):
    """A tip above the reach of the rocker, among others; a speed that it cannot have."""
    model = crank_rocker()
    height = np.full(count, 0.25) + 1e-4 * np.arange(count) / count
    height[[1, 3]] = 0.5, 0.4
    rates = np.ones(count)
    made = assemble_runs(model, {"tip.y": height, "crank.rate": rates}, count, Conditions())
    assert made.failed.runs.tolist() == [1, 3]
    assert np.isnan(made.q[[1, 3]]).all() and np.isnan(made.nu[[1, 3]]).all()
    assert made.failed.describe(0) == "'tip.y' is open by 0.202 m"
    good = np.delete(np.arange(count), [1, 3])
    alone = assemble_runs(
        model, {"tip.y": height[good], "crank.rate": rates[good]}, count - 2, Conditions()
    )
    assert not len(alone.failed) and alone.first_error is None
    assert made.q[good] == pytest.approx(alone.q, abs=1e-12)
    with pytest.raises(ax.LoopNotClosed, match=r"'tip\.y' is open by 0\.20\d* m"):
        assemble_many(model, {"tip.y": height}, count, Conditions())


def test_speeds_that_exclude_each_other_are_marked():
    model = crank_rocker()
    rates = {"crank.rate": np.array([1.0, 1.0, 0.0]), "rocker.rate": np.array([0.0, 50.0, 0.0])}
    rates["rocker.rate"][0] = ax.assemble(model, {"crank.rate": 1.0})["rocker.rate"]
    made = assemble_runs(model, rates, 3, Conditions())
    assert made.failed.runs.tolist() == [1] and np.isnan(made.nu[1]).all()
    assert re.match("the constraints do not allow .*'rocker.rate' misses", made.failed.describe(0))
    assert made.nu[[0, 2], 0] == pytest.approx([1.0, 0.0], abs=1e-12)


def test_what_runs_have_in_common_is_solved_once(monkeypatch):
    """Masses do not move loops, and values that repeat are found in any order."""
    model, solved = crank_rocker(), []
    find = ClosureSystem.find
    monkeypatch.setattr(
        ClosureSystem, "find", lambda self, q, *a: (solved.append(len(q)), find(self, q, *a))[1]
    )
    rng = np.random.default_rng(0)
    values = rng.normal(1.2, 0.1, size=50)
    cranks = rng.choice(values, size=20_000)
    q, _ = assemble_many(model, {"crank": cranks}, cranks.size, Conditions())
    assert (q[:, model.coordinates.index("crank")] == cranks).all()
    assemble_many(model, {}, 20_000, Conditions())
    different = rng.normal(1.2, 0.1, size=20_000)
    assemble_many(model, {"crank": different}, 20_000, Conditions())
    assert solved == [50, 1, 20_000]


def test_parameters_that_do_not_move_loops_do_not_count(monkeypatch):
    model = ax.gallery.build("five_bar").derive().compile()
    p = np.tile(model.parameter_vector(), (1000, 1))
    p[:, list(model.parameters).index("m1")] = np.linspace(1.0, 2.0, 1000)
    solved = []
    find = ClosureSystem.find
    monkeypatch.setattr(
        ClosureSystem, "find", lambda self, q, *a: (solved.append(len(q)), find(self, q, *a))[1]
    )
    q, _ = assemble_many(model, {}, 1000, Conditions(0.0, p))
    assert solved == [1] and q.shape == (1000, 4)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_a_batch_goes_on_without_the_runs_that_have_no_start(method):
    heights = [0.25, 0.5, 0.26]
    with pytest.warns(
        ax.errors.RunsFailedWarning, match="1 of 3 runs failed .1 failed: not assembled"
    ):
        run = ax.simulate(
            crank_rocker(), 0.02, start={"tip.y": heights}, method=method, save_every=0.01
        )
    assert run.statuses[0] == run.statuses[2] == "finished"
    assert run.statuses[1] == "failed: not assembled at t = 0 s, 'tip.y' is open by 0.202 m"
    assert run.lengths.tolist() == [3, 0, 3]
    assert np.isnan(run["crank"][1]).all() and np.isnan(run["crank.torque"][1]).all()
    assert np.isfinite(run["crank"][[0, 2]]).all()
    with pytest.raises(ax.LoopNotClosed, match=r"'tip\.y' is open"):
        ax.simulate(crank_rocker(), 0.01, start={"tip.y": [0.5, 0.6]}, progress=False)
    with pytest.raises(ax.LoopNotClosed, match=r"'tip\.y' is open"):
        ax.simulate(crank_rocker(), 0.01, start={"tip.y": 0.5}, progress=False)


def test_a_sweep_goes_on_without_the_rows_that_have_no_start():
    heights = [0.25, 0.5, 0.26, 0.4]
    result = ax.sweep(
        crank_rocker(), 0.01, start={"tip.y": heights}, outputs={"x": ("last", "tip.x")}
    )
    assert result.finished.tolist() == [True, False, True, False]
    assert result.statuses == {"finished": 2, "failed: not assembled": 2}
    assert np.isnan(result["x"][[1, 3]]).all() and np.isfinite(result["x"][[0, 2]]).all()
    assert dict(result.reasons) == {1: "'tip.y' is open", 3: "'tip.y' is open"}
    with pytest.raises(ax.LoopNotClosed, match=r"'tip\.y' is open"):
        ax.sweep(crank_rocker(), 0.01, start={"tip.y": [0.5, 0.6]}, progress=False)


def test_a_model_from_a_file_starts_as_the_compiled_one(tmp_path):
    """Among motions that would do, both leave the same speeds at zero."""
    model = ax.gallery.build("caster_robot").derive().compile()
    model.save(tmp_path / "robot.axm")
    start = {"v_j": 0.3}
    here, there = (ax.assemble(m, start) for m in (model, ax.load_model(tmp_path / "robot.axm")))
    np.testing.assert_array_equal(there.nu, here.nu)
