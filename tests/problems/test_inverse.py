"""Forces along motions: round trips through simulation, loops, rolling, too many or few motors."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import axode as ax
import random_mechanisms as rm
from axode.cli import run as run_cli
from axode.problems.inverse.inverse import inverse_dynamics
from tests.problems.test_feasible import balancer
from variants import further

EXAMPLES = Path(__file__).parents[2] / "examples"
SWING = "0.3 + 0.4 * sin(2 * t)"


@pytest.fixture(scope="module")
def caster() -> ax.Model:
    return rm.caster_robot().derive().compile()


@pytest.fixture(scope="module")
def four_bar() -> ax.Model:
    return rm.four_bar().derive().compile()


def inputs_of(model: ax.Model, run: ax.Trajectory) -> np.ndarray:
    return np.stack([run[name] for name in model.inputs], axis=-1)


# round trips -------------------------------------------------------------------------------------


def test_a_simulated_motion_gives_its_inputs_back(caster):
    given = {"left.torque": "0.3 * sin(2 * t)", "right.torque": "0.1 * cos(t)"}
    run = ax.simulate(caster, 2.0, start={"caster_bracket": 0.7}, input=given)
    found = inverse_dynamics(caster, run)
    assert np.abs(inputs_of(caster, found) - inputs_of(caster, run)).max() < 1e-8
    assert np.abs(inputs_of(caster, run)).max() > 0.2
    for name in run.columns("force"):  # what simulate records, inverse records too
        np.testing.assert_allclose(found[name], run[name], atol=1e-9)
    assert found.energy_error < 1e-6
    # without inputs its speeds are differentiated
    bare = run[[*caster.coordinates, *caster.speed_names]]
    again = inverse_dynamics(caster, bare)
    assert np.abs(inputs_of(caster, again) - inputs_of(caster, run)).max() < 1e-5


@pytest.mark.parametrize("name", ["four_bar", further("platform"), "shaken_pendulum", "arm"])
def test_round_trip_of_other_machines(name):
    model = getattr(rm, name)().derive().compile()
    given = {u: f"{0.5 + 0.1 * k} * cos({1 + k} * t)" for k, u in enumerate(model.inputs)}
    run = ax.simulate(model, 0.2, input=given, save_every=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a simulated motion is one its motors can give
        found = inverse_dynamics(model, run)
    assert np.abs(inputs_of(model, found) - inputs_of(model, run)).max() < 1e-8
    missing = [c for c in found.names if c.endswith(".missing")]
    assert bool(missing) == (model.actuation == "underactuated")
    assert all(np.abs(found[c]).max() < 1e-8 for c in missing)


def test_a_batch_of_runs(caster):
    run = ax.simulate(
        caster,
        0.5,
        start={"left.rate": [1.0, 2.0, 3.0]},
        input={"left.torque": 0.2, "right.torque": -0.1},
    )
    found = inverse_dynamics(caster, run)
    assert found.batch == (3,)
    np.testing.assert_allclose(found["left.torque"], 0.2, atol=1e-9)
    np.testing.assert_allclose(found["right.torque"], -0.1, atol=1e-9)


def test_backwards_in_time(caster):
    bare = ax.simulate(
        caster, -1.0, backwards=True, start={"left.rate": 2.0}, input={"left.torque": 0.2}
    )
    found = inverse_dynamics(caster, bare[[*caster.coordinates, *caster.speed_names]])
    np.testing.assert_allclose(found["left.torque"], 0.2, atol=1e-5)


# functions and samples ---------------------------------------------------------------------------


def test_forces_along_functions_make_the_motion(caster):
    """Inverse, then simulate with those forces: the motion comes back, at the order of linear
    interpolation."""
    start = {"caster_bracket": np.pi - 0.3}
    errors = []
    for period in (0.02, 0.01):
        motion = {"left": "6 * t + sin(t)", "right": lambda t: 6 * t + np.sin(2 * t)}
        found = inverse_dynamics(caster, motion, times=1.5, start=start, save_every=period)
        forces = {name: found[name] for name in caster.inputs}
        run = ax.simulate(
            caster,
            1.5,
            start={**start, "left.rate": 7.0, "right.rate": 8.0},
            input=ax.Sampled(forces, period=period, between="linear"),
            save_every=period,
        )
        errors.append(max(np.abs(run[c] - found[c]).max() for c in caster.coordinates))
    assert errors[1] < 5e-4
    assert errors[1] < errors[0] / 2.5


def test_loops_follow_by_assembling(four_bar):
    """Dependent angles close the loop, speeds and torque satisfy the balance of energy."""
    found = inverse_dynamics(four_bar, {"a": "-1 + 3 * t**2"}, times=2.0, save_every=0.01)
    assert found["residual"].max() < 1e-9
    np.testing.assert_allclose(found["a"], -1 + 3 * found.time**2, atol=1e-9)
    np.testing.assert_allclose(found["a.rate"], 6 * found.time, atol=1e-9)
    spline = np.gradient(found["d"], found.time, edge_order=2)
    assert np.abs(spline - found["d.rate"])[1:-1].max() < 2e-2 * np.abs(found["d.rate"]).max()
    assert found.energy_error < 1e-6
    assert found["a"][-1] - found["a"][0] > 1.9 * 2 * np.pi - 2  # the crank goes round


def test_the_dependent_coordinate_may_be_the_given_one(four_bar):
    """The rocker led instead of the crank: the same motion, seen from the other end."""
    there = inverse_dynamics(four_bar, {"a": "-1 + 0.3 * sin(t)"}, times=2.0, save_every=0.02)
    back = inverse_dynamics(four_bar, {"d": there["d"]}, times=there.time)
    assert np.abs(back["a"] - there["a"]).max() < 1e-8
    assert np.abs(back["crank.torque"] - there["crank.torque"]).max() < 1e-4


@pytest.mark.slow
def test_a_platform_led_by_its_pose():
    """Six legs: height, roll and the rest given; the legs' lengths and forces follow."""
    model = rm.platform().derive().compile()
    pose = {
        "base.x": "0.05 * sin(3 * t)",
        "base.y": "0",
        "base.z": "0.7 + 0.03 * sin(2 * t)",
        "base.roll": "0.1 * sin(t)",
        "base.pitch": "0",
        "base.yaw": "0.05 * t",
    }
    found = inverse_dynamics(model, pose, times=1.0, save_every=0.05)
    assert found["residual"].max() < 1e-9
    np.testing.assert_allclose(found["base.roll"], 0.1 * np.sin(found.time), atol=1e-9)
    q, nu = (
        np.stack([found[n] for n in names], axis=-1)
        for names in (model.coordinates, model.independent)
    )
    twist = model.twists(q, nu)[:, model.bodies.index("platform")]
    origin = 0.15 * np.cos(3 * found.time)  # the mass centre moves with the turning besides
    assert np.abs(twist[:, 3] - origin).max() < 0.02 * 0.2
    assert found.energy_error < 1e-4


