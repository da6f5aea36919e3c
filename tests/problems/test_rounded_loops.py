"""Loops whose numbers are rounded, as drawings have them: they move as the exact ones do."""

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from axode.errors import Immobile, LoopNotClosed, PlausibilityWarning, RequestNotMetWarning
from axode.mechanism.values.expressions import numeric
from tests.problems.machines import four_bar_angles, four_bar_of
from tests.textbook.test_bennett import linkage
from variants import further, slow

SPREAD = 100.0  # times the error of a number: what lengths and lever arms of these loops make of it
SMALL = 1e-9  # a disagreement of numbers of nine digits


def four_bar() -> ax.Mechanism:
    bot = four_bar_of(0.1, 0.35, 0.3, 0.4, "four-bar")
    bot.set_home(four_bar_angles(1.2))
    return bot


def three_cranks() -> ax.Mechanism:
    """A parallelogram with a crank more than it needs."""
    bot = four_bar_of(0.2, 0.5, 0.2, 0.5, "three cranks")
    bot.add_body("third", mass=1.0, com=(0.1, 0, 0), inertia=(1e-3, 4e-3, 4e-3))
    bot.add_joint("third", ax.Revolute("z"), parent=bot.ground, child="third", at=(0.2, 0, 0))
    bot.add_loop(
        "knee",
        ax.Revolute("z"),
        parent="coupler",
        child="third",
        at=(0.2, 0, 0),
        child_at=(0.2, 0, 0),
    )
    bot.set_home(crank=0.8, coupler=-0.8, rocker=0.8, third=0.8)
    return bot


def sarrus() -> ax.Mechanism:
    """Two pairs of hinged plates, across each other: what joins them moves straight up."""
    bot = ax.Mechanism("Sarrus")
    bot.add_body("top", mass=2.0, inertia=(0.1, 0.1, 0.1))
    for k, angle in enumerate((0.3, 0.3 + math.pi / 2)):
        out = np.array([math.cos(angle), math.sin(angle), 0.0])
        hinge = ax.Revolute((-out[1], out[0], 0.0))
        for part in ("lower", "upper"):
            bot.add_body(f"{part}{k}", mass=1.0, com=(0, 0, 0.25), inertia=(0.02, 0.02, 0.002))
        bot.add_joint(f"a{k}", hinge, parent=bot.ground, child=f"lower{k}", at=0.4 * out)
        bot.add_joint(f"b{k}", hinge, parent=f"lower{k}", child=f"upper{k}", at=(0, 0, 0.5))
        bot.add_joint(
            f"c{k}", hinge, parent=f"upper{k}", child="top", at=(0, 0, 0.5), child_at=0.4 * out
        )
    bot.set_home(a0=0.6, b0=-1.2, c0=0.6, a1=0.6, b1=-1.2)
    return bot


def delta() -> ax.Mechanism:
    return ax.gallery.build("delta_robot")


def car() -> ax.Mechanism:
    """Two wheels on one axle: their lateral rows are one row, if the axle is straight."""
    bot = ax.Mechanism("car")
    body = bot.add_body("body", mass=10.0, com=(0.05, 0, 0.1), inertia=(0.3, 0.4, 0.5))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(0.1), on=body, at=(0, y, 0.1), mass=0.5, motor=True)
    bot.add_caster(
        "caster", ax.Rolling(0.05), on=body, at=(0.3, 0, 0.12), drop=0.07, trail=0.06, mass=0.4
    )
    return bot


MACHINES: dict[str, Callable[[], ax.Mechanism]] = {
    "four_bar": four_bar,
    "three_cranks": three_cranks,
    "bennett": linkage,
    "sarrus": sarrus,
    "delta": delta,
    "car": car,
}


def rounded(mechanism: ax.Mechanism, error: float, seed: int = 0) -> ax.Mechanism:
    """With an error in every place and every direction of its joints."""
    rng = np.random.default_rng(seed)
    made = mechanism.copy()

    def off(vector):
        return tuple(float(numeric(x)) + error * rng.uniform(-1, 1) for x in vector)

    def moved(c):
        joint = replace(c.joint, **{n: _unit(off(getattr(c.joint, n))) for n in c.joint.directions})
        if c.child in wheels:  # the contact's axis is the joint's
            axes[c.child] = joint.axis
        return replace(c, joint=joint, at=off(c.at), child_at=c.child_at)

    wheels, axes = {contact.body for contact in made.contacts}, {}
    made.connections = [moved(c) for c in made.connections]
    made.loops = [moved(c) for c in made.loops]
    made.contacts = [replace(c, axis=axes[c.body]) for c in made.contacts]
    return made


