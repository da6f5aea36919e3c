"""Runs with friction, lift-off, impacts and stops against closed forms and the ideal mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, NotApplicable, SimulationFailed
from problems.contact_robots import G, block, cart, pendulum, rover, sphere, tripod

EXACT = 1e-10  # of closed forms: what steps of rtol 1e-10 leave
BALANCE = 1e-9  # of the largest energy


def balance(run):
    """Error of the energy balance relative to the largest energy."""
    largest = max(np.ptp(run[name]) for name in ("kinetic", "potential", "dissipated"))
    return np.abs(run["error"]).max() / max(largest, 1e-30)


def events(run, what):
    return [e["time"] for e in run.contact_events if e["what"] == what]


@pytest.fixture(scope="module")
def ball():
    return sphere(0.3, 0.8).derive().compile()


@pytest.fixture(scope="module")
def crawler():
    return rover(0.6).derive().compile()


@pytest.fixture(scope="module")
def tripod_model():
    return tripod().derive().compile()


@pytest.mark.slow
def test_a_block_slides_down_a_slope_as_the_textbook_says():
    run = ax.simulate(block(0.2, 0.3).derive().compile(), 2.0)
    a = G * (math.sin(0.3) - 0.2 * math.cos(0.3))
    np.testing.assert_allclose(run["block.x"], 0.5 * a * run.time**2, rtol=1e-12, atol=1e-14)
    assert run["block.x"][-1] == pytest.approx(2.0493660713666, abs=1e-12)
    np.testing.assert_allclose(run["foot.normal"], 2.0 * G * math.cos(0.3), rtol=1e-12)
    np.testing.assert_allclose(run["foot.longitudinal"], -0.4 * G * math.cos(0.3), rtol=1e-9)
    assert balance(run) < BALANCE and run.modes == {"foot": [(0.0, "slip")]}


def test_a_parked_block_stays_to_the_bit():
    run = ax.simulate(block(0.5, 0.3).derive().compile(), 1000.0)
    for name in ("block.x", "block.y", "block.z", "block.vx"):
        assert (run[name] == run[name][0]).all()


@pytest.mark.slow
def test_a_braked_rover_stays_to_the_bit():
    mechanism = rover(0.8, 0.2)
    for wheel in ("fl", "fr", "rl", "rr"):
        mechanism.change_joint(wheel, friction=5.0)
    run = ax.simulate(mechanism.derive().compile(), 1000.0)
    for name in run.model.coordinates:
        assert (run[name] == run[name][0]).all()
    assert run.modes["fl (joint)"] == [(0.0, "stick")]


def test_a_sphere_slides_until_it_rolls(ball):
    run = ax.simulate(ball, 1.0, start={"vx": 2.0})
    assert events(run, "sticks") == pytest.approx([0.194165331780011], abs=EXACT)
    assert run["surge"][-1] == pytest.approx(10 / 7, abs=EXACT)
    assert balance(run) < BALANCE


def test_a_spinning_sphere_slides_until_it_rolls(ball):
    start = {"vx": 2.0, "vy": 0.5, "wx": 15.0, "wy": -8.0, "wz": 3.0}
    run = ax.simulate(ball, 1.0, start=start)
    assert events(run, "sticks") == pytest.approx([0.33405466791098], abs=EXACT)
    assert balance(run) < BALANCE


@pytest.mark.slow
def test_a_ball_bounces_to_rest(ball):
    run = ax.simulate(ball, 4.5, start={"sphere.z": 1.1})
    times, first, e = np.array(events(run, "strikes")), math.sqrt(2 / G), 0.8
    k = np.arange(40)
    np.testing.assert_allclose(
        times[:40], first * (1 + 2 * e * (1 - e**k) / (1 - e)), rtol=0, atol=EXACT
    )
    assert run.modes["sole"][-1][1] == "stick"
    assert run.modes["sole"][-1][0] == pytest.approx(4.063712768871579, abs=2e-6)
    assert run["sphere.z"][-1] == 0.1 and balance(run) < BALANCE
    assert run["dissipated"][-1] == pytest.approx(G, rel=1e-9)


def test_a_pendulum_strikes_its_stop():
    run = ax.simulate(pendulum().derive().compile(), 2.5, start={"swing": 1.0})
    assert events(run, "strikes") == pytest.approx([0.636375398716223, 1.95380341134223], abs=EXACT)
    assert run["swing"].min() > -0.3 - 1e-12 and balance(run) < BALANCE
    first = run.contact_events[0]
    assert first["impulse"] == pytest.approx(1.7 * first["speed"], rel=1e-9)  # m l^2 = 1
    assert first["loss"] == pytest.approx(0.5 * first["speed"] ** 2 * (1 - 0.49), rel=1e-9)


@pytest.mark.slow
def test_friction_turns_about_where_a_stop_throws_back():
    """A sliding joint that rubs bounces off its stop: friction brakes it on its way back too."""
    m = ax.Mechanism("slide")
    body = m.add_body("body", mass=2.0, inertia=ax.Inertia.point())
    joint = ax.Prismatic("x")
    m.add_joint(
        "s", joint, parent=m.ground, child=body, friction=1.0, stops=(-9, 0.3), restitution=0.5
    )
    run = ax.simulate(m.derive().compile(), 1.0, start={"s.rate": 1.0}, save_every=0.05)
    speed = np.sqrt(1.0 - 2 * 0.5 * 0.3)  # at the stop, braked by 0.5 m/s^2
    strike = (1.0 - speed) / 0.5
    back = np.minimum(0.0, -0.5 * speed + 0.5 * (run.time - strike))
    expected = np.where(run.time < strike, 1.0 - 0.5 * run.time, back)
    assert run["s.rate"] == pytest.approx(expected, abs=1e-7)
    assert run["dissipated"][-1] == pytest.approx(1.0 - run["kinetic"][-1], abs=1e-7)


@pytest.mark.parametrize("kind", ["joint", "point"])
def test_a_belt_drags_a_block_that_sticks_and_slips(kind):
    m = ax.Mechanism("belt", gravity=(0, 0, -10))
    belt = m.add_body("belt", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("belt", ax.Prismatic("x"), parent=m.ground, child=belt)
    m.prescribe("belt", "0.2 * t")
    body = m.add_body("block", mass=1.0, inertia=(1, 1, 1))
    if kind == "joint":
        m.add_joint("slide", ax.Prismatic("x"), parent=belt, child=body, friction=(5.0, 3.0))
    else:
        m.add_joint("slide", ax.Floating(), parent=m.ground, child=body)
        m.add_contact("foot", ax.Point(friction=(0.5, 0.3)), body=body, ground=belt)
    spring = {"stiffness": 100.0, "rest": 10.0, "at": (-10, 0, 0)}
    m.add_spring("spring", parent=m.ground, child=body, **spring)
    run = ax.simulate(m.derive().compile(), 4.0)
    w, A, V = 10.0, 0.02, 0.2  # A: displacement by which static exceeds kinetic friction
    period = 2 * (math.pi - math.atan(w * A / V)) / w + 2 * A / V
    assert period == pytest.approx(0.671238898038469)
    assert np.diff(events(run, "slips"))[-4:] == pytest.approx(period, abs=EXACT)
    assert balance(run) < BALANCE


@pytest.mark.slow
def test_wheels_that_never_slip_are_the_ideal_ones():
    mechanism = rover(1e6)
    model = mechanism.derive().compile()
    torques = {"fl": "0.3 * sin(3 * t) + 0.1", "fr": "0.3 * sin(3 * t)", "rl": 0.2, "rr": 0.25}
    run = ax.simulate(model, 2.0, input=torques)
    ideal = ax.simulate(model, 2.0, input=torques, contacts="ideal")
    for name in ("base.x", "base.y", "yaw", "fl", "rr"):
        assert run[name][-1] == pytest.approx(ideal[name][-1], abs=1e-9)
    assert ideal.model.contacts == ("fl", "fr", "rl", "rr")  # which keep touching the ground


@pytest.mark.slow
def test_a_skid_steered_rover_turns_slower_than_its_wheels(crawler):
    """Four equal wheels at (+-a, +-b) turn steadily at w = b R s / (a^2 + b^2)."""
    mechanism = rover(0.6)
    mechanism.bodies[0] = ax.Mechanism("x").add_body("base", mass=10.0, inertia=(0.3, 0.4, 0.5))
    for wheel, rate in {"fl": -4, "rl": -4, "fr": 4, "rr": 4}.items():
        mechanism.prescribe(wheel, f"{rate} * t")
    run = ax.simulate(mechanism.derive().compile(), 1.0)
    a, b, R, s = 0.3, 0.2, 0.1, 4.0
    assert run["yaw_rate"][-1] == pytest.approx(b * R * s / (a**2 + b**2), rel=1e-6)
    assert {spans[-1][1] for spans in run.modes.values()} == {"slip"}
    assert balance(run) < BALANCE


@pytest.mark.slow
def test_a_tilted_rover_lands_and_comes_to_rest():
    model = rover(0.6, restitution=0.3).derive().compile()
    run = ax.simulate(model, 1.0, start={"base.z": 0.4, "pitch": 0.1, "roll": 0.05, "vx": 1.0})
    assert run.status == "finished" and balance(run) < BALANCE
    assert run["base.z"][-1] == pytest.approx(0.1, abs=1e-9)
    assert {spans[-1][1] for spans in run.modes.values()} == {"stick"}
    assert (np.diff(run["dissipated"]) > -1e-9).all()
    assert all(e["loss"] >= 0 for e in run.contact_events)


def test_users_events_are_found_and_stop(ball):
    up = ax.Event("up", "vz", direction=-1)
    half = ax.Event("half", "sphere.x - 1", stop=True)
    run = ax.simulate(ball, 2.0, start={"vx": 2.0, "vz": 1.0}, events=[up, half])
    assert [e.name for e in run.events] == ["up", "up", "half"]  # it bounces once
    assert run.events[0].time == pytest.approx(1 / G, abs=EXACT)
    assert run.status == "stopped by event 'half'"
    assert run["sphere.x"][-1] == pytest.approx(1.0, abs=1e-9)


def test_files_and_saved_runs_keep_contacts(ball, tmp_path):
    ball.save(tmp_path / "ball.axm")
    run = ax.simulate(ax.load_model(tmp_path / "ball.axm"), 0.5, start={"vx": 2.0})
    same = ax.simulate(ball, 0.5, start={"vx": 2.0})
    np.testing.assert_array_equal(run["sphere.x"], same["sphere.x"])
    assert run.modes == same.modes and run.contact_events == same.contact_events


def test_bad_calls_are_refused(ball):
    with pytest.raises(InvalidArgument, match=r"'sole' is 0\.05 below its ground"):
        ax.simulate(ball, 1.0, start={"sphere.z": 0.05})
    with pytest.raises(NotApplicable, match="cannot be run backwards"):
        ax.simulate(ball, -1.0, backwards=True, contacts="events")
    with pytest.raises(NotApplicable, match="from event to event by dopri5 or dop853"):
        ax.simulate(ball, 1.0, method="rk4", contacts="events")
    with pytest.raises(NotApplicable, match="a batch of runs with contacts"):
        ax.simulate(ball, 1.0, start={"vx": [1.0, 2.0]}, contacts="events")
    with pytest.raises(NotApplicable, match=r"simulate\(sensitivities=...\) knows no friction"):
        ax.simulate(ball, 1.0, sensitivities=["start.vx"])


def test_a_rod_that_jams_is_reported_by_name():
    """Painleve's rod: pushed along on its tip with much friction, it has no motion."""
    m = ax.Mechanism("rod")
    none = {"mass": 0.0, "inertia": ax.Inertia.point()}
    sled, lift = m.add_body("sled", **none), m.add_body("lift", **none)
    rod = m.add_body("rod", mass=1.0, inertia=(1 / 3, 1 / 3, 1e-3))  # 2 m long
    m.add_joint("x", ax.Prismatic("x"), parent=m.ground, child=sled)
    m.add_joint("z", ax.Prismatic("z"), parent=sled, child=lift)
    m.add_joint("lean", ax.Revolute("y"), parent=lift, child=rod)
    m.add_contact("tip", ax.Point(friction=2.5), body=rod, at=(0, 0, -1.0))
    model = m.derive().compile()
    lean = 0.7  # mu > 1 / (3 sin cos) + tan
    for way in (1.0, -1.0):
        start = {"z": math.cos(lean), "lean": lean, "x.rate": way}
        if way < 0:
            with pytest.raises(SimulationFailed, match="no motion of tip, or several"):
                ax.simulate(model, 0.01, start=start)
        else:
            assert ax.simulate(model, 0.01, start=start).status == "finished"


