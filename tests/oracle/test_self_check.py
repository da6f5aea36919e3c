"""The self-check at derive: silent on what is right, loud on what is not."""

import math

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.formulations import self_check
from axode.symbolic.functions import function_graph
from laws.cases import gallery_case
from near_mechanisms import mechanism_of
from random_mechanisms import MECHANISMS, chain

# Rounding leaves 1e-12 at most on these; the check raises at 1e-9.
QUIET = 1e-10


@pytest.mark.parametrize("name", ax.gallery.NAMES)
def test_it_stays_quiet_at_a_tenth_of_its_tolerance(name, monkeypatch):
    """At its own tolerance it watches whatever any test derives."""
    monkeypatch.setattr(self_check, "AGREEMENT", QUIET)
    self_check.SelfCheck(gallery_case(name).system).check_system()


@pytest.mark.parametrize("name", ["arm", "car", "platform", "shaken_pendulum", "vehicle_4"])
def test_functions_are_checked_when_they_are_built(name, monkeypatch):
    monkeypatch.setattr(self_check, "AGREEMENT", QUIET)
    equations = MECHANISMS[name]().derive()
    for function in self_check.CHECKED:
        function_graph(equations, function, fixed=False)


def spoiled(name, monkeypatch, spoil):
    """Derive a mechanism whose system was changed behind the description's back."""
    from axode.symbolic import equations

    build = equations.build_system

    def build_wrong(*arguments, **options):
        system = build(*arguments, **options)
        return spoil(system) or system

    monkeypatch.setattr(equations, "build_system", build_wrong)
    return MECHANISMS[name]().derive()


def test_a_lost_inertia_is_seen_and_named(monkeypatch):
    def spoil(system):
        system.regrouped[-1].tensor[2, 2] *= 1.001

    last = MECHANISMS["arm"]().derive().speeds[-1]
    with pytest.raises(ax.SelfCheckFailed) as caught:
        spoiled("arm", monkeypatch, spoil)
    assert f"force on {last}: off by" in str(caught.value)
    assert "self_check=False" in str(caught.value) and "report" in str(caught.value)
    assert caught.value.disagreements


@pytest.mark.parametrize("field", ["entries", "bias"])
@pytest.mark.parametrize("name", ["four_bar", "car", "prescribed_yaw"])
def test_a_wrong_row_is_seen_and_named(name, field, monkeypatch):
    from dataclasses import replace

    def spoil(system):
        def wrong(row):
            if field == "bias":
                return replace(row, bias=row.bias + 1e-3)
            return replace(row, entries={j: 1.001 * x for j, x in row.entries.items()})

        row = system.report.kept[-1]
        rows = tuple(wrong(r) if i == row else r for i, r in enumerate(system.rows))
        names.append(system.rows[row].name)
        return replace(system, rows=rows)

    names: list[str] = []
    with pytest.raises(ax.SelfCheckFailed) as caught:
        spoiled(name, monkeypatch, spoil)
    assert f"row {names[0]}" in str(caught.value)


def test_a_moved_frame_is_seen(monkeypatch):
    def spoil(system):
        pose = system.tree.body_pose["link3"]
        pose.p[0] += 1e-6

    with pytest.raises(ax.SelfCheckFailed, match="position of body 'link3'"):
        monkeypatch.setitem(MECHANISMS, "chain", lambda: chain(5))
        spoiled("chain", monkeypatch, spoil)


@pytest.mark.parametrize("function", self_check.CHECKED)
def test_a_wrong_function_is_seen(function):
    equations = MECHANISMS["platform"]().derive()
    attribute = {"mass_matrix": "I", "state_rate": "forward_dynamics"}.get(function, function)
    right = getattr(equations, attribute)
    equations.__dict__[attribute] = right + 1e-4 * SX.ones(right.shape)
    with pytest.raises(ax.SelfCheckFailed, match=f"{function}, motion of"):
        function_graph(equations, function, fixed=False)


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(self_check, "AGREEMENT", 0.0)
    mechanism = MECHANISMS["arm"]()
    with pytest.raises(ax.SelfCheckFailed):
        mechanism.derive()
    equations = mechanism.derive(self_check=False)
    function_graph(equations, "forward_dynamics", fixed=False)


