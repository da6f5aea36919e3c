"""Gears, belts, differentials, racks and screws against their closed forms."""

import math

import numpy as np
import pytest

import axode as ax
from coupled_mechanisms import differential_car, geared_five_bar, gripper_arm

# One division and a few products: rounding alone.
ROUNDING = 1e-12
FORMULATIONS = (
    "recursive",
    "complement",
    "multipliers",
    "lagrange",
    "virtual_work",
    "spatial_operators",
)
I_A, I_B, I_C = 0.02, 0.3, 0.07  # [kg m^2] about the axes


def shafts(count: int = 2, **inertia) -> ax.Mechanism:
    """Parallel shafts on the ground, each with a motor."""
    m = ax.Mechanism("shafts")
    for k, name in enumerate("abc"[:count]):
        own = inertia.get(name, (I_A, I_B, I_C)[k])
        tensor = ax.Inertia.point() if own == 0.0 else (own, own, own)
        m.add_body(name, mass=1.0 if own else 0.0, inertia=tensor)
        m.add_joint(name, ax.Revolute("z"), parent="ground", child=name, at=(0.1 * k, 0, 0))
        m.add_motor(name, name)
    return m


def model_of(m: ax.Mechanism, formulation: str = "recursive", **options) -> ax.Model:
    return m.derive(formulation, **options).compile("interpreter")


def accelerations(model: ax.Model, u, q=None, nu=None) -> dict[str, float]:
    """All joint accelerations from rest at home, by name."""
    q = model.home if q is None else q
    nu = np.zeros(len(model.independent)) if nu is None else nu
    nu_dot = model.forward_dynamics(q, nu, u)
    v_dot = model.accelerations(q, nu, nu_dot)
    return dict(zip(model.speed_names, v_dot, strict=True))


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("ratio", [3.0, -3.0, 0.25])
def test_a_gear_reflects_the_inertia_by_its_ratio_squared(formulation, ratio):
    """I_b + r^2 I_a on shaft b, torque r tau_a with the sign of meshing wheels."""
    m = shafts()
    m.add_gear("teeth", "a", "b", ratio)
    model = model_of(m, formulation, independent=["b.rate"])
    reflected = I_B + ratio**2 * I_A
    assert model.mass_matrix(model.home) == pytest.approx(reflected, rel=ROUNDING)
    tau_a, tau_b = 0.7, -0.2
    b = (tau_b - ratio * tau_a) / reflected
    found = accelerations(model, [tau_a, tau_b])
    assert found == pytest.approx({"a.rate": -ratio * b, "b.rate": b}, rel=1e-11)
    # what the teeth give: to a the multiplier, to b the ratio times it
    teeth = model.multipliers(model.home, [0.0], [tau_a, tau_b])[0]
    assert teeth == pytest.approx(I_A * found["a.rate"] - tau_a, rel=1e-11)
    assert ratio * teeth == pytest.approx(I_B * found["b.rate"] - tau_b, rel=1e-11)
    assert model.rows == ("teeth.coupling",)


def test_wheels_that_mesh_turn_opposite_ways_and_belts_turn_alike():
    for add, sign in (("add_gear", -1), ("add_belt", 1)):
        m = shafts()
        getattr(m, add)("k", "a", "b", 2.0, offset=0.3)
        m.set_home(b=0.5)
        model = model_of(m, independent=["b.rate"])
        q = dict(zip(model.coordinates, model.home, strict=True))
        assert q["a"] == pytest.approx(sign * 2.0 * q["b"] + 0.3, abs=1e-12)
        assert model.joint_speeds(model.home, [1.0]) == pytest.approx([sign * 2.0, 1.0])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_differential_balances_three_torques(formulation):
    """Both sides get half of ratio times the shaft's torque, whatever their inertias are."""
    ratio, torque = 4.0, 0.6
    m = shafts(3)
    m.add_differential("axle", "a", "b", "c", ratio)
    model = model_of(m, formulation, independent=["b.rate", "c.rate"])
    found = accelerations(model, [torque, 0.0, 0.0])
    assert found["a.rate"] == pytest.approx(ratio * (found["b.rate"] + found["c.rate"]) / 2)
    assert I_B * found["b.rate"] == pytest.approx(I_C * found["c.rate"], rel=1e-11)
    passed = torque - I_A * found["a.rate"]
    assert I_B * found["b.rate"] == pytest.approx(ratio / 2 * passed, rel=1e-11)
    assert model.multipliers(model.home, [0.0, 0.0], [torque, 0, 0])[0] == pytest.approx(-passed)


