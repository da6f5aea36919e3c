"""Mechanisms whose whole motion is prescribed: no speed is free, every force is determined."""

from __future__ import annotations

import numpy as np
import pytest

import axode as ax
from laws.cases import FOR_LOOPS

ROUNDING = 1e-12
T = 0.4  # [s], any instant


def led_arm() -> ax.Mechanism:
    """A pendulum that follows 0.3 sin t, without a motor."""
    arm = ax.Mechanism("led arm")
    link = arm.add_body("link", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    arm.add_joint("j", ax.Revolute("y"), parent=arm.ground, child=link)
    arm.prescribe("j", lambda t: 0.3 * np.sin(t))
    return arm


@pytest.mark.parametrize("formulation", sorted(ax.FORMULATIONS.keys() - FOR_LOOPS))
def test_the_leading_force_is_the_one_of_the_moving_arm(formulation):
    model = led_arm().derive(formulation).compile("interpreter")
    assert model.independent == ()
    angle, rate, acceleration = 0.3 * np.sin(T), 0.3 * np.cos(T), -0.3 * np.sin(T)
    q = np.array([angle])
    (force,) = model.multipliers(q, np.zeros(0), t=T)
    # about the pin: inertia m c^2 + I, weight at the lever c cos(angle), pitch turns it down
    expected = (0.1 + 0.25) * acceleration - 9.81 * 0.5 * np.cos(angle)
    assert force == pytest.approx(expected, rel=ROUNDING)
    np.testing.assert_allclose(model.joint_speeds(q, np.zeros(0), t=T), [rate], rtol=ROUNDING)
    assert model.forward_dynamics(q, np.zeros(0), t=T).shape == (0,)


def test_the_report_says_so():
    report = led_arm().derive().mobility
    assert (report.mobility, report.actuation) == (0, "driven by time alone")


def test_a_motion_in_steps_depends_on_time_although_its_rate_is_zero():
    arm = led_arm()
    arm.prescribed.clear()
    arm.prescribe("j", lambda t: 0.3 * np.floor(t))
    model = arm.derive().compile("interpreter")
    assert model.residual(np.array([0.3]), t=1.5) == pytest.approx(0.0, abs=ROUNDING)
    assert ax.assemble(model, t=2.5)["j"] == pytest.approx(0.6, abs=ROUNDING)


def test_a_motion_may_be_given_as_text():
    """The formulas that `simulate` takes, and the mechanism's parameters by name."""
    made = []
    for motion in ("0.1 * r * sin(2 * t)", lambda t: 0.03 * np.sin(2 * t)):
        robot = ax.gallery.build("wheeled_pendulum")
        robot.prescribe("theta3", motion)
        model = robot.derive().compile("interpreter")
        rates = model.rates({}, [1.0, 2.0], t=0.4)
        made.append(dict(zip(model.coordinates, rates, strict=True)))
    assert made[0] == pytest.approx(made[1], rel=1e-14)
    assert made[0]["theta3"] == pytest.approx(0.06 * np.cos(0.8))
    with pytest.raises(ax.InvalidArgument, match=r"prescribe 'theta3', motion: .*unknown"):
        ax.gallery.build("wheeled_pendulum").prescribe("theta3", "unknown * t")
