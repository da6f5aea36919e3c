"""Linear models: the flow of the nonlinear one differentiated, closed forms, published poles."""

from __future__ import annotations

import json
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import axode as ax
import random_mechanisms
from axode.cli import run
from axode.model.model_parts import facts_of
from tests.problems import machines
from tests.problems.linear_machines import balancer, built, cart_pole, gimbal, interpreted, pendulum
from variants import slow, some

G = 9.81
HORIZON, STEPS = 0.1, 20  # [s] of the flows that are differentiated
SMALL = 1e-4  # of the changes; their square and the steps' error bound the difference
FLOW = 3e-6  # relative
TINY, MOMENT = 1e-6, 1e-5  # of changes [rad, m, ...] and of time [s], where rates change much
DIFFERENCES = 1e-4  # relative: rounding over TINY, and its square times third derivatives


# ------------------------------------------------------------------- the flow, differentiated


def flow(model, q, nu, u):
    """States after HORIZON, by Runge-Kutta 4, of many starts at once."""
    h = HORIZON / STEPS

    def rate(x):
        q, nu = x[:, : len(model.coordinates)], x[:, len(model.coordinates) :]
        return np.hstack([model.rates(q, nu), model.forward_dynamics(q, nu, u)])

    x = np.hstack([q, nu])
    for _ in range(STEPS):
        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        k4 = rate(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x[:, : len(model.coordinates)], x[:, len(model.coordinates) :]


def quaternion_of(model, joint):
    return [model.coordinates.index(f"{joint}.{c}") for c in ("qx", "qy", "qz", "qw")]


def value(model, name, q, nu, q0):
    """A quantity of many states, small angles by rotation vectors."""
    if name in model.coordinates:
        return q[:, model.coordinates.index(name)]
    if name in model.speed_names:
        return model.joint_speeds(q, nu)[:, model.speed_names.index(name)]
    if name in model.measure_names:
        return model.measures(q, nu)[:, model.measure_names.index(name)]
    joint, axis = name.rsplit(".", 1)
    four = quaternion_of(model, joint)
    turned = Rotation.from_quat(q0[four]).inv() * Rotation.from_quat(q[:, four])
    return turned.as_rotvec()[:, "xyz".index(axis[1])]


def started(model, lin, changed):
    """A consistent state whose named states differ from the operating point's by the given."""
    point = lin.point
    fix, near, near_q = {}, {}, dict(zip(model.coordinates, point.q, strict=True))
    speeds = {}
    for name, x0, dx in zip(lin.states, lin.x0, changed, strict=True):
        if name in model.coordinates:
            fix[name] = x0 + dx
        elif name in model.speed_names:
            speeds[name] = x0 + dx
        elif name in model.measure_names:
            needs = dict((n, s) for n, _, s in facts_of(model).measures)[name]
            (speeds if needs else near)[name] = x0 + dx
        else:
            joint, axis = name.rsplit(".", 1)
            four = quaternion_of(model, joint)
            step = np.zeros(3)
            step["xyz".index(axis[1])] = dx
            before = np.array([near_q[model.coordinates[k]] for k in four])
            after = (Rotation.from_quat(before) * Rotation.from_rotvec(step)).as_quat()
            near_q |= {model.coordinates[k]: x for k, x in zip(four, after, strict=True)}
    # a coordinate that is fixed is met; the others follow as the loops ask
    state = ax.assemble(model, near_q | near | speeds, fix=fix)
    return state.q, state.nu


def flows(model, lin):
    """Outputs of the flow for small changes of each state and input: central differences."""
    n, m = lin.B.shape
    starts = [started(model, lin, sign * SMALL * e) for e in np.eye(n) for sign in (1, -1)]
    starts += [(lin.point.q, lin.point.nu)] * (2 * m)
    u = np.tile([lin.held[name] for name in model.inputs], (len(starts), 1))
    for k, name in enumerate(lin.inputs):
        u[2 * (n + k), model.inputs.index(name)] += SMALL
        u[2 * (n + k) + 1, model.inputs.index(name)] -= SMALL
    q, nu = flow(model, np.array([s[0] for s in starts]), np.array([s[1] for s in starts]), u)
    ends = np.column_stack([value(model, name, q, nu, lin.point.q) for name in lin.outputs])
    return ((ends[::2] - ends[1::2]) / (2 * SMALL)).T


CASES = {
    "pendulum": (pendulum, {"pin": 0.4}, {}),
    "cart-pole": (cart_pole, {}, {}),
    "four-bar": (lambda: built("four_bar"), {}, {}),
    "wheeled pendulum": (lambda: built("wheeled_pendulum"), {}, {}),
    "balancer at rest": (balancer, {}, {}),
    "balancer on its way": (balancer, {"surge": 0.8, "yaw": 0.6}, {}),
    "caster robot": (lambda: built("caster_robot"), {}, {}),
    "unicycle on its way": (lambda: built("unicycle"), {"phi_dot": 3.0}, {}),
    "platform": (lambda: built("flight_simulator"), {}, {}),
    "platform by pose": (
        lambda: built("flight_simulator"),
        {},
        {
            "states": [
                "c_M.x",
                "c_M.y",
                "c_M.z",
                "roll",
                "pitch",
                "yaw",
                "l_I_dot",
                "l_II_dot",
                "l_III_dot",
                "l_IV_dot",
                "l_V_dot",
                "l_VI_dot",
            ],
            "inputs": ["f_I", "f_IV"],
        },
    ),
    "top": (gimbal, {}, {}),
    "balancer by measures": (
        balancer,
        {"surge": 0.8},
        {"states": ["pitch", "yaw", "pitch_rate", "yaw_rate", "surge"]},
    ),
}


@pytest.mark.parametrize("name", slow(some(CASES, "platform"), "platform by pose"))
def test_the_linear_model_is_the_derivative_of_the_flow(name):
    make, at, options = CASES[name]
    model = make()
    lin = ax.linearize(model, at, input="hold", **options)
    assert lin.steady
    n = len(lin.states)
    expected = lin.discretized(HORIZON)
    found = flows(model, lin)
    scale = np.abs(np.column_stack([expected.A, expected.B])).max()
    assert np.abs(found[:, :n] - lin.C @ expected.A).max() < FLOW * scale
    assert np.abs(found[:, n:] - lin.C @ expected.B).max() < FLOW * scale


@pytest.mark.parametrize(
    "name",
    [
        "rolling_disk",
        "car",
        "ballbot",
        "tree_0",
        "loop_universal",
        "loop_screw",
        "loop_planar",
        "on_a_plinth",
        "shaken_pendulum",
    ],
)
def test_rates_differentiate_to_A_in_any_motion(name):
    """On mechanisms of every kind, moving, under any inputs."""
    model = random_mechanisms.MECHANISMS[name]().derive().compile("interpreter")
    rng = np.random.default_rng(3)
    q = (
        model.home
        if model.equations.system.rheonomic
        else np.array(model.equations.system.samples[1])
    )
    nu, u = (rng.normal(size=len(names)) for names in (model.independent, model.inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ax.errors.NotAnEquilibriumWarning)
        lin = ax.linearize(model, (q, nu), input=u)

    def values_and_rates(q, nu):
        """Of the states: by what they are, and by what they are a moment before and after."""
        dq, dnu = model.rates(q, nu), model.forward_dynamics(q, nu, u)
        near = [(q + s * MOMENT * dq, nu + s * MOMENT * dnu) for s in (0, 1, -1)]
        qs, nus = (np.array(part) for part in zip(*near, strict=True))
        x, after, before = np.array([value(model, n, qs, nus, lin.point.q) for n in lin.states]).T
        return x, (after - before) / (2 * MOMENT)

    steps, rates = [], []
    for change in TINY * np.eye(len(lin.states)):  # loops may not let them be as asked
        (x_1, r_1), (x_0, r_0) = (
            values_and_rates(*started(model, lin, s * change)) for s in (1, -1)
        )
        steps.append((x_1 - x_0) / (2 * TINY))
        rates.append((r_1 - r_0) / (2 * TINY))
    found = np.linalg.solve(np.array(steps), np.array(rates)).T
    assert np.abs(found - lin.A).max() < DIFFERENCES * max(1.0, np.abs(lin.A).max())


@pytest.mark.parametrize(
    "name, at, outputs",
    [
        (
            "balancer",
            {"pitch": 0.3, "pitch_rate": 0.5, "surge": 0.4, "yaw_rate": 0.2},
            [
                "left.contact.x",
                "left.normal",
                "right.normal",
                "left.longitudinal",
                "left.rate",
                "base.surge",
            ],
        ),
        ("four_bar", {"theta1": 0.9, "theta1_dot": 2.0}, None),
    ],
)
def test_rates_and_outputs_anywhere(name, at, outputs):
    """Away from equilibrium too, every derivative is that of the exact rates and outputs."""
    model = balancer() if name == "balancer" else built(name)
    if outputs is None:
        outputs = [f"{row}.force" for row in model.rows] + list(model.coordinates)
    with pytest.warns(ax.errors.NotAnEquilibriumWarning):
        lin = ax.linearize(model, at, outputs=outputs)
    u0 = np.zeros(len(model.inputs))

    def read(q, nu, u):
        forces = dict(
            zip([f"{r}.force" for r in model.rows], model.multipliers(q, nu, u), strict=True)
        )
        if model.contacts:
            kinds = ("longitudinal", "lateral", "normal")
            forces |= {
                f"{c}.{k}": x
                for c, row in zip(model.contacts, model.contact_forces(q, nu, u), strict=True)
                for k, x in zip(kinds, row, strict=True)
            }
        one = (q[np.newaxis], nu[np.newaxis])
        shown = [forces[n] if n in forces else value(model, n, *one, q)[0] for n in outputs]
        return np.array(shown)

    for k in range(len(lin.states)):
        step = SMALL * np.eye(len(lin.states))[k]
        y_1, y_0 = (read(*started(model, lin, s * step), u0) for s in (1, -1))
        slope = (y_1 - y_0) / (2 * SMALL)
        assert np.abs(slope - lin.C[:, k]).max() < 1e-5 * max(1.0, np.abs(lin.C).max())
    for k in range(len(lin.inputs)):
        u = SMALL * np.eye(len(u0))[k]
        y_1, y_0 = (read(lin.point.q, lin.point.nu, s * u) for s in (1, -1))
        slope = (y_1 - y_0) / (2 * SMALL)
        assert np.abs(slope - lin.D[:, k]).max() < 1e-7 * max(1.0, np.abs(lin.D).max())


# ------------------------------------------------------------------------------- closed forms


def test_pendulum_has_its_closed_form():
    """A point of mass 1 on a rod of length 1: theta'' = -g sin(theta) - 0.2 theta' + u."""
    angle = 0.4
    lin = ax.linearize(pendulum(), {"pin": angle}, input="hold")
    assert lin.held["pin.torque"] == pytest.approx(G * np.sin(angle))
    assert np.allclose(lin.A, [[0, 1], [-G * np.cos(angle), -0.2]], atol=1e-12)
    assert np.allclose(lin.B, [[0], [1]])
    assert (lin.states, lin.units["pin"], lin.units["pin.torque"]) == (
        ("pin", "pin.rate"),
        "rad",
        "N m",
    )


def test_cart_pole_has_its_closed_form():
    """Upright, lean'' = (M + m) g / (M l) lean - u / (M l), x'' = -m g / M lean + u / M."""
    M, m, l = 1.0, 0.3, 0.5
    lin = ax.linearize(cart_pole(), states=["rail", "lean", "rail.rate", "lean.rate"])
    A = np.zeros((4, 4))
    A[0, 2] = A[1, 3] = 1
    A[2, 1], A[3, 1] = -m * G / M, (M + m) * G / (M * l)
    assert np.allclose(lin.A, A, atol=1e-12)
    assert np.allclose(lin.B.ravel(), [0, 0, 1 / M, -1 / (M * l)], atol=1e-12)


def test_what_moves_by_the_clock_counts():
    """A pendulum whose pivot goes as a sin(w t): the bob's velocity as a state has a known rate."""
    a, w, l, t, lean = 0.1, 3.0, 0.5, 0.3, 0.4
    bot = ax.Mechanism("shaken", gravity=(0, 0, -G))
    cart = bot.add_body("cart", mass=1.0, inertia=ax.Inertia.point())
    rod = bot.add_body("rod", mass=0.3, com=(0, 0, -l), inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("pin", ax.Revolute("-y"), parent=cart, child=rod)
    bot.prescribe("rail", lambda t: a * np.sin(w * t))
    bot.measure("bob", "velocity", body=rod, at=(0, 0, -l))
    model = bot.derive().compile("interpreter")
    with pytest.warns(ax.errors.NotAnEquilibriumWarning):
        lin = ax.linearize(model, {"pin": lean}, states=["pin", "bob.vx"], t=t)
    pivot = -a * w**2 * np.sin(w * t)
    swing = -(G * np.sin(lean) + pivot * np.cos(lean)) / l
    assert lin.x0 == pytest.approx([lean, a * w * np.cos(w * t)])
    assert lin.drift == pytest.approx([0.0, pivot + l * np.cos(lean) * swing])


def test_it_settles_where_it_leans_into_the_slope():
    """Moments about the contacts and about the axle: M h sin(lean) = (M + 2 m) r sin(slope)."""
    p = {"M": 8.0, "m": 0.5, "r": 0.1, "h": 0.4, "slope": 0.2, "g": 9.81}
    states = ["pitch", "pitch_rate", "surge"]
    lin = ax.linearize(
        built("pendulum_on_slope"), input="hold", settle=True, states=states, parameters=p
    )
    moment = (p["M"] + 2 * p["m"]) * p["r"] * np.sin(p["slope"])
    assert lin.equilibrium
    assert np.sin(lin.x0[0]) == pytest.approx(moment / (p["M"] * p["h"]))
    assert lin.u0 == pytest.approx([p["g"] * moment / 2] * 2)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
def test_it_settles_at_any_size(size):
    """A pendulum of a kilometre was taken for settled 0.3 rad off: forces beside accelerations."""
    bot = ax.Mechanism("pendulum")
    moments = (0.1 * size**5,) * 3
    bob = bot.add_body("bob", mass=size**3, com=(0, 0, -0.5 * size), inertia=moments)
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child=bob)
    lin = ax.linearize(bot.derive().compile(), {"pin": 0.3}, settle=True)
    frequency = np.sqrt(0.5 * 9.81 / 0.35 / size)
    np.testing.assert_allclose(np.abs(lin.poles), frequency, rtol=1e-9)


def test_it_settles_next_to_where_it_is():
    """Without inputs a pendulum on wheels rests hanging or upright, wherever the robot stands."""
    for lean, end in ((0.3, 0.0), (2.9, np.pi)):
        lin = ax.linearize(built("wheeled_pendulum"), {"theta3": lean, "x": 2.0}, settle=True)
        assert lin.equilibrium and lin.point["theta3"] == pytest.approx(end)
        assert lin.point["x"] == pytest.approx(2.0)


EIGENVALUES = (-0.775341882195845 + 4.464867713788230j, -0.322866429004087, -14.078389692798216)


@pytest.fixture(scope="module")
def bicycle():
    path = Path(__file__).parents[2] / "examples" / "bicycle.py"
    make = runpy.run_path(str(path))["bicycle"]
    return make().derive(independent=["base.wx", "steer.rate", "rear.rate"]).compile("interpreter")


def test_the_bicycle_on_four_states_has_the_published_poles(bicycle):
    """Meijaard, Papadopoulos, Ruina and Schwab, Proc. R. Soc. A 463, 2007, at 5 m/s.

    Lean and steer stand alone: place, heading and the wheels' angles are left out.
    """
    riding = {"rear.rate": 5.0 / 0.3}
    lin = ax.linearize(bicycle, riding, states=["roll", "steer", "roll_rate", "steer.rate"])
    assert lin.equilibrium
    expected = [EIGENVALUES[0], EIGENVALUES[0].conjugate(), *EIGENVALUES[1:]]
    assert np.allclose(lin.poles, np.sort_complex(expected), rtol=1e-9)
    assert lin.stable


def test_all_states_of_the_bicycle_are_seven_places_and_three_speeds(bicycle):
    lin = ax.linearize(bicycle, {"rear.rate": 5.0 / 0.3})
    assert len(lin.states) == 10
    assert lin.steady and not lin.equilibrium
    for pole in EIGENVALUES:
        assert np.abs(lin.poles - pole).min() < 1e-6
    assert (np.abs(lin.poles) < 1e-4).sum() == 6  # x, y, yaw, two wheels, speed


# ---------------------------------------------------------------------------- choice of states


def test_the_choice_of_independent_speeds_does_not_matter():
    at, states = {"crank": 1.3}, ["rocker", "rocker.rate"]
    one, two = (
        ax.linearize(interpreted(machines.four_bar(name)), at, states=states, input="hold")
        for name in ("crank", "rocker")
    )
    assert np.allclose(one.A, two.A, rtol=1e-9)
    assert np.allclose(one.B, two.B, rtol=1e-9)


@pytest.mark.slow
def test_places_and_speeds_are_counted_apart():
    """Posture dimension and mobility differ where wheels roll."""
    for name in ("caster_robot", "unicycle", "four_bar", "flight_simulator", "wheeled_pendulum"):
        model = built(name)
        report = model.equations.mobility
        lin = ax.linearize(model, input="hold")
        assert len(lin.states) == report.configuration_dof + report.mobility
        assert lin.states[report.configuration_dof :] == model.independent


def test_reduced_is_linearized_on_fewer_states():
    everything = ax.linearize(balancer())
    fewer = ["base.pitch", "base.wy", "base.vx"]
    one, two = everything.reduced(fewer), ax.linearize(balancer(), states=fewer)
    for part in "ABCD":
        assert np.allclose(getattr(one, part), getattr(two, part), atol=1e-12)
    assert one.outputs == two.outputs == tuple(fewer)


def test_attitude_of_an_upended_body_is_told_by_small_angles():
    """Roll and yaw become one angle there."""
    bot = ax.Mechanism("brick", gravity=(0, 0, 0))
    bot.add_body("brick", mass=1.0, inertia=(0.1, 0.2, 0.3))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="brick")
    model = bot.derive().compile("interpreter")
    level, upended = ax.linearize(model), ax.linearize(model, {"pitch": np.pi / 2 - 1e-6})
    assert level.states[:6] == ("base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw")
    assert upended.states[3:6] == ("base.rx", "base.ry", "base.rz")
    # the rotation vector r from axes that spin with W changes by w + r x W
    spin = ax.linearize(
        model, {"base.wz": 2.0}, states=["base.rx", "base.ry", "base.wx", "base.wy"]
    )
    assert np.allclose(spin.A[:2, :2], [[0, 2], [-2, 0]])


# -------------------------------------------------------------------------------- what is told


def test_it_prints_as_a_table():
    text = str(ax.linearize(cart_pole(), input={"push": 0.0}))
    assert text.splitlines()[0] == "cart-pole, linearized at zero: an equilibrium"
    assert text.splitlines()[1].split() == ["rail", "lean", "rail.rate", "lean.rate", "push"]
    assert "lean.rate'     0   25.51          0          0    -2" in text
    assert "  poles  -5.05, 0 (2 times), 5.05" in text


def test_files_hold_names_and_numbers(tmp_path):
    lin = ax.linearize(cart_pole())
    lin.save(tmp_path / "cart.npz")
    lin.save(tmp_path / "cart.json")
    arrays = np.load(tmp_path / "cart.npz")
    told = json.loads((tmp_path / "cart.json").read_text())
    assert arrays["states"].tolist() == told["states"] == list(lin.states)
    assert np.array_equal(arrays["A"], lin.A) and told["A"] == lin.A.tolist()
    with pytest.raises(ax.errors.FileError, match=r"\.npz or \.json"):
        lin.save(tmp_path / "cart.txt")


def test_a_state_that_does_not_last_is_told():
    with pytest.warns(ax.errors.NotAnEquilibriumWarning, match=r"rail.rate, lean.rate change"):
        lin = ax.linearize(cart_pole(), {"lean": 0.2})
    assert not lin.equilibrium and "no equilibrium, rail.rate, lean.rate change" in str(lin)
    exact = cart_pole().forward_dynamics({"lean": 0.2}, {})
    assert np.allclose(lin.drift, [0, 0, *exact])


def test_what_falls_is_told_also_where_it_is_no_state():
    with pytest.warns(ax.errors.NotAnEquilibriumWarning, match="base.wy, base.vx change"):
        lin = ax.linearize(balancer(), {"pitch": 0.3}, states=["yaw", "yaw_rate"])
    assert np.abs(lin.drift).max() < 1e-12 and not lin.equilibrium


def test_points_are_given_in_every_way_that_a_start_is():
    model = cart_pole()
    at = {"lean": 0.2, "lean.rate": 0.1}
    state = ax.assemble(model, at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ax.errors.NotAnEquilibriumWarning)
        same = [ax.linearize(model, way) for way in (at, state, (state.q, state.nu))]
    assert all(np.array_equal(lin.A, same[0].A) for lin in same)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: ax.linearize(balancer(), states=["pitch", "surge"]),
            "how fast base.pitch changes depends on more than the states base.pitch, base.surge.\n"
            "  Add base.wy, or name no states to get all.",
        ),
        (
            lambda: ax.linearize(
                balancer(), {"surge": 1.0}, states=["pitch", "wy", "surge", "base.y"]
            ),
            "how fast base.y changes depends on more",
        ),
        (
            lambda: ax.linearize(balancer(), states=["pitch", "wy", "pitch_rate"]),
            "states: base.wy, base.pitch_rate depend on each other there; leave one of them out",
        ),
        (
            lambda: ax.linearize(balancer(), states=["pitch", "base.vy"]),
            "the constraints keep base.vy from changing; leave it out",
        ),
        (
            lambda: ax.linearize(balancer(), states=["pitch", "pitch"]),
            "'base.pitch' is named twice",
        ),
        (
            lambda: ax.linearize(balancer(), states="pitch"),
            "a list of names is needed, got 'pitch'",
        ),
        (lambda: ax.linearize(balancer(), states=[]), "a list of names is needed, got []"),
        (lambda: ax.linearize(balancer(), input="held"), 'by name are needed, or "hold"'),
        (
            lambda: ax.linearize(balancer(), {"pitch": [0.1, 0.2]}),
            "state: one number is needed for each",
        ),
        (lambda: ax.linearize(ax.gallery.build("unicycle")), "a model is needed, got Mechanism"),
        (lambda: ax.linearize(balancer(), states=["pitsch"]), "has no signal 'pitsch'"),
        (
            lambda: ax.linearize(balancer(), inputs=["torque"]),
            "several inputs that 'torque' may mean",
        ),
        (
            lambda: ax.linearize(balancer(), states=["pitch", "pitch_rate"], outputs=["base.x"]),
            "outputs: base.x depends on more than the states base.pitch, base.pitch_rate.\n"
            "  Add base.x",
        ),
        (
            lambda: ax.linearize(balancer(), outputs=["left.lateral"]),
            "leave this force indeterminate",
        ),
        (
            lambda: ax.linearize(balancer(), input={"left.torque": "sin(t)"}),
            "constant inputs by name",
        ),
        (lambda: ax.linearize(balancer(), 3.0), "state: expected coordinates, speeds and measures"),
        (lambda: ax.linearize(built("four_bar"), (np.zeros(3), np.zeros(1))), "this q is open by"),
        (
            lambda: ax.linearize(balancer(), (np.zeros(3), np.zeros(1))),
            r"q, or (q, nu), of sizes 9 and 3",
        ),
        (
            lambda: ax.linearize(balancer()).lqr(),
            "base.y; base.yaw + 0.25 left - 0.25 right cannot be moved (poles 0 (3 times)).\n"
            "  Leave out "
            'what nothing depends on: lin.reduced(["base.x", "base.pitch", "base.yaw", "base.wy", '
            '"base.wz", "base.vx"])',
        ),
        (
            lambda: ax.linearize(built("rolling_disk")).lqr(),
            "lqr: there are no inputs to feed back to",
        ),
        (
            lambda: ax.linearize(cart_pole()).lqr({"lean": 1.0}),
            "Q: there is no weight on rail; rail.rate",
        ),
        (lambda: ax.linearize(cart_pole()).lqr({"leen": 1.0}), "has no state 'leen'"),
        (lambda: ax.linearize(cart_pole()).lqr(R=0.0), "R: every input must cost something"),
        (
            lambda: ax.linearize(cart_pole()).lqr(Q=-1.0),
            "Q: weights must be finite and not negative",
        ),
        (
            lambda: ax.linearize(cart_pole()).lqr(Q=np.ones((2, 2))),
            "Q: one weight for each of rail",
        ),
        (
            lambda: ax.linearize(cart_pole()).state_feedback([1.0]),
            "K: 1 inputs times 4 finite gains",
        ),
        (
            lambda: ax.linearize(cart_pole()).reduced(["lean"]),
            "lean depends on lean.rate.\n  Add lean.rate",
        ),
        (lambda: ax.linearize(cart_pole()).discretized(0.0), "dt must be > 0 s"),
        (
            lambda: ax.linearize(cart_pole(), input={"push": 1.0}, settle=True),
            "settle: no equilibrium was found near that point",
        ),
        (lambda: ax.linearize(cart_pole(), parameters={"mass": 1.0}), "has no parameter 'mass'"),
    ],
)
def test_mistakes_are_told_with_their_remedy(call, words):
    with pytest.raises(ax.AxodeError) as caught:
        call()
    assert words in str(caught.value)