def _unit(vector):
    return tuple((np.array(vector) / np.linalg.norm(vector)).tolist())


def accelerations(model: ax.Model, at: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates next to given ones, and accelerations there."""
    nu = np.linspace(0.5, 1.0, len(model.independent))
    q = ax.assemble(model, at).q
    return q, model.forward_dynamics(q, nu)


@functools.cache
def derived(name: str) -> ax.Equations:
    return MACHINES[name]().derive()


@pytest.mark.parametrize("error", [1e-10, further(1e-8), 5e-6], ids="{:.0e}".format)
@pytest.mark.parametrize("name", slow(MACHINES, "delta", "car"))
def test_a_rounded_machine_moves_as_the_exact_one(name, error):
    """Mobility, home and accelerations, to the size of the rounding."""
    exact = derived(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlausibilityWarning)
        equations = rounded(MACHINES[name](), error).derive(independent=exact.independent)
    assert equations.mobility.mobility == exact.mobility.mobility
    assert equations.mobility.configuration_dof == exact.mobility.configuration_dof
    ours, theirs = (e.compile("interpreter") for e in (equations, exact))
    at = dict(zip(theirs.coordinates, theirs.home.tolist(), strict=True))
    (q, a), (q0, a0) = accelerations(ours, at), accelerations(theirs, at)
    assert np.abs(ours.home - theirs.home).max() < SPREAD * error
    assert np.abs(q - q0).max() < SPREAD * error
    assert np.abs(a - a0).max() < 10 * SPREAD * error * np.abs(a0).max()


@pytest.mark.parametrize("error", [3e-5, 5e-4], ids=["4 digits", "3 digits"])
@pytest.mark.parametrize("name", ["four_bar", "bennett", "sarrus"])
def test_coarse_numbers_with_a_tolerance_for_them(name, error):
    machine = rounded(MACHINES[name](), error)
    machine.loop_tolerance = 20 * error
    with pytest.warns(PlausibilityWarning, match="contradict"):
        mobility = machine.derive().mobility
    assert mobility.mobility == 1


def test_a_run_stays_next_to_the_exact_one():
    error = 1e-6
    with pytest.warns(
        PlausibilityWarning, match=r"hinge\.rx by .* rad.*\(loop_tolerance = 0\.0001\)"
    ):
        model = rounded(four_bar(), error).derive().compile()
    exact = four_bar().derive().compile()
    start = {"crank": 1.2, "crank.rate": 8.0}
    run, true = (ax.simulate(m, 1.0, start=start, progress=False) for m in (model, exact))
    assert np.ptp(true["crank"]) > 2 * math.pi
    assert np.abs(run["crank"] - true["crank"]).max() < 10 * SPREAD * error
    assert run.energy_error < 1e-8  # the kept rows hold exactly, and do no work


def test_dropped_rows_are_reported_with_what_they_disagree_by():
    with pytest.warns(PlausibilityWarning):
        mobility = rounded(linkage(), 1e-6).derive().mobility
    assert all("to within" in text for text in mobility.dropped)
    with pytest.warns(PlausibilityWarning, match="contradict"):
        small = rounded(linkage(), SMALL).derive().mobility
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlausibilityWarning)
        none = linkage().derive().mobility
    assert any("to within" in text for text in small.dropped)
    assert not any("to within" in text for text in none.dropped)


def test_no_tolerance_refuses_and_names_rows_and_joints():
    """All rows that disagree, by how much, and joints that have fewer rows."""
    machine = rounded(four_bar(), 1e-3)
    with pytest.raises(LoopNotClosed) as caught:
        machine.derive()
    text = str(caught.value)
    assert "3 constraints more than can be satisfied" in text
    assert "hinge.rx by" in text and "rad" in text
    assert "Spherical (2 fewer: rx, ry)" in text and "Cylindrical (1 fewer: z)" in text
    needed = float(text.split("mechanism.loop_tolerance = ")[1].split()[0])
    machine.loop_tolerance = needed
    with pytest.warns(PlausibilityWarning):
        assert machine.derive().mobility.mobility == 1


def test_the_joint_with_fewer_rows_closes():
    machine = rounded(four_bar(), 1e-3)
    (loop,) = machine.loops
    machine.loops = [replace(loop, joint=ax.Cylindrical(loop.joint.axis))]
    with pytest.raises(LoopNotClosed, match=r"they disagree: (?!.*hinge\.z)"):
        machine.derive()
    machine.loops = [replace(loop, joint=ax.Spherical())]
    # one freedom more, and the loop has no surplus row
    machine.connections = [
        replace(c, joint=ax.Cylindrical(c.joint.axis), coordinate_names=("rocker", "slide"))
        if c.name == "rocker"
        else c
        for c in machine.connections
    ]
    assert machine.derive().mobility.mobility == 1


@pytest.mark.parametrize("error", [1e-8, 1e-5])
def test_home_stays_where_it_was_named(error):
    """Exactly closed it would be flat, half a radian away."""
    machine = three_cranks()
    machine.connections = [
        replace(c, at=(0.2 + error, 0, 0)) if c.name == "third" else c for c in machine.connections
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlausibilityWarning)
        warnings.simplefilter("error", RequestNotMetWarning)
        equations = machine.derive()
    assert np.abs(equations.system.home - [0.8, -0.8, 0.8, 0.8]).max() < 10 * error
    assert equations.mobility.mobility == 1


def test_home_that_moves_is_reported():
    machine = three_cranks()
    machine.connections = [
        replace(c, at=(0.2 + 1e-8, 0, 0)) if c.name == "third" else c for c in machine.connections
    ]
    machine.loop_tolerance = 0.0
    words = r"crank = 0\.8 became 1\.57.*knee\.[xy] stays open by .*e-09 m.*loop_tolerance"
    # taken as exact, the third crank stops the others wherever they close
    moved = pytest.warns(RequestNotMetWarning, match=words)
    with (
        moved,
        pytest.warns(PlausibilityWarning),
        pytest.raises(ax.Immobile, match=r"knee\.y nearly follow"),
    ):
        machine.derive()


@pytest.mark.parametrize("error", [further(1e-6), 1e-8])
def test_a_row_that_holds_something_farther_away_is_kept(error):
    """A third crank that is parallel to the others and longer stops them to second order only."""
    angle, length = 0.8 + error, 0.3
    foot = np.array([0.2 * math.cos(0.8) + 0.2, 0.2 * math.sin(0.8), 0.0])
    foot -= length * np.array([math.cos(angle), math.sin(angle), 0.0])
    machine = three_cranks()
    machine.connections = [
        replace(c, at=tuple(foot)) if c.name == "third" else c for c in machine.connections
    ]
    machine.loops = [
        replace(c, child_at=(length, 0, 0)) if c.name == "knee" else c for c in machine.loops
    ]
    with pytest.raises(Immobile, match=r"4 independent rows|singular"):
        machine.derive()


@pytest.mark.parametrize("tolerance", [-1e-3, 0.5, math.nan, "fine"])
def test_tolerances_that_are_none(tolerance):
    machine = four_bar()
    machine.loop_tolerance = tolerance
    with pytest.raises(ax.AxodeError, match=r"loop_tolerance: must be a number from 0 to 0\.1"):
        machine.derive()


def test_the_tolerance_is_kept_in_files(tmp_path):
    machine = four_bar()
    machine.loop_tolerance = 2e-3
    machine.save(tmp_path / "bar.toml")
    assert ax.load(tmp_path / "bar.toml").loop_tolerance == 2e-3
    assert machine.copy().loop_tolerance == 2e-3
    four_bar().save(tmp_path / "usual.toml")
    assert "loop_tolerance" not in (tmp_path / "usual.toml").read_text()


def test_many_rounded_loops_are_closed_next_to_home():
    """More rows than dense solves are used for."""
    error, count = 1e-6, 9
    bot = ax.Mechanism("row of four-bars")
    for k in range(count):
        one = four_bar()
        bot.bodies += [replace(body, name=f"{body.name}{k}") for body in one.bodies]
        for c in (*one.connections, *one.loops):
            grounded = c.parent == "ground"
            parent = c.parent if grounded else f"{c.parent}{k}"
            at = (float(c.at[0]) + k, 0.0, 0.0) if grounded else c.at
            bot.add_joint(
                f"{c.name}{k}",
                c.joint,
                parent=parent,
                child=f"{c.child}{k}",
                at=at,
                child_at=c.child_at,
            )
        bot.set_home({f"{name}{k}": angle for name, angle in four_bar_angles(1.2).items()})
    with pytest.warns(PlausibilityWarning):
        equations = rounded(bot, error).derive()
    assert equations.mobility.rows == 5 * count and equations.mobility.mobility == count
    named = [bot.home_coordinates[name] for name in equations.coordinates]
    assert np.abs(equations.system.home - named).max() < SPREAD * error


@pytest.mark.parametrize("error", [1e-9, 1e-7])
def test_parameters_that_contradict_a_little_leave_a_start_where_it_is(error):
    """A third foot that is a little beside its place, given when the model is long compiled."""
    foot = ax.Parameter("foot", 0.2)
    machine = three_cranks()
    machine.connections = [
        replace(c, at=(foot, 0.0, 0.0)) if c.name == "third" else c for c in machine.connections
    ]
    model = machine.derive().compile("interpreter")
    state = ax.assemble(model, parameters={"foot": 0.2 + error})
    assert np.abs(state.q - [0.8, -0.8, 0.8, 0.8]).max() < 10 * error


@pytest.mark.parametrize("error", [1e-10, further(1e-9), 3e-9])
@pytest.mark.parametrize("seed", [0, 1, further(2), further(3)])
@pytest.mark.parametrize("machine", [four_bar, three_cranks])
def test_loops_of_nine_digits_close_next_to_home(machine, seed, error):
    exact = machine().derive(self_check=False).system.home

    home = rounded(machine(), error, seed).derive(self_check=False).system.home

    assert home == pytest.approx(exact, abs=SPREAD * error)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::axode.errors.PlausibilityWarning")
@pytest.mark.parametrize("error", [further(1e-9), 1e-6])
def test_rows_that_contradict_each_other_keep_the_energy_as_they_change(error):
    model = rounded(linkage(), error).derive().compile()

    run = ax.simulate(model, 3.0, start={"j1.rate": 4.0})

    assert run.info["switches"] > 1
    assert run.energy_error < SPREAD * error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::axode.errors.PlausibilityWarning")
def test_runs_whose_rows_changed_go_on_and_have_inverse_dynamics():
    error = 1e-6
    model = rounded(linkage(), error).derive().compile()
    whole = ax.simulate(model, 1.5, start={"j1.rate": 4.0})

    first = ax.simulate(model, 1.0, start={"j1.rate": 4.0})
    second = ax.simulate(model, 0.5, start=first)

    assert second.final["j1"] == pytest.approx(whole.final["j1"], abs=SPREAD * error)
    assert len(ax.inverse_dynamics(model, whole)) == len(whole)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::axode.errors.PlausibilityWarning")
def test_sweeps_of_rounded_linkages_end_where_runs_do():
    model = rounded(linkage(), 1e-6).derive().compile()
    start = {"j1.rate": np.array([4.0])}

    swept = ax.sweep(model, 1.5, step=1e-3, start=start)

    exact = ax.simulate(linkage().derive().compile(), 1.5, start={"j1.rate": 4.0})
    # rows change once where they contradict each other by four hundred times their errors
    assert swept["j1"] == pytest.approx(exact.final["j1"], abs=4e-4)


@pytest.mark.parametrize("links", [1, 4])
def test_a_stiff_triangle_is_as_stiff_at_the_end_of_an_arm(links):
    """Two hinges and a slide across them: it could move next to home, and nowhere else.

    With four links before it, rows that follow or not changed places in every round, and the loop
    was refused as open by 1e-16.
    """
    arm = ax.Mechanism("arm")
    last = arm.ground
    for k in range(links):
        link = arm.add_body(f"link{k}", mass=1.0, com=(0.05, 0, 0), inertia=(0.01, 0.01, 0.01))
        at = (0.1, 0.02 * k, 0.03)
        arm.add_joint(f"link{k}", ax.Revolute("xyz"[k % 3]), parent=last, child=link, at=at)
        last = link
    for name, y in (("spring", 0.082), ("shin", 0.047)):
        arm.add_body(name, mass=1.0, com=(0.05, 0, 0), inertia=(0.01, 0.01, 0.01))
        arm.add_joint(name, ax.Revolute("z"), parent=last, child=name, at=(0.06, y, 0))
    slide = {"at": (0.13, 0.04, 0), "child_at": (0.13, 0.005, 0)}
    arm.add_loop("slide", ax.Prismatic("x"), parent="shin", child="spring", **slide)
    equations = arm.derive()
    assert len(equations.mobility.independent) == links
    assert all(name.startswith("link") for name in equations.mobility.independent)
