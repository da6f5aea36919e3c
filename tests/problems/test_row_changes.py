"""Loops with more rows than they need: any rows that are kept lose rank somewhere, all together do
not, and the motion goes on."""

import functools
import math

import numpy as np
import pytest

import axode as ax
from axode.model.conditions import Conditions
from axode.problems.other_models import rows_at
from variants import further

ENERGY = 1e-8  # relative, in several turns
CLOSED = 1e-10  # [m or rad]: also rows that are not kept


@functools.cache
def bennett(alpha: float, beta: float, formulation: str = "recursive") -> ax.Model:
    """Bennett's linkage of link lengths sin(alpha), sin(beta), with a motor at its first hinge."""
    bot = ax.Mechanism("Bennett", gravity=(0.3, -9.0, -2.0))
    lengths, twists = (math.sin(alpha), math.sin(beta)), (alpha, beta)
    last = bot.ground
    for k in range(3):
        link = bot.add_body(f"link{k}", mass=1.0, com=(0.3, 0.1, 0), inertia=(0.01, 0.1, 0.1))
        at = (
            ((0, 0, 0), (0, 0, 0))
            if k == 0
            else ((lengths[1 - k % 2], 0, 0), (twists[1 - k % 2], 0, 0))
        )
        bot.add_joint(f"j{k}", ax.Revolute("z"), parent=last, child=link, at=at[0], rotation=at[1])
        last = link
    bot.add_loop(
        "close",
        ax.Revolute("z"),
        parent=last,
        child=bot.ground,
        at=(lengths[0], 0, 0),
        rotation=(alpha, 0, 0),
        child_at=(-lengths[1], 0, 0),
        child_rotation=(-beta, 0, 0),
    )
    bot.add_motor("drive", "j0")
    bot.set_home(j0=1.0, j1=second_angle(alpha, beta, 1.0), j2=-1.0)
    return bot.derive(formulation).compile()


def second_angle(alpha: float, beta: float, first: float) -> float:
    ratio = math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2)
    return 2 * math.atan(ratio / math.tan(first / 2))


def follows(alpha: float, beta: float, run: ax.Trajectory) -> float:
    """How far the angles of a run are from the closed form, both sides of it bounded."""
    ratio = math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2)
    a, b = run["j0"] / 2, run["j1"] / 2
    off = np.sin(a) * np.sin(b) - ratio * np.cos(a) * np.cos(b)
    return float(np.abs(off).max() / math.hypot(1, ratio))