def test_modes_are_drawn(ball, tmp_path):
    run = ax.simulate(ball, 0.5, start={"vx": 2.0})
    figure = run.plot_modes(save=tmp_path / "modes.png")
    assert (tmp_path / "modes.png").stat().st_size > 1000
    strips = [patch for patch in figure.axes[0].patches if patch.get_width() > 0]
    ends = [(strip.get_x(), strip.get_x() + strip.get_width()) for strip in strips]
    switch = run.modes["sole"][1][0]
    assert ends == [pytest.approx((0.0, switch)), pytest.approx((switch, 0.5))]
    ideal = ax.simulate(ball, 0.1, contacts="ideal")
    with pytest.raises(InvalidArgument, match="the run has no modes"):
        ideal.plot_modes()


@pytest.mark.parametrize(
    ("force", "onset", "ramp"),
    [
        ("20 * t", G / 20, 20.0),
        ("9.7 + 0.5 * t", 2 * (G - 9.7), 0.5),
        ("6 + 4 * t", G / 4 - 1.5, 4.0),
    ],
)
@pytest.mark.slow
@pytest.mark.parametrize("axis", ["x", "y"])
def test_slip_begins_where_no_share_of_friction_holds(tripod_model, force, onset, ramp, axis):
    run = ax.simulate(tripod_model, 1.2, input={f"p.f{axis}": force})
    assert events(run, "slips") == pytest.approx([onset] * 3, abs=2e-8 * G / ramp)
    moved = ramp / 12 * (1.2 - onset) ** 3  # mass 2
    if axis == "x":  # the load goes forwards, and friction does not turn the box
        assert run["base.x"][-1] == pytest.approx(moved, abs=1e-9)
    assert balance(run) < 1e-8
    for name in ("c0", "c1", "c2"):
        rubs = np.hypot(run[f"{name}.longitudinal"], run[f"{name}.lateral"])
        assert (rubs <= 0.5 * run[f"{name}.normal"] * (1 + 1e-6)).all()