def test_samples_are_differentiated(caster):
    start, times = {"caster_bracket": 0.5}, np.linspace(0.0, 2.0, 201)
    exact = inverse_dynamics(
        caster, {"left": "3 * sin(t)", "right": "2 * t"}, times=times, start=start
    )
    found = inverse_dynamics(
        caster, {"left": 3 * np.sin(times), "right": 2 * times}, times=times, start=start
    )
    for name in ("left.torque", "right.torque", "caster_bracket"):
        np.testing.assert_allclose(found[name], exact[name], atol=1e-6)
    assert np.ptp(exact["left.torque"]) > 0.05
    fewer = inverse_dynamics(
        caster,
        {"left": 3 * np.sin(times), "right": 2 * times},
        times=times,
        start=start,
        save_every=0.5,
    )
    np.testing.assert_allclose(fewer.time, [0.0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(fewer["left.torque"], found["left.torque"][::50], atol=1e-9)


def test_functions_that_cannot_be_traced_are_sampled(four_bar):
    def crank(t: float) -> float:
        return -1.0 + (0.1 * t**4 if t > 0 else 0.0)

    found = inverse_dynamics(four_bar, {"a": crank}, times=1.0, save_every=0.01)
    exact = inverse_dynamics(four_bar, {"a": "-1 + 0.1 * t**4"}, times=1.0, save_every=0.01)
    np.testing.assert_allclose(found["crank.torque"], exact["crank.torque"], atol=1e-7)


def test_parameters_in_formulas_and_models():
    bot = ax.Mechanism("pendulum")
    length = ax.Parameter("length", 0.5)
    rod = bot.add_body("rod", mass=2.0, com=(length, 0, 0), inertia=(0.01, 0.01, 0.01))
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child=rod)
    bot.add_motor("pin", "pin")
    model = bot.derive().compile()
    found = inverse_dynamics(
        model, {"pin": "length * t"}, times=[0.0, 1.0], parameters={"length": 0.8}
    )
    np.testing.assert_allclose(found["pin"], [0.0, 0.8])
    weight = -2.0 * 9.81 * 0.8 * np.cos(found["pin"])
    np.testing.assert_allclose(found["pin.torque"], weight, rtol=1e-12)
    assert (
        np.abs(inverse_dynamics(model, {"pin": length * 2}, times=[0.0, 1.0])["pin"] - 1.0).max()
        == 0.0
    )


def test_wrenches_from_outside():
    bot = rm.arm(2)
    bot.add_wrench("load", bot.bodies[-1], at=(0.3, 0.2, 0.1))
    model = bot.derive().compile()
    still = {name: "0.3" for name in model.coordinates}
    plain = inverse_dynamics(model, still, times=[0.0, 1.0])
    loaded = inverse_dynamics(model, still, times=[0.0, 1.0], wrenches={"load.fz": [-5.0, -10.0]})
    np.testing.assert_array_equal(loaded["load.fz"], [-5.0, -10.0])
    motors = model.inputs[:2]
    change = np.array([loaded[m] - plain[m] for m in motors])
    np.testing.assert_allclose(change[:, 1], 2 * change[:, 0], atol=1e-12)
    assert np.abs(change).max() > 0.1


# actuation ---------------------------------------------------------------------------------------


def test_redundant_motors_share_by_weight():
    model = rm.mecanum_base().derive().compile()
    assert model.actuation == "redundantly actuated"
    motion = {name: f"{0.2 * (k + 1)} * t" for k, name in enumerate(model.independent)}
    even = inverse_dynamics(model, motion, times=1.0, save_every=0.25)
    first = model.inputs[0]
    heavy = inverse_dynamics(model, motion, times=1.0, save_every=0.25, weights={first: 1e6})
    efforts = [(inputs_of(model, run) ** 2).sum(axis=-1) for run in (even, heavy)]
    assert (efforts[0] < efforts[1]).all()
    assert np.abs(heavy[first]).max() < 1e-4 < np.abs(even[first]).max()
    q, nu = (
        np.stack([even[n] for n in names], axis=-1)
        for names in (model.coordinates, model.independent)
    )
    for run in (even, heavy):  # both make the same motion
        wanted = np.array([0.2 * (k + 1) for k in range(len(model.independent))])
        found = model.forward_dynamics(q, nu, inputs_of(model, run))
        np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), atol=1e-9)