SHIPPED = (math.radians(60), math.radians(30))
DRAWN = [tuple(np.random.default_rng(seed).uniform(0.4, 2.7, 2)) for seed in (3, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("twists", [SHIPPED, DRAWN[0], further(DRAWN[1])])
def test_bennett_linkages_turn(twists: tuple[float, float]):
    """From rest under a torque, and with a speed, until the first link has turned twice."""
    model = bennett(*twists)
    for given in ({"start": {"j0.rate": 12.0}}, {"input": {"drive.torque": 30.0}}):
        run = ax.simulate(model, 3.0, **given)
        assert run.status == "finished" and abs(run.final["j0"] - 1.0) > 4 * math.pi
        assert run.energy_error < ENERGY and run["residual"].max() < CLOSED
        assert follows(*twists, run) < CLOSED
        assert np.abs(run["j2"] + run["j0"]).max() < 1e-9


def test_rank_is_lost_by_the_kept_rows_only():
    """The second singular value of all rows stays large where that of the kept pair vanishes."""
    model = bennett(*SHIPPED)
    system = model.equations.system
    kept, whole = [], []
    for first in np.linspace(0.1, 2 * math.pi - 0.1, 101):
        q = np.array([first, second_angle(*SHIPPED, first), -first])
        rows = rows_at(model, q, Conditions())
        kept.append(np.linalg.svd(rows.matrix[list(system.report.kept)], compute_uv=False)[1])
        whole.append(np.linalg.svd(rows.matrix, compute_uv=False)[1])
        assert not rows.lost and rows.best_pivot > 0.1
    assert min(kept) < 0.02 and min(whole) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulation",
    [
        *map(further, ("multipliers", "lagrange", "pseudo_joints", "reduced_order")),
        "spatial_operators",
    ],
)
def test_every_formulation_changes_rows(formulation: str):
    run, same = (
        ax.simulate(bennett(*SHIPPED, name), 1.2, start={"j0.rate": 8.0})
        for name in (formulation, "recursive")
    )
    assert run.info["switches"] >= 2 and run.energy_error < ENERGY
    assert np.abs(run["j1.rate"] - same["j1.rate"]).max() < 1e-6


@pytest.mark.slow
def test_batches_fixed_steps_and_backwards():
    model = bennett(*SHIPPED)
    rates = np.linspace(-9, 9, 5)
    batch = ax.simulate(model, 1.5, start={"j0.rate": rates}, input={"drive.torque": rates / 4})
    assert set(batch.statuses) == {"finished"} and batch.energy_error.max() < ENERGY
    alone = ax.simulate(model, 1.5, start={"j0.rate": 9.0}, input={"drive.torque": 9.0 / 4})
    assert np.abs(batch["j0"][4] - alone["j0"]).max() < 1e-7
    fixed = ax.simulate(
        model, 1.5, start={"j0.rate": 9.0}, input={"drive.torque": 9.0 / 4}, method="rk4", step=5e-4
    )
    assert np.abs(fixed["j0"] - alone.resample(fixed.time)["j0"]).max() < 1e-6
    back = ax.simulate(
        model, -1.5, backwards=True, t0=1.5, start=alone, input={"drive.torque": 9.0 / 4}
    )
    assert back.final["j0"] == pytest.approx(1.0, abs=1e-7)


def test_a_start_at_which_the_kept_rows_are_dependent():
    """At half a turn they are, exactly; forces on them tell nothing there."""
    model = bennett(*SHIPPED)
    q = np.array([math.pi, 0.0, -math.pi])
    assert abs(model.evaluate("pivots", {"q": q})[0]) < 1e-12
    for start in ({"j0": q[0], "j1": q[1], "j2": q[2], "j0.rate": 2.0}, (q, np.array([2.0]))):
        run = ax.simulate(model, 1.0, start=start)
        assert run.status == "finished" and run.energy_error < ENERGY
        assert run["j0.rate"][0] == pytest.approx(2.0) and np.isfinite(run["kinetic"]).all()
        # tan(j1/2) = ratio cot(j0/2): its derivative at half a turn
        assert run["j1.rate"][0] / 2.0 == pytest.approx(2.7320508, abs=1e-6)


@pytest.mark.slow
def test_a_turn_driven_by_the_clock():
    """No freedom is left, and still rows have to change."""
    bot = model_mechanism()
    bot.prescribe("j0", lambda t: 1.0 + 3.0 * t)
    run = ax.simulate(bot.derive().compile(), 2.5)
    assert run.status == "finished" and run.final["j0"] == pytest.approx(8.5)
    assert follows(*SHIPPED, run) < CLOSED and run.energy_error < 1e-7


def model_mechanism() -> ax.Mechanism:
    return bennett(*SHIPPED).equations.system.mechanism.copy()


@pytest.mark.slow
def test_inverse_dynamics_along_a_turn():
    """Forwards and back again; a prescribed turn through samples at which the model is singular."""
    model = bennett(*SHIPPED)
    run = ax.simulate(model, 2.0, start={"j0.rate": 8.0}, input={"drive.torque": "3 * sin(4 * t)"})
    assert run.info["switches"] >= 2
    found = ax.inverse_dynamics(model, run)
    assert np.abs(found["drive.torque"] - 3 * np.sin(4 * run.time)).max() < 1e-8
    turn = ax.inverse_dynamics(model, {"j0": "1 + (pi - 1) * t"}, times=3.0, save_every=0.01)
    assert follows(*SHIPPED, turn) < CLOSED and turn["j0"][100] == pytest.approx(math.pi)
    assert np.isfinite(turn["drive.torque"]).all() and turn.energy_error < 1e-7
    # the torque there is what its neighbours say it is
    near = np.r_[93:100, 101:108]
    through = np.polynomial.Chebyshev.fit(turn.time[near], turn["drive.torque"][near], 11)
    assert turn["drive.torque"][100] == pytest.approx(through(turn.time[100]), rel=1e-6)


def test_a_linear_model_where_the_kept_rows_are_dependent():
    """Poles and input go through half a turn as if nothing were there."""
    model = bennett(*SHIPPED)
    made = []
    for first in (math.pi - 1e-3, math.pi, math.pi + 1e-3):
        at = {"j0": first, "j1": second_angle(*SHIPPED, first), "j2": -first}
        linear = ax.linearize(model, at, input="hold")
        made.append(np.concatenate([linear.A.ravel(), linear.B.ravel()]))
    np.testing.assert_allclose(made[1], (made[0] + made[2]) / 2, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_sweeps_change_rows():
    """Every run at its own step; a function of nu still means the user's speeds."""
    model, rates = bennett(*SHIPPED), [4.0, 7.0, -9.0]
    outputs = {
        "angle": ("last", "j0"),
        "nu": ("last", lambda s: s.nu[0]),
        "e": ("largest", "error"),
    }
    swept = ax.sweep(model, 1.5, start={"j0.rate": rates}, outputs=outputs)
    assert swept.finished.all() and swept["e"].max() < 1e-5
    run = ax.simulate(model, 1.5, start={"j0.rate": rates})
    assert run.info["switches"] >= 3
    assert np.abs(swept["angle"] - run["j0"][:, -1]).max() < 1e-6
    assert np.abs(swept["nu"] - run["j0.rate"][:, -1]).max() < 1e-5


@pytest.mark.slow
def test_a_plate_on_three_cranks():
    """Where two of the cranks are in line with their pivots the third still holds the plate."""
    bot = ax.Mechanism("plate", gravity=(0, -9.81, 0))
    pivots = [(0, 0, 0), (1, 0, 0), (0.4, 0.7, 0)]
    cranks = [
        bot.add_body(f"crank{k}", mass=1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
        for k in range(3)
    ]
    for k, crank in enumerate(cranks):
        bot.add_joint(f"t{k}", ax.Revolute("z"), parent=bot.ground, child=crank, at=pivots[k])
    plate = bot.add_body("plate", mass=3.0, com=(0.3, 0.2, 0), inertia=(0.1, 0.1, 0.2))
    bot.add_joint("p", ax.Revolute("z"), parent=cranks[0], child=plate, at=(0.5, 0, 0))
    for k in (1, 2):
        bot.add_loop(
            f"h{k}",
            ax.Revolute("z"),
            parent=plate,
            child=cranks[k],
            at=pivots[k],
            child_at=(0.5, 0, 0),
        )
    bot.set_home(t0=0.8, t1=0.8, t2=0.8, p=-0.8)
    run = ax.simulate(bot.derive().compile(), 2.0, start={"t0.rate": 9.0})
    assert run.final["t0"] > 4 * math.pi and run.energy_error < ENERGY
    assert np.abs(run["t2"] - run["t0"]).max() < 1e-9 and run["residual"].max() < CLOSED