@pytest.mark.slow
def test_a_braked_rover_is_turned_from_its_place():
    mechanism = rover(0.6)
    mechanism.add_wrench("p", "base")
    for wheel in ("fl", "fr", "rl", "rr"):
        mechanism.change_joint(wheel, friction=50.0)
    run = ax.simulate(mechanism.derive().compile(), 0.7, input={"p.mz": "40 * t"})
    onset = 0.6 * 12 * G * math.hypot(0.3, 0.2) / 40
    assert events(run, "slips") == pytest.approx([onset] * 4, abs=1e-7)


@pytest.mark.slow
def test_one_driven_wheel_slips_as_steps_say():
    m = ax.Mechanism("trike")
    base = m.add_body("base", mass=10.0, inertia=(0.3, 0.4, 0.5))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    for name, x, y in (("l", 0.0, 0.2), ("r", 0.0, -0.2)):
        wheel = ax.Rolling(0.1, friction=0.6)
        m.add_wheel(name, wheel, on=base, at=(x, y, 0), mass=0.5, motor=True)
    m.add_contact("ball", ax.Point(friction=0.0), body=base, at=(-0.3, 0, -0.1))
    m.set_home({"base.z": 0.1})
    model, torque = m.derive().compile(), {"l.torque": "16 * t"}
    run = ax.simulate(model, 0.5, input=torque)
    steps = ax.simulate(model, 0.5, input=torque, contacts="steps", step=2e-4)
    for name in ("base.x", "base.y", "yaw", "l", "r"):
        assert run[name][-1] == pytest.approx(steps[name][-1], abs=1e-4)