def test_too_few_motors_are_told():
    model = balancer().derive().compile()
    with pytest.warns(ax.UnderactuatedMotionWarning, match=r"missing on base\.\w+.*\.missing"):
        found = inverse_dynamics(
            model, {"pitch": SWING, "base.vx": "0", "base.wz": "0"}, times=1.0, save_every=0.05
        )
    short = np.stack([found[f"{name}.missing"] for name in model.independent], axis=-1)
    assert np.abs(short).max() > 1.0
    q, nu = (
        np.stack([found[n] for n in names], axis=-1)
        for names in (model.coordinates, model.independent)
    )
    nu_dot = np.zeros_like(nu)
    nu_dot[:, model.independent.index("base.wy")] = -1.6 * np.sin(2 * found.time)
    force = (model.mass_matrix(q) @ nu_dot[..., np.newaxis])[..., 0] + model.bias(q, nu)
    force -= model.potential_force(q) + model.input_force(q, inputs_of(model, found))
    np.testing.assert_allclose(short, force, atol=1e-8)
    assert np.abs(found["error"]).max() < 1e-5  # its power is in the balance


def test_missing_forces_derive_no_other_mechanism(monkeypatch):
    """Motors are added to the rows and speeds that are there, once per model."""
    model, compiled = balancer().derive().compile(), []
    compile_equations = ax.Equations.compile

    def count(equations, **options):
        compiled.append(equations)
        return compile_equations(equations, **options)

    monkeypatch.setattr(ax.Equations, "compile", count)
    monkeypatch.setattr(ax.Mechanism, "derive", lambda *_, **__: pytest.fail("derived again"))
    for pace in ("0", "0.1"):
        with pytest.warns(ax.UnderactuatedMotionWarning):
            inverse_dynamics(model, {"pitch": SWING, "base.vx": pace, "base.wz": "0"}, times=0.1)
    assert len(compiled) == 1


def small_cart_pole(size: float) -> ax.Mechanism:
    """A damped pendulum on a driven cart, masses and lengths a multiple of a unit."""
    bot = ax.Mechanism("cart-pole", gravity=(0, -9.81, 0))
    bot.add_body("cart", mass=size**3, inertia=(size**5,) * 3)
    bot.add_body("rod", mass=size**3, com=(size, 0, 0), inertia=(0.1 * size**5,) * 3)
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child="cart")
    bot.add_joint("pin", ax.Revolute("z"), parent="cart", child="rod")
    bot.add_motor("drive", "slide")
    bot.add_damper("friction", "slide", coefficient=50.0 * size**3)
    return bot