def test_a_singular_configuration_is_refused():
    """A parallelogram whose links lie in one line may go on in two ways."""
    model = interpreted(machines.parallelogram())
    with pytest.raises(ax.errors.SingularConfiguration, match="the constraints lose rank"):
        ax.linearize(model, {"crank": 0.0, "coupler": 0.0, "rocker": 0.0})


def test_speeds_that_cannot_describe_the_motion_are_refused():
    model = interpreted(machines.slider_crank("slide"))
    with pytest.raises(ax.errors.SingularConfiguration, match=r"other independent=\[\.\.\.\]"):
        ax.linearize(model, (np.array([0.0, 0.0, 0.4]), np.zeros(1)))


def test_a_model_from_a_file_is_refused(tmp_path):
    cart_pole().equations.compile().save(tmp_path / "cart.axm", ["residual"])
    with pytest.raises(ax.errors.NotApplicable, match="Compile it from the mechanism"):
        ax.linearize(ax.load_model(tmp_path / "cart.axm"))


def test_the_command_line_says_the_same(capsys, tmp_path):
    file = tmp_path / "linear.json"
    words = [
        "linearize",
        "wheeled_pendulum",
        "--state",
        "theta3=pi",
        "--states",
        "theta3,theta3_dot,surge",
    ]
    assert run([*words, "--out", str(file)]) == 0
    lin = ax.linearize(
        built("wheeled_pendulum"), {"theta3": np.pi}, states=["theta3", "theta3_dot", "surge"]
    )
    assert capsys.readouterr().out.strip() == str(lin)
    assert run([*words, "--json", "--dt", "0.01", "--inputs", "M1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert np.allclose(told["A"], lin.discretized(0.01).A)
    assert told["inputs"] == ["M1"]
    assert json.loads(file.read_text())["states"] == list(lin.states)
    assert run(["linearize", "wheeled_pendulum", "--hold", "--input", "M1=1"]) == 2