def test_a_side_that_is_held_lets_the_other_turn_twice_as_fast():
    m = shafts(3)
    m.add_differential("axle", "a", "b", "c", 4.0)
    m.prescribe("b", 0.0)
    model = model_of(m, independent=["c.rate"])
    assert model.joint_speeds(model.home, [1.0]) == pytest.approx([2.0, 0.0, 1.0])
    held = model.multipliers(model.home, [0.0], [0.6, 0.0, 0.0])
    by_name = dict(zip(model.rows, held, strict=True))
    passed = 0.6 - I_A * accelerations(model, [0.6, 0, 0])["a.rate"]
    assert by_name == pytest.approx({"axle.coupling": -passed, "b.prescribed": -2.0 * passed})


@pytest.mark.parametrize("radius", [0.05, -0.05])
def test_a_weight_on_a_rack_falls_as_its_pinion_lets_it(radius):
    """x = r phi; m + I/r^2 falls under m g."""
    mass, g = 2.0, 9.81
    m = ax.Mechanism("rack")
    m.add_body("pinion", mass=1.0, inertia=(I_A, I_A, I_A))
    m.add_body("rack", mass=mass, inertia=(1, 1, 1))
    m.add_joint("pinion", ax.Revolute("y"), parent="ground", child="pinion")
    m.add_joint("rack", ax.Prismatic("z"), parent="ground", child="rack")
    m.add_rack("teeth", "pinion", "rack", radius)
    model = model_of(m)
    found = accelerations(model, [])
    fall = -g * mass / (mass + I_A / radius**2)
    assert found == pytest.approx({"pinion.rate": fall / radius, "rack.rate": fall}, rel=1e-11)
    force = model.multipliers(model.home, [0.0], [])[0]
    assert force == pytest.approx(mass * (fall + g), rel=1e-11)
    run = ax.simulate(m.derive().compile(), 0.2)
    assert run.unit("teeth.coupling.force") == "N"
    assert run["teeth.coupling.force"][-1] == pytest.approx(force, rel=1e-9)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_coupled_cylindrical_joint_is_a_screw(formulation):
    tensor = ((0.03, 0.001, 0.002), (0.001, 0.04, 0.003), (0.002, 0.003, 0.05))
    results = []
    for joint in (ax.Screw((0.6, 0, 0.8), pitch=0.02), ax.Cylindrical((0.6, 0, 0.8))):
        m = ax.Mechanism("bolt")
        m.add_body("bolt", mass=1.5, com=(0.1, 0.05, 0.02), inertia=tensor)
        m.add_joint("bolt", joint, parent="ground", child="bolt", rotation=(0.2, 0.1, 0.4))
        if isinstance(joint, ax.Cylindrical):
            m.add_screw("thread", "bolt.angle", "bolt.slide", 0.02)
        m.set_home({m.connections[0].coordinates[0]: 0.4})
        speed = m.connections[0].speeds[0]
        model = model_of(m, formulation, independent=[speed])
        q, nu = model.home, [1.3]
        results.append([model.mass_matrix(q).item(), model.forward_dynamics(q, nu, []).item()])
    assert results[1] == pytest.approx(results[0], rel=1e-11)