@pytest.mark.parametrize("size", [1.0, 1e-4])
@pytest.mark.parametrize("balanced", [True, False])
def test_all_verbs_agree_where_motors_fall_short(size, balanced, tmp_path, capsys):
    """Also of forces far below one newton, and beside large dissipation."""
    bot = small_cart_pole(size)
    model, angle = bot.derive().compile(), -math.pi / 2 if balanced else 0.3
    motion = {"slide": f"{size:g} * t", "pin": repr(angle)}
    verdicts = []
    for verb in (
        lambda: inverse_dynamics(model, motion, times=1.0, save_every=0.5),
        lambda: model.inverse_dynamics({"pin": angle}, {"slide.rate": size}, {}),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            verb()
        verdicts.append(any(issubclass(w.category, ax.UnderactuatedMotionWarning) for w in caught))
    bot.save(tmp_path / "cart.toml")
    at = ["--state", f"pin={angle!r},slide.rate={size!r}"]
    assert run_cli(["inverse", str(tmp_path / "cart.toml"), *at]) == 0
    verdicts.append("pin.rate.missing" in capsys.readouterr().out)
    assert verdicts == [not balanced] * 3


def test_limits_that_are_passed_are_named():
    bot = rm.four_bar()
    bot.drives.clear()
    bot.add_motor("crank", "a", limit=0.5)
    model = bot.derive().compile()
    slow = inverse_dynamics(model, {"a": "-1 + 0.01 * t"}, times=0.1)
    assert slow.info["beyond_limit"] == []  # it takes 0.44 N m
    with pytest.warns(ax.MotorLimitWarning, match="motor 'crank' takes"):
        fast = inverse_dynamics(model, {"a": "-1 + 20 * t**2"}, times=0.5)
    assert fast.info["beyond_limit"] == ["crank.torque"]


# refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("motion", "more", "message"),
    [
        ({"lefft": "t", "right": "t"}, {}, "signal 'lefft'(.|\n)*Did you mean 'left'"),
        ({"left": "t + x", "right": "t"}, {}, "'x' in 't \\+ x' is not a parameter"),
        ({"left": "t"}, {}, "left leaves .*right.* undetermined"),
        ({"left": "t", "right": "t", "base.yaw": "t"}, {}, "do not allow"),
        ({"left": "sqrt(t - 1)", "right": "t"}, {}, "'left'.*not finite at t = 0 s"),
        ({"left": [0.0, 1.0, 2.0], "right": [0.0, 1.0, 2.0]}, {"times": [0, 1, 2]}, "too few"),
        ({"left": np.arange(9.0), "right": "t"}, {"times": np.arange(8.0)}, r"\(9,\) samples"),
        (
            {"left": np.arange(8.0), "right": "t"},
            {"times": [0, 1, 2, 4, 3, 5, 6, 7]},
            "3 s follows 4 s",
        ),
        ({"left": np.arange(8.0), "right": "t"}, {"times": 2.0}, "not a duration"),
        ({"left": "t", "right": "t"}, {"times": None}, "or its duration"),
        ({"left": "t", "right": "t"}, {"times": -1.0}, "must be > 0 s"),
        ({"left": "t", "right": "t"}, {"save_every": 0.0}, "save_every"),
        ({"left": "t", "right": "t"}, {"weights": [1.0]}, "expected 2 numbers"),
        ({"left": "t", "right": "t"}, {"weights": {"left.torque": -1.0}}, "> 0"),
        ({"left": "t", "right": "t"}, {"wrenches": {"gust.fx": 1.0}}, "input from outside"),
        ({}, {}, "give signals by name"),
        ("forward", {}, "expected a Trajectory, a motion of ax.motions or signals"),
    ],
)
def test_what_is_refused(caster, motion, more, message):
    with pytest.raises((ax.InvalidArgument, ax.UnknownName), match=message):
        inverse_dynamics(caster, motion, **{"times": 1.0, **more})


def test_a_measure_of_speed_is_no_part_of_a_motion():
    bot = ax.Mechanism("box")
    bot.add_body("box", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="box")
    model = bot.derive().compile("interpreter")
    for name, same in (("surge", "vx"), ("sway", "vy"), ("heave", "vz"), ("yaw_rate", "wz")):
        match = rf"'{name}' is a measure of speed(.|\n)*equals base\.{same}; give that"
        with pytest.raises(ax.InvalidArgument, match=match):
            inverse_dynamics(model, {name: 5.0}, times=1.0)