def test_a_box_on_three_points_slips_where_its_friction_ends(tripod_model):
    run = ax.simulate(tripod_model, 0.6, input={"p.fx": "20 * t"})
    assert events(run, "slips") == pytest.approx([G / 20] * 3, abs=1e-8)
    assert run["base.x"][-1] == pytest.approx(20 / 12 * (0.6 - G / 20) ** 3, abs=1e-10)


def test_a_share_of_forces_is_the_best():
    from axode.problems.contact_events.shares import Cone, best_share

    places, null = np.array([(0.1, 0.1), (0.1, -0.1), (-0.1, 0.0)]), np.zeros((9, 3))
    balances = np.zeros((3, 6))
    for k, (x, y) in enumerate(places):
        balances[:, 2 * k : 2 * k + 2] = [[1, 0], [0, 1], [-y, x]]
    null[[1, 2, 4, 5, 7, 8]] = np.linalg.svd(balances)[2][3:].T
    for force in (0.0, 5.0, G * (1 - 1e-6), G * (1 - 1e-8), G * (1 + 1e-8), 12.0):
        front = (G + 0.25 * force) / 2
        x = np.array([front, -force / 3, 0, front, -force / 3, 0, G - 0.25 * force, -force / 3, 0])
        cones = [Cone((3 * k + 1, 3 * k + 2), 3 * k, 0.5) for k in range(3)]
        share, margin = best_share(x, null, cones)
        best = 1 - force / G
        assert margin <= best + 1e-12 and (margin > 0) == (best > 0)
        np.testing.assert_allclose(share - x, null @ (null.T @ (share - x)), rtol=0, atol=1e-9)
        if best > 0:
            assert margin > 0.6 * best


