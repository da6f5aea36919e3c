"""Rolling constraints that integrate: found in closed form, constant along every run."""

import casadi as ca
import numpy as np
import pytest

import axode as ax

KEPT = 1e-12  # Runge-Kutta steps keep sums of coordinates to rounding
CLOSED_FORMS = {  # with what the sources say of them
    "delta_array": ["3 r sigma + a (theta1 + theta2 + theta3)"],  # Angeles (12.59)
    "caster_robot": ["l phi - r theta1 + r theta2"],
    "wheeled_pendulum": ["rho phi1 - rho phi2 + psi"],  # Staicu (11), wheels turning backwards
    "mecanum_rover": ["r phi3 - r phi2 + 2 theta (a + b)", "r phi1 - r phi4 + 2 theta (a + b)"],
    "tricycle": ["2 b theta - r phi_R + r phi_L"],
}


@pytest.fixture(params=CLOSED_FORMS)
def robot(request):
    return ax.gallery.build(request.param).derive()


def drift(equations, run):
    """How far each integral moves along a run."""
    function = ca.Function("integrals", [equations.q, equations.p], [equations.integrals])
    q = np.array([run[name] for name in equations.coordinates])
    values = function(q, list(equations.parameters.values())).full()
    return np.ptp(values, axis=1)


@pytest.mark.slow
def test_all_that_the_report_counts_are_found(robot):
    """And keep their value along a run in which every wheel turns."""
    mobility = robot.mobility
    assert mobility.integrals == tuple(f"{x} = const." for x in CLOSED_FORMS[robot.name])
    assert len(mobility.integrals) == mobility.integrable
    inputs = np.linspace(0.05, 0.12, len(robot.inputs))
    run = ax.simulate(robot.compile("interpreter"), 1.0, input=list(inputs))
    assert max(np.ptp(run[name]) for name in robot.coordinates) > 0.05
    assert (drift(robot, run) < KEPT).all()


@pytest.mark.slow
def test_a_free_body_on_wheels_turns_by_half_an_angle():
    """The heading is an angle of the quaternion; what the ground holds is left out."""
    bot = ax.Mechanism("trolley")
    bot.add_body("deck", mass=4.0, com=(0.02, 0, 0), inertia=(0.05, 0.1, 0.12))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="deck", at=(0, 0, 0.1))
    for side, y in (("left", 0.25), ("right", -0.25)):
        bot.add_wheel(side, ax.Rolling(0.1), on="deck", at=(0, y, 0), mass=0.5, motor=True)
    bot.add_contact(
        "skid", ax.Ball(0.1, longitudinal="free", lateral="free"), body="deck", at=(-0.2, 0, 0)
    )
    equations = bot.derive()
    assert equations.mobility.integrals == ("left - right + 10 atan2(base.qz, base.qw) = const.",)
    run = ax.simulate(equations.compile("interpreter"), 2.0, input=[0.3, 0.1])
    assert drift(equations, run)[0] < 1e-7  # as far as the steps resolve the quaternion


def test_what_positions_tie_is_no_integral():
    """Gears couple positions: their row is holonomic and counts among the constraints."""
    bot = ax.gallery.build("differential_drive")
    bot.add_body("flywheel", mass=0.1, inertia=(1e-3, 1e-3, 1e-3))
    bot.add_joint("flywheel", ax.Revolute("y"), parent=bot.bodies[0], child="flywheel")
    bot.add_coupling("gear", {"flywheel": 1.0, "phi_R": -3.0})
    mobility = bot.derive().mobility
    assert mobility.integrable == 1
    assert mobility.integrals == ("2 b theta - r phi_R + r phi_L = const.",)


@pytest.mark.slow
def test_integrals_of_other_forms_are_counted_only():
    """A tree, a linkage and a wheel have none; on the slope the body pitches, too."""
    for name, count in (
        ("five_axis_arm", 0),
        ("four_bar", 0),
        ("unicycle", 0),
        ("pendulum_on_slope", 1),
    ):
        equations = ax.gallery.build(name).derive()
        assert equations.mobility.integrable == count
        assert equations.mobility.integrals == () and equations.integrals.numel() == 0