def test_a_wheel_that_rolls_is_a_pinion_on_the_ground():
    """The same cart, held by its contact or by a rack of the wheel's radius."""
    results = []
    for rolls in (True, False):
        m = ax.Mechanism("cart")
        m.add_body("cart", mass=3.0, inertia=(1, 1, 1))
        m.add_joint("cart", ax.Prismatic("x"), parent="ground", child="cart", at=(0, 0, 0.1))
        if rolls:
            m.add_wheel("wheel", ax.Rolling(0.1), on="cart", mass=1.0, motor=True)
        else:
            disk = ax.Inertia.disk(1.0, 0.1, "y")
            m.add_body("wheel", mass=1.0, inertia=disk)
            m.add_joint("wheel", ax.Revolute("y"), parent="cart", child="wheel")
            m.add_motor("wheel", "wheel")
            m.add_rack("contact", "wheel", "cart", 0.1)
        model = model_of(m, independent=["wheel.rate"])
        results.append(
            [
                model.mass_matrix(model.home).item(),
                model.forward_dynamics(model.home, [2.0], [0.5]).item(),
            ]
        )
    assert results[1] == pytest.approx(results[0], rel=1e-12)


def test_a_planetary_gear_obeys_willis():
    """(w_sun - w_carrier) / (w_ring - w_carrier) = -z_ring / z_sun."""
    z_sun, z_planet = 20, 15
    z_ring = z_sun + 2 * z_planet
    m = ax.Mechanism("planetary")
    for name in ("carrier", "sun", "planet", "ring"):
        m.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        on = "ground" if name == "carrier" else "carrier"
        at = (0.1, 0, 0) if name == "planet" else (0, 0, 0)
        m.add_joint(name, ax.Revolute("z"), parent=on, child=name, at=at)
    m.add_gear("inner", "sun", "planet", z_planet / z_sun)
    m.add_gear("outer", "ring", "planet", -z_planet / z_ring)
    model = model_of(m, independent=["carrier.rate", "sun.rate"])
    carrier, sun, _, ring = model.joint_speeds(model.home, [0.7, 2.3])  # those of the wheels on it
    assert sun / ring == pytest.approx(-z_ring / z_sun)
    # the sun drives, the ring stands in the world: the carrier turns z_sun / (z_sun + z_ring)
    world = np.array([[1.0, 1.0], [1.0, -z_sun / z_ring]])  # of sun and ring
    turning = np.linalg.solve(world, [1.0, 0.0])[0]
    assert turning == pytest.approx(z_sun / (z_sun + z_ring))
    assert carrier == pytest.approx(0.7)


# nearly special ----------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-8, -5, -2, 2, 5, 8])
def test_ratios_of_any_size_keep_every_digit(exponent):
    ratio = 3.0 * 10.0**exponent
    m = shafts()
    m.add_gear("teeth", "a", "b", ratio)
    u = [0.7, -0.2]
    b = (u[1] - ratio * u[0]) / (I_B + ratio**2 * I_A)
    for formulation in FORMULATIONS:
        found = accelerations(model_of(m, formulation), u)
        assert found == pytest.approx({"a.rate": -ratio * b, "b.rate": b}, rel=1e-9), formulation


@pytest.mark.parametrize("inertia", [0.0, 1e-4, 1e-9, 1e-15])
def test_a_wheel_without_inertia_turns_with_its_partner(inertia):
    """Exactly massless, or nearly: the limit is reached smoothly."""
    m = shafts(a=inertia)
    m.add_gear("teeth", "a", "b", 5.0)
    expected = (-5.0 * 0.7) / (I_B + 25.0 * inertia)
    for formulation in ("recursive", "complement", "lagrange", "virtual_work"):
        found = accelerations(model_of(m, formulation, independent=["b.rate"]), [0.7, 0.0])
        assert found["b.rate"] == pytest.approx(expected, rel=1e-11), formulation
    if inertia == 0.0:
        for formulation in ("multipliers", "spatial_operators"):
            with pytest.raises(ax.NotApplicable, match="check a"):
                m.derive(formulation)


def test_a_ring_of_gears_that_agree_is_one_gear_too_many():
    m = shafts(3)
    m.add_gear("ab", "a", "b", 2.0)
    m.add_gear("bc", "b", "c", 3.0)
    m.add_belt("ac", "a", "c", 6.0)
    report = m.derive().mobility
    assert report.mobility == 1
    assert report.dropped == ("ac.coupling (follows from ab.coupling, bc.coupling)",)
    assert report.indeterminate == ("ab.coupling", "bc.coupling", "ac.coupling")
    assert report.couplings[0] == "ab: a + 2 b = 0"
    assert "  coupling       ac: a - 6 c = 0\n" in str(report)