def test_a_robot_from_a_file_stands_on_a_ramp():
    """Each of two wheels bears half of m g sin(slope) times its radius."""
    model = ax.load(EXAMPLES / "ramp.toml").derive().compile("interpreter")
    for slope, payload in ((0.0, 0.0), (0.2, 3.0)):
        given = {"slope": slope, "payload": payload}
        torques = model.inverse_dynamics(model.home, parameters=given)
        assert torques == pytest.approx((13.6 + payload) * 9.81 * np.sin(slope) * 0.08 / 2)


def test_a_motion_out_of_reach_is_refused(four_bar):
    with pytest.raises(ax.InvalidArgument, match=r"(cannot be followed|do not allow)"):
        inverse_dynamics(four_bar, {"d": "-1.5 + 3 * t"}, times=2.0)


def test_a_foreign_trajectory_is_refused(caster, four_bar):
    run = ax.simulate(four_bar, 0.1)
    with pytest.raises(ax.UnknownName, match="has to be one of model"):
        inverse_dynamics(caster, run)
    other = rm.four_bar()
    other.loops.clear()
    other.add_loop(
        "c",
        ax.Revolute("y"),
        parent="coupler",
        child="rocker",
        at=(0.45, 0, 0),
        child_at=(0.4, 0, 0),
    )
    with pytest.raises(ax.InvalidArgument, match="open by"):
        inverse_dynamics(other.derive().compile(), run)
    with pytest.raises(ax.InvalidArgument, match="has its own"):
        inverse_dynamics(four_bar, run, times=1.0)


def test_a_model_from_a_file(caster, tmp_path):
    caster.save(tmp_path / "robot.axm")
    model = ax.load_model(tmp_path / "robot.axm")
    speeds = {"left.rate": "2 * t", "right.rate": "t"}
    found, wanted = (
        inverse_dynamics(m, speeds, times=1.0, save_every=0.1) for m in (model, caster)
    )
    np.testing.assert_allclose(inputs_of(model, found), inputs_of(caster, wanted), atol=1e-9)
    with pytest.raises(ax.NotApplicable, match="read from a file"):
        inverse_dynamics(model, {"left": "t", "right": "t"}, times=1.0)


def test_speeds_that_do_not_tell_the_others_are_refused():
    """A parallelogram folded flat: the crank's rate says nothing of the rocker's."""
    bot = ax.Mechanism("parallelogram")
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.2)):
        bot.add_body(name, mass=1.0, com=(length / 2, 0, 0), inertia=(0.01, 0.01, 0.01))
    bot.add_joint("a", ax.Revolute("y"), parent="ground", child="crank")
    bot.add_joint("b", ax.Revolute("y"), parent="crank", child="coupler", at=(0.2, 0, 0))
    bot.add_joint("d", ax.Revolute("y"), parent="ground", child="rocker", at=(0.5, 0, 0))
    bot.add_loop(
        "c",
        ax.Revolute("y"),
        parent="coupler",
        child="rocker",
        at=(0.5, 0, 0),
        child_at=(0.2, 0, 0),
    )
    bot.add_motor("crank", "a")
    bot.set_home(a=-1.0, b=1.0, d=-1.0)
    model = bot.derive().compile()
    safe = inverse_dynamics(model, {"a": "-1 + 0.5 * t"}, times=1.0, save_every=0.1)
    np.testing.assert_allclose(safe["d"], safe["a"], atol=1e-9)
    flat = {"a": [-0.1, 0.0], "b": [0.1, 0.0], "d": [-0.1, 0.0]}
    still = {name: (0.0, 0.0) for name in model.speed_names}
    columns = {**flat, **still, "crank.torque": [0.0, 0.0]}
    run = ax.Trajectory(
        time=np.array([0.0, 1.0]),
        values=np.array(list(columns.values())).T,
        names=tuple(columns),
        units=("",) * len(columns),
        kinds=dict.fromkeys(columns, "measure"),
    )
    with pytest.raises(
        ax.SingularConfiguration, match=r"t = 1 s.*do not determine(.|\n)*independent"
    ):
        inverse_dynamics(model, run)


def test_of_a_motion_that_needs_no_force_nothing_is_missing():
    """Rounding in the second derivative of samples was reported as a missing force."""
    bot = ax.Mechanism("puck")
    puck = bot.add_body("puck", mass=2.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child=puck)
    times = np.linspace(0.0, 1.0, 11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.inverse_dynamics(bot.derive().compile(), {"slide": 0.1 + 0.3 * times}, times=times)