def two_links(axis, **placement):
    bot = ax.Mechanism("two links")
    parent = bot.ground
    for i, (turn, place) in enumerate((("z", {}), (axis, placement))):
        link = bot.add_body(f"link{i}", mass=1.0, com=(0.1, 0.05, 0.02), inertia=(0.01, 0.02, 0.03))
        bot.add_joint(f"joint{i}", ax.Revolute(turn), parent=parent, child=link, **place)
        parent = link
    return bot


@pytest.mark.parametrize("e", [10.0**-k for k in range(4, 16)])
def test_nearly_parallel_axes_are_right_or_refused(e):
    """Axes that differ by e: whatever `derive` returns satisfies the oracle."""
    try:
        equations = two_links((math.sin(e), 0.0, math.cos(e)), at=(0.4, 0.1, 0.1)).derive()
    except ax.SelfCheckFailed:
        return
    function_graph(equations, "forward_dynamics", fixed=False)


# parts that the oracle showed to be wrong --------------------------------------------------------


def ball_on_plate(turn):
    """A ball that may slide one way, on a plate whose frame is turned and whose joint is not."""
    bot = ax.Mechanism("ball on a plate")
    plate = bot.add_body("plate", mass=4.0, inertia=(0.4, 0.4, 0.7))
    ball = bot.add_body("ball", mass=1.0, com=(0.01, 0.02, 0.0), inertia=(0.01, 0.012, 0.013))
    bot.add_joint(
        "tilt", ax.Revolute("x"), parent=bot.ground, child=plate, child_rotation=(0.0, 0.0, turn)
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=ball)
    bot.add_contact("skin", ax.Ball(0.1, lateral="free"), body=ball, ground=plate)
    bot.set_home({"base.z": 0.1, "tilt": 0.2})
    return bot


@pytest.mark.parametrize("turn", [0.0, 0.7])
def test_a_ball_slides_along_the_ground_bodys_own_axes(turn):
    """The direction that may not slip is x of the plate, however the plate hangs on its joint."""
    equations = ball_on_plate(turn).derive()
    from axode.oracle.body_laws import Oracle

    state = equations.self_check.states[0]
    rows = Oracle(equations.system.mechanism).rows(state.q, state.v)
    mine = np.array(equations.system.all_rows_function(state.q, 0.0, []))
    np.testing.assert_allclose(mine, rows.A, atol=1e-12)


def test_inverse_dynamics_of_motors_that_repeat_each_other_and_do_not_suffice():
    """Two motors on one axle of a vehicle with more freedoms: efforts are weighed."""
    bot = ax.Mechanism("two motors on a wheel")
    body = bot.add_body("body", mass=3.0, inertia=(0.1, 0.1, 0.1))
    wheel = bot.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("lift", ax.Prismatic("x"), parent=bot.ground, child=body)
    bot.add_joint("axle", ax.Revolute("y"), parent=body, child=wheel)
    for name in ("one", "two"):
        bot.add_motor(name, "axle")
    model = bot.derive().compile("interpreter")
    u = model.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 2.0])
    np.testing.assert_allclose(u, [0.1, 0.1])
    u = model.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 2.0], weights=[1.0, 3.0])
    np.testing.assert_allclose(u, [0.15, 0.05])


def turned_body(rotation):
    bot = ax.Mechanism("turned body")
    body = bot.add_body("body", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child=body, child_rotation=rotation)
    return bot


@pytest.mark.parametrize("digits", [7, 9, 12, 16])
@pytest.mark.parametrize("free", [False, True])
def test_a_matrix_of_few_digits_means_the_nearest_rotation(digits, free):
    """Written with numbers or with parameters; its own inverse either way."""
    c, s = round(math.cos(0.7), digits), round(math.sin(0.7), digits)
    if free:
        c, s = ax.Parameter("c", c), ax.Parameter("s", s)
    bot = turned_body(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))
    equations = bot.derive()
    pose = equations.poses["body"]
    R = np.array(
        ca.Function("R", [equations.q, equations.p], [pose.R])(
            [0.4], list(equations.parameters.values())
        )
    )
    # one step of Newton's squares what is missing: 1e-7 becomes 1e-14
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-13)