def test_a_run_that_breaks_the_laws_is_not_finished(tripod_model, monkeypatch):
    from axode.problems.contact_events.decisions import Instant

    honest = Instant._share

    def careless(self, *given):
        share, _ = honest(self, *given)
        return 0.0 * share, 1.0

    monkeypatch.setattr(Instant, "_share", careless)
    with pytest.raises(SimulationFailed, match=r"'c.' sticks beyond its friction at t = 0\.4"):
        ax.simulate(tripod_model, 1.0, input={"p.fx": "20 * t"}, contacts="events")


@pytest.mark.slow
def test_ends_and_samples_of_runs_are_those_of_their_columns(tmp_path):
    mu = ax.Parameter("mu", 0.3)
    model = sphere(mu).derive().compile()
    run = ax.simulate(model, 1.0, start={"vx": 2.0}, parameters={"mu": 0.25})
    for name in run.names:
        assert run.final[name] == pytest.approx(run[name][-1], abs=1e-15)
        assert run.at(run.time[100])[name] == pytest.approx(run[name][100], abs=1e-15)
    part = run.between(0.2, 0.6)
    np.testing.assert_array_equal(part["sole.normal"], run["sole.normal"][100:301])
    run.report(tmp_path / "run.html")


def test_ends_of_runs_with_motors_and_laws(crawler):
    run = ax.simulate(crawler, 0.1, input=lambda s: {"fl": 0.1 - s["fl.rate"], "rr": 0.2})
    assert run.final["fl.torque"] == run["fl.torque"][-1]
    assert run.final["fl.normal"] == run["fl.normal"][-1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("slides", ["xz", "yz", "zx"])
def test_friction_across_a_plane_of_motion_does_nothing(slides):
    """A row of the foot moves with nothing."""
    model, axis = cart(*slides).derive().compile(), slides.strip("z")
    run = ax.simulate(model, 1.0, input={f"p.f{axis}": "20 * t"})
    mass = 2.0 if slides[0] == axis else 1.0  # the other one bears the load of both
    onset = 0.6 * (3 - mass) * G / 20
    assert events(run, "slips") == pytest.approx([onset], abs=1e-9)
    moved = 20 / mass / 6 * (1 - onset) ** 3
    assert run[f"to_{axis}"][-1] == pytest.approx(moved, abs=1e-9)