def test_a_ring_of_gears_that_disagree_cannot_move():
    m = shafts(3)
    m.add_gear("ab", "a", "b", 2.0)
    m.add_gear("bc", "b", "c", 3.0)
    m.add_gear("ac", "a", "c", 6.0)
    with pytest.raises(ax.Immobile, match="Make the ratios of couplings agree, remove a coupling"):
        m.derive()


def test_home_keeps_what_leads_and_moves_what_follows():
    m = shafts(3)
    m.add_mimic("bc", "c", "b", multiplier=2.0, offset=0.1)
    m.add_mimic("ab", "b", "a", multiplier=3.0, offset=0.5)
    home = model_of(m).home
    assert home == pytest.approx([0.0, 0.5, 1.1], abs=1e-14)
    m.set_home(b=0.8)
    assert model_of(m).home == pytest.approx([0.1, 0.8, 1.7], abs=1e-14)
    m.set_home(a=1.0, b=0.8)  # cannot be kept: the nearest configuration
    with pytest.warns(ax.errors.RequestNotMetWarning, match="moved home: a = 1 became"):
        a, b, c = model_of(m).home
    assert (3 * a + 0.5, 2 * b + 0.1) == pytest.approx((b, c))
    assert abs(a - 1.0) + abs(b - 0.8) > 0.1


def test_offsets_that_contradict_are_reported():
    m = shafts()
    m.add_belt("one", "a", "b")
    m.add_belt("two", "a", "b", offset=0.1)
    with pytest.raises(ax.LoopNotClosed, match="The offsets of the couplings, or those and the"):
        m.derive()


# in use ------------------------------------------------------------------------------------------


def test_a_ratio_may_be_a_parameter():
    m = shafts()
    m.add_gear("teeth", "a", "b", ax.Parameter("ratio", 3.0), offset=ax.Parameter("phase", 0.1))
    model = model_of(m, independent=["b.rate"])
    for ratio in (3.0, -0.5):
        inertia = model.mass_matrix(model.home, parameters={"ratio": ratio})
        assert inertia == pytest.approx(I_B + ratio**2 * I_A, rel=ROUNDING)
    run = ax.simulate(m.derive().compile(), 0.1, start={"b": 1.0, "a": -2.9})
    assert run["a"][0] == pytest.approx(-2.9)
    assert np.abs(run["residual"]).max() < 1e-12


@pytest.mark.slow
def test_energy_is_kept_by_a_car_with_a_differential():
    """Coasting on a curve for two seconds, on a floating base so that all rows are needed."""
    for base in ("planar", "floating"):
        model = differential_car(base).derive().compile()
        run = ax.simulate(model, 2.0, start={"shaft.rate": 40.0, "steer.rate": -0.2})
        assert np.abs(run["error"]).max() < 1e-9 * run["kinetic"][0]
        mean = (run["left.rate"] + run["right.rate"]) / 2
        assert run["shaft.rate"] == pytest.approx(4.0 * mean, rel=1e-12)
        assert np.abs(run["left.rate"] - run["right.rate"]).max() > 0.5  # it did turn
        assert run.unit("axle.coupling.force") == "N m"


def test_a_motor_on_one_side_drives_both():
    """Inverse dynamics of a gripper: one motor for two fingers, nothing left over."""
    e = gripper_arm().derive()
    assert e.actuation == "fully actuated"
    model = e.compile("interpreter")
    rng = np.random.default_rng(4)
    q, nu, nu_dot = model.home, rng.normal(size=8), rng.normal(size=8)
    u = model.inverse_dynamics(q, nu, nu_dot)
    assert model.forward_dynamics(q, nu, u) == pytest.approx(nu_dot, rel=1e-9)
    # against the fingers set free, each with its own motor: their forces add
    free = gripper_arm(coupled=False)
    free.add_motor("other", "right")
    loose = free.derive().compile("interpreter")
    both = loose.inverse_dynamics(q, [*nu, nu[-1]], [*nu_dot, nu_dot[-1]])
    assert u[:7] == pytest.approx(both[:7], rel=1e-9)
    assert u[7] == pytest.approx(both[7] + both[8], rel=1e-9)
    force = model.multipliers(q, nu, u)
    assert force == pytest.approx(both[8:], rel=1e-9)