@pytest.mark.parametrize(
    ("kind", "shape", "seed", "size"),
    [("rounded", "vehicle", 104436, 3), ("nearly", "loop", 106676, 3)],
)
def test_rows_of_rounding_errors_alone_raise_no_alarm(kind, shape, seed, size):
    """Vehicles that hardly move: their biases are differences of numbers of 1e-17."""
    mechanism_of(kind, shape, seed, size=size).derive()


@pytest.mark.filterwarnings("ignore::axode.errors.PlausibilityWarning")
@pytest.mark.parametrize("seed", [0, 1])
def test_massless_bodies_that_are_coupled_pass(seed):
    """A hand without inertia on an arm: rounding of the couplings is all that its motion feels."""
    rng = np.random.default_rng(seed)
    bot = ax.Mechanism("hand")
    last = bot.ground
    for k, finger in enumerate([False] * 4 + [True] * 7):
        kind = (0.0, (0.0, 0.0, 0.0)) if finger else (1.0, (1.0, 1.5, 2.0))
        body = bot.add_body(f"body{k}", mass=kind[0], inertia=kind[1])
        axis, at = rng.normal(size=(2, 3))
        joint = ax.Revolute(tuple(axis / np.linalg.norm(axis)))
        bot.add_joint(f"joint{k}", joint, parent=last, child=body, at=tuple(at))
        last = last if finger else body
        if k > 4:
            bot.add_coupling(f"tendon{k}", {f"joint{k}": 1.0, f"joint{k - 1}": -rng.uniform(0, 2)})
    model = bot.derive().compile("interpreter")
    M = model.mass_matrix(rng.normal(size=len(model.coordinates)))
    moves = [
        name.startswith(("joint0", "joint1", "joint2", "joint3")) for name in model.independent
    ]
    assert np.linalg.eigvalsh(M[np.ix_(moves, moves)]).min() > 0.1
    assert np.abs(M[np.ix_(np.logical_not(moves), np.ones(5, bool))]).max() == 0.0


@pytest.mark.parametrize("joints", [1, 2, 3])
def test_a_ball_on_concentric_joints_rolls_as_a_ball(joints):
    """Free shells around a ball's centre change nothing: (m + I / r^2) a = F, whatever they do."""
    radius, push, moment = 0.1, np.array([3.0, -1.0]), 0.01
    bot = ax.Mechanism("shells")
    for axis, parent in (("x", "ground"), ("y", "x")):
        bot.add_body(axis, mass=1.0, inertia=(0.1, 0.1, 0.1))
        bot.add_joint(f"along {axis}", ax.Prismatic(axis), parent=parent, child=axis)
        bot.add_motor(f"push {axis}", f"along {axis}")
    for k in range(joints):
        bot.add_body(f"shell{k}", mass=1.0, inertia=(moment, moment, moment))
        parent = f"shell{k - 1}" if k else "y"
        at = {} if k else {"at": (0.0, 0.0, radius)}
        bot.add_joint(f"s{k}", ax.Spherical(), parent=parent, child=f"shell{k}", **at)
    bot.add_contact("ball", ax.Ball(radius), body=f"shell{joints - 1}")
    plane = [f"s{joints - 1}.wz", *(f"s{k}.w{a}" for k in range(joints - 1) for a in "xyz")]
    equations = bot.derive(independent=["along x.rate", "along y.rate", *plane])
    model = equations.compile("interpreter")
    rng = np.random.default_rng(joints)
    q = rng.normal(size=len(model.coordinates))
    nu = rng.normal(size=len(model.independent))
    for k in range(joints):
        four = q[2 + 4 * k : 6 + 4 * k]
        four /= np.linalg.norm(four)
    a = model.forward_dynamics(q, nu, push)
    mass = np.array([2.0 + joints, 1.0 + joints]) + moment / radius**2
    assert a[:2] == pytest.approx(push / mass, rel=1e-9)
