"""A ball that rolls on a turntable: circles, at two sevenths of the table's rate."""

import numpy as np

import axode as ax

RADIUS, RATE = 0.1, 2.0


def turntable():
    machine = ax.Mechanism("turntable")
    table = machine.add_body("table", mass=10.0, inertia=(1.0, 1.0, 2.0))
    ball = machine.add_body("ball", mass=1.0, shape=ax.Sphere(RADIUS))
    machine.add_joint("spin", ax.Revolute("z"), parent=machine.ground, child=table)
    machine.add_joint("free", ax.Floating(), parent=machine.ground, child=ball)
    machine.add_contact("roll", ax.Ball(RADIUS), body=ball, ground=table)
    machine.prescribe("spin", lambda t: RATE * t)
    machine.set_home({"free.z": RADIUS, "free.x": 0.5})
    return machine


def test_the_ball_keeps_all_its_freedom_to_roll():
    mobility = turntable().derive().mobility
    assert (mobility.mobility, mobility.configuration_dof, mobility.reachable) == (3, 5, 5)
    assert mobility.rheonomic
    assert not mobility.holonomic


def test_the_ball_runs_in_circles_at_two_sevenths_of_the_rate():
    model = turntable().derive().compile()
    period = 2 * np.pi / (2 / 7 * RATE)
    start = {"free.x": 0.5, "free.vy": 0.7}
    run = ax.simulate(model, period, start=start, rtol=1e-11)
    x, y = run["free.x"], run["free.y"]
    # acceleration is 2/7 of the rate, crosswise to the velocity: the centre follows from the start
    centre, radius = 0.5 - 0.7 / (2 / 7 * RATE), 0.7 / (2 / 7 * RATE)
    angle = 2 / 7 * RATE * run.time
    assert np.allclose(x, centre + radius * np.cos(angle), atol=1e-7)
    assert np.allclose(y, radius * np.sin(angle), atol=1e-7)


def test_the_table_presses_back_with_the_weight_wherever_the_ball_is():
    model = turntable().derive().compile(target="interpreter")
    nu = np.random.default_rng(3).normal(size=3)
    for x in (0.1, 0.5, 2.0):
        forces = model.contact_forces({"free.x": x, "free.y": 0.2, "free.z": RADIUS}, nu)
        assert np.allclose(forces[0, 2], 9.81, rtol=1e-12)