def test_motors_on_both_sides_are_redundant():
    bot = gripper_arm()
    bot.add_motor("other", "right")
    e = bot.derive()
    assert e.actuation == "redundantly actuated"
    model = e.compile("interpreter")
    u = model.inverse_dynamics(model.home, np.zeros(8), [*np.zeros(7), 1.0])
    assert u[7] == pytest.approx(u[8])  # least effort: shared alike


def test_motors_on_joints_that_cannot_move_give_nothing():
    """Two belts of different ratios lock a and b; c moves, and nothing drives it."""
    m = shafts(3)
    m.drives.pop()
    m.add_belt("slow", "a", "b", 1.0)
    m.add_belt("fast", "a", "b", 2.0)
    e = m.derive()
    assert (e.actuation, e.mobility.locked) == ("underactuated", ("a.rate", "b.rate"))
    u, missing = e.compile("interpreter").inverse_dynamics_with_residual(
        [0.0, 0.0, 0.0], [0.0], [1.0]
    )
    assert (u.tolist(), missing.tolist()) == ([0.0, 0.0], [I_C])


def test_a_gear_across_a_loop_keeps_its_cranks_opposite():
    """Symmetric cranks of a five-bar: the tip moves straight up and down."""
    bot = geared_five_bar()
    bot.couplings[:] = []
    bot.add_gear("cranks", "ja", "jc", 1.0, offset=-math.pi)
    bot.measure("tip", "position", body="b", at=(0.5, 0, 0))
    model = bot.derive().compile()
    run = ax.simulate(model, 0.3, input={"crank.torque": 0.05})
    assert np.ptp(run["ja"]) > 0.1
    assert run["ja"] + run["jc"] == pytest.approx(-math.pi, abs=1e-9)
    assert run["tip.x"] == pytest.approx(0.0, abs=1e-9)


def test_speeds_are_related_whatever_the_positions_are():
    m = shafts()
    m.add_coupling("belt", {"a.rate": 1.0, "b.rate": -2.0})
    model = m.derive().compile()
    run = ax.simulate(model, 0.5, start={"a": 0.3, "b": 1.1, "b.rate": 1.0})
    assert (run["a"][0], run["b"][0]) == (0.3, 1.1)
    assert run["a"] - 2 * run["b"] == pytest.approx(0.3 - 2.2)
    report = m.derive().mobility
    assert (report.mobility, report.configuration_dof, report.reachable) == (1, 2, 1)


def test_a_coupling_may_be_called_as_a_wheel_is():
    """Its force still has a column of its own."""
    bot = differential_car()
    bot.couplings[:] = []
    bot.add_differential("left", "shaft", "left", "right", 4.0)
    run = ax.simulate(bot.derive().compile(), 0.01, start={"shaft.rate": 1.0})
    assert run.unit("left.coupling.force") == "N m"


def test_loads_need_a_base_that_nothing_but_its_wheels_holds():
    bot = differential_car()
    bot.add_body("vane", mass=0.1, inertia=(1e-3, 1e-3, 1e-3))
    bot.add_joint("vane", ax.Revolute("z"), parent="body", child="vane")
    bot.add_belt("compass", "vane", "base.yaw", -1.0)
    model = bot.derive().compile()
    run = ax.simulate(model, 0.1, start={"shaft.rate": 5.0})
    assert run["vane"] == pytest.approx(-run["base.yaw"], abs=1e-12)
    with pytest.raises(ax.NotApplicable, match="is prescribed, coupled or on a spring"):
        ax.feasible(model, run, friction=0.8)
