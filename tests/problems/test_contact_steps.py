"""Steps through contacts: closed forms, rest that is rest, energy, batches and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import axode as ax
from axode.errors import (
    InvalidArgument,
    NotApplicable,
    RunsFailedWarning,
    RunsInaccurateWarning,
    SimulationFailed,
    UnknownName,
)
from problems.contact_robots import G, block, pendulum, rover, sphere

EXACT = 1e-12  # of closed forms that steps meet but for rounding


def crate(friction=0.5, slope=0.0, size=(0.1, 0.08, 0.05)):
    """A rigid block on four corners, one more than statics determines."""
    m = ax.Mechanism("crate", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    body = m.add_body("crate", mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.add_joint("crate", ax.Floating(), parent=m.ground, child=body, at=(0, 0, size[2]))
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        at = (x * size[0], y * size[1], -size[2])
        m.add_contact(f"corner{k}", ax.Point(friction=friction), body=body, at=at)
    return m


def sprung_rover(slope=0.0, friction=0.8):
    """Four wheels on struts, with brakes."""
    m = ax.Mechanism("sprung", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    base = m.add_body("base", mass=20.0, inertia=(0.5, 0.9, 1.1))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        hub = m.add_body(f"hub{k}", mass=0.5, inertia=(0.001, 0.001, 0.001))
        at, strut, spin = (0.25 * x, 0.2 * y, 0.0), f"strut{k}", f"wheel{k}"
        stops = {"stops": (-0.05, 0.05)}
        m.add_joint(strut, ax.Prismatic("z"), parent=base, child=hub, at=at, **stops)
        m.add_spring(f"spring{k}", strut, stiffness=4000.0)
        m.add_damper(f"damper{k}", strut, coefficient=300.0)
        m.add_wheel(spin, ax.Rolling(0.1, friction=friction), on=hub, mass=1.2)
        m.change_joint(spin, friction=30.0)
    m.set_home({"base.z": 0.1})
    return m


def compiled(mechanism):
    return mechanism.derive().compile()


def energies(run):
    return run["kinetic"] + run["potential"]


def state(run):
    """Coordinates and independent speeds, (..., samples, size)."""
    names = (*run.model.coordinates, *run.model.independent)
    return np.stack([run[name] for name in names], axis=-1)


@pytest.mark.parametrize("make", [block, crate])
def test_sliding_down_a_slope_is_exact(make):
    model = compiled(make(friction=0.2, slope=0.3))
    run = ax.simulate(model, 2.0, step=1e-3, contacts="steps")
    name = next(n for n in model.coordinates if n.endswith(".x"))
    assert run[name][-1] == pytest.approx(2.0493660713666, rel=EXACT)
    assert np.abs(run.energy_error) < EXACT


@pytest.mark.parametrize("make", [block, crate])
def test_what_sticks_keeps_the_bits_of_its_coordinates(make):
    run = ax.simulate(compiled(make(friction=0.5, slope=0.3)), 5.0, step=1e-3)
    assert (state(run) == state(run)[0]).all()


@pytest.mark.soak
@pytest.mark.parametrize(
    "make", [lambda: crate(0.5, 0.3), lambda: braked(rover(slope=0.2)), lambda: sprung_rover(0.2)]
)
def test_nothing_creeps_in_a_million_steps(make):
    model = compiled(make())
    settled = ax.simulate(model, 20.0, step=1e-3, save_every=20.0)
    run = ax.simulate(model, 1000.0, start=settled.at(20.0), t0=0.0, step=1e-3, save_every=100.0)
    assert (state(run) == state(run)[0]).all()


def braked(mechanism):
    for wheel in ("fl", "fr", "rl", "rr"):
        mechanism.change_joint(wheel, friction=20.0)
    return mechanism


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: braked(rover(slope=0.2)), lambda: sprung_rover(0.2)])
def test_a_parked_vehicle_comes_to_rest_and_stays(make):
    model = compiled(make())
    run = ax.simulate(model, 8.0, step=1e-3, save_every=0.1)
    late = run.time > 6.0
    assert (state(run)[late] == state(run)[-1]).all()
    assert (state(run)[-1, len(model.coordinates) :] == 0).all()


@pytest.mark.slow
def test_a_sphere_comes_to_roll_as_the_closed_form_says():
    model = compiled(sphere())
    rolls, errors = 0.194165331780011, []
    x = 0.5 * rolls * (2 + 10 / 7) + 10 / 7 * (0.4 - rolls)
    for step in (4e-3, 2e-3, 1e-3):
        run = ax.simulate(model, 0.4, start={"sphere.vx": 2.0}, step=step)
        errors.append(abs(run["sphere.x"][-1] - x))
        assert np.abs(run.energy_error) < 1e-3
    assert errors[-1] < 2e-5
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


@pytest.mark.slow
def test_an_elastic_ball_keeps_its_energy_and_no_ball_gains_any():
    for restitution in (1.0, 0.8, 0.0):
        model = compiled(sphere(restitution=restitution))
        run = ax.simulate(model, 5.0, start={"sphere.z": 1.1}, step=2e-3, save_every=2e-3)
        E = energies(run)
        assert np.diff(E).max() < EXACT * E[0]
        assert np.abs(run.energy_error) < 1e-10
        assert run["sphere.z"].min() > 0.1 - 1e-9
        assert (E[-1] == pytest.approx(E[0], rel=1e-11)) == (restitution == 1.0)


def test_bounces_accumulate_when_they_should():
    model, errors = compiled(sphere(restitution=0.8)), []
    for step in (4e-3, 1e-3):
        run = ax.simulate(model, 5.0, start={"sphere.z": 1.1}, step=step, save_every=step)
        moves = np.flatnonzero(np.abs(run["sphere.vz"]) > 0)
        errors.append(abs(run.time[moves[-1]] - 4.063712768871579))
    assert errors[0] < 0.06
    assert errors[1] < 0.02


def belt_oscillator():
    m = ax.Mechanism("belt", gravity=(0, 0, 0))
    belt = m.add_body("belt", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("belt", ax.Prismatic("x"), parent=m.ground, child=belt)
    m.prescribe("belt", "0.2*t")
    mass = m.add_body("mass", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("slide", ax.Prismatic("x"), parent=belt, child=mass, friction=(5.0, 3.0))
    m.add_spring("spring", stiffness=100.0, parent=m.ground, child=mass, rest=1.0, at=(-1.0, 0, 0))
    return m


def test_stick_and_slip_on_a_belt_repeat_with_the_period_of_the_closed_form():
    model = compiled(belt_oscillator())
    errors = []
    for step in (2e-3, 2.5e-4):
        run = ax.simulate(model, 10.0, step=step, save_every=step)
        assert run.status == "finished"
        sticks = np.abs(run["slide.rate"]) < 1e-10
        begins = run.time[1:][sticks[:-1] & ~sticks[1:]]
        errors.append(abs(np.diff(begins).mean() - 0.671238898038469))
    assert errors[0] < 4e-3
    assert errors[1] < 5e-4


def test_a_pendulum_strikes_its_stop_when_it_should():
    model = compiled(pendulum())
    for step in (4e-3, 5e-4):
        run = ax.simulate(model, 2.5, start={"swing": 1.0}, step=step, save_every=step)
        v = run["swing.rate"]
        hits = run.time[1:][(v[:-1] < -0.5) & (v[1:] > 0)]
        assert hits == pytest.approx([0.636375398716223, 1.95380341134223], abs=1.5 * step)
        assert run["swing"].min() > -0.3 - step**2 * 20


@pytest.mark.slow
def test_strong_damping_is_stable_in_long_steps():
    m = crate(friction=0.3)
    m.add_damper("drag", "crate.vy", coefficient=800.0)
    model = compiled(m)
    run = ax.simulate(model, 1.0, start={"crate.vx": 1.0, "crate.vy": 1.0}, step=1e-2)
    assert np.abs(run["crate.vy"][-1]) < 1e-9
    law = ax.simulate(
        compiled(rover()), 1.0, step=1e-2, input=lambda s: {"fl": 400.0 * (3.0 - s["fl.rate"])}
    )
    assert np.isfinite(state(law)).all()
    assert np.abs(law.energy_error) < 1e-3


def test_a_run_has_the_same_bits_alone_in_company_and_again():
    model = compiled(rover())
    speeds = np.linspace(0.0, 2.0, 11)
    options = {"step": 2e-3, "save_every": 0.1}
    many = ax.simulate(model, 0.5, start={"base.vy": speeds}, **options)
    for k in (0, 3, 10):
        pair = ax.simulate(model, 0.5, start={"base.vy": speeds[[k, 5]]}, **options)
        assert (state(pair)[0] == state(many)[k]).all()
    again = ax.simulate(model, 0.5, start={"base.vy": speeds}, **options)
    assert (state(again) == state(many)).all()


def test_a_sweep_has_what_simulate_has():
    model = compiled(rover(friction=ax.Parameter("mu", 0.8)))
    friction = [0.1, 0.4, 0.8]
    made = ax.sweep(
        model,
        1.0,
        start={"base.vy": 1.0},
        parameters={"mu": friction},
        outputs={"y": ("last", "base.y"), "off": ("largest", "error")},
        step=1e-3,
    )
    assert set(made.statuses) == {"finished"}
    for k, mu in enumerate(friction):
        run = ax.simulate(model, 1.0, start={"base.vy": 1.0}, parameters={"mu": mu}, step=1e-3)
        assert made["y"][k] == pytest.approx(run["base.y"][-1], abs=1e-10)
    assert made["y"][0] > made["y"][1] > made["y"][2]


@pytest.mark.slow
def test_losses_are_reported_by_contact_and_close_the_balance():
    model = compiled(rover(friction=0.5, rolling_resistance=0.002, scrub=0.01))
    start = {"base.vx": 1.0, "base.vy": 0.5, "base.wz": 2.0}
    run = ax.simulate(model, 2.0, start=start, step=1e-3)
    losses = run.info["contact_losses"]
    E = energies(run)
    assert sum(losses.values()) == pytest.approx(E[0] - E[-1], rel=1e-3)
    assert min(losses.values()) > -1e-6 * E[0]
    assert losses["fl.lateral"] > 0.01 < losses["fl.rolling"] + losses["fl.scrub"]


def rubbing_joint():
    m = ax.Mechanism("shaft")
    shaft = m.add_body("shaft", mass=1.0, inertia=(0.1, 0.1, 0.1))
    joint = ax.Revolute("z")
    m.add_joint("turn", joint, parent=m.ground, child=shaft, friction=(0.5, 0.3))
    m.add_motor("motor", "turn")
    return m


def rubbing_pendulum():
    m = ax.Mechanism("pendulum")
    bob = m.add_body("bob", mass=1.0, com=(0.0, 0.0, -1.0), inertia=ax.Inertia.point())
    m.add_joint("swing", ax.Revolute("y"), parent=m.ground, child=bob, friction=(2.0, 0.4))
    return m


def sled():
    """Three points of a rigid body; x leads down."""
    m = ax.Mechanism("sled", gravity=(G * np.sin(0.45), 0.0, -G * np.cos(0.45)))
    body = m.add_body("sled", mass=3.0, inertia=(0.05, 0.06, 0.08))
    m.add_joint("sled", ax.Floating(), parent=m.ground, child=body, at=(0, 0, 0.05))
    for k, at in enumerate(((0.3, 0.0, -0.05), (-0.2, 0.2, -0.05), (-0.2, -0.2, -0.05))):
        m.add_contact(f"runner{k}", ax.Point(friction=(0.6, 0.4)), body=body, at=at)
    return m


STOPPING_STEPS = (4e-3, 2e-3, 1e-3, 5e-4)


@pytest.mark.parametrize("step", STOPPING_STEPS)
def test_a_joint_turned_round_is_held_by_static_friction(step):
    """A torque of 0.4 turns it round, less than 0.5 holds and more than 0.3 brakes."""
    rates = -np.linspace(0.1, 0.8, 50)
    run = ax.simulate(
        compiled(rubbing_joint()),
        2.0,
        start={"turn.rate": rates},
        input={"motor.torque": 0.4},
        step=step,
    )
    assert set(run.statuses) == {"finished"}
    assert np.abs(run["turn"][:, -1] + rates**2 / 14).max() < 0.06 * step
    assert (run["turn.rate"][:, -1] == 0).all()
    assert (run["turn"][:, -1] == run["turn"][:, -50]).all()


@pytest.mark.parametrize("torque", [0.55, 0.7, 2.0])
def test_a_joint_that_static_friction_cannot_hold_turns_round(torque):
    rates = -np.linspace(0.1, 0.8, 9)
    errors = []
    for step in (2e-3, 5e-4):
        run = ax.simulate(
            compiled(rubbing_joint()),
            1.0,
            start={"turn.rate": rates},
            input={"motor.torque": torque},
            step=step,
        )
        stops = -0.1 * rates / (torque + 0.3)
        after = 10 * (torque - 0.3) * (1.0 - stops)
        errors.append(np.abs(run["turn.rate"][:, -1] - after).max())
        assert np.abs(run.energy_error).max() < 1e-12
    assert errors[0] < 50 * 2e-3
    assert errors[1] < 50 * 5e-4


def resting_angle(angle):
    """Return where a pendulum that is released comes to rest, by its energy at each turn."""
    side = 1.0
    while G * np.sin(angle) > 2.0:
        left = lambda b, a=angle: G * (np.cos(b) - np.cos(a)) - 0.4 * (a + b)  # noqa: E731
        side, angle = -side, brentq(left, 0.0, angle, xtol=1e-14)
    return side * angle


def test_a_pendulum_that_rubs_stops_where_its_energy_is_spent():
    model = compiled(rubbing_pendulum())
    angles = np.linspace(0.3, 1.2, 25)
    ends = np.array([resting_angle(a) for a in angles])
    errors = []
    for step in STOPPING_STEPS:
        run = ax.simulate(model, 20.0, start={"swing": angles}, step=step, save_every=0.1)
        assert (run["swing.rate"][:, -1] == 0).all()
        errors.append(np.abs(run["swing"][:, -1] - ends).max())
        assert errors[-1] < 0.2 * step
        E = energies(run)
        assert np.diff(E, axis=1).max() < EXACT * np.abs(E).max()
    assert errors[0] > 8 * errors[-1]


def locked_rover():
    m = braked(rover(friction=(0.8, 0.4), slope=0.5))
    for wheel in ("fl", "fr", "rl", "rr"):
        m.change_joint(wheel, friction=50.0)
    return m


@pytest.mark.parametrize(
    ("make", "name", "slope"), [(sled, "sled", 0.45), (locked_rover, "base", 0.5)]
)
def test_what_slides_uphill_stays_where_it_stops(make, name, slope):
    model = compiled(make())
    speeds = -np.linspace(0.5, 2.0, 7)
    exact = -(speeds**2) / (2 * G * (np.sin(slope) + 0.4 * np.cos(slope)))
    for step in STOPPING_STEPS:
        start = {f"{name}.vx": speeds}
        run = ax.simulate(model, 1.0, start=start, step=step, save_every=0.1)
        assert np.abs(run[f"{name}.x"][:, -1] - exact).max() < 0.1 * step
        assert (state(run)[:, -1] == state(run)[:, -3]).all()
        assert np.abs(run.energy_error).max() < 1e-3


@pytest.mark.parametrize("options", [{"step": 1e-3}, {"step": 1e-3, "input": {"fl": 0.1}}, {}])
def test_starts_below_the_ground_are_refused_in_every_way_to_run(options):
    model = compiled(rover())
    text = r"""start: 'fl' is 0\.1 below its ground.*raise it(.|\n)*start=\{"base\.z": 0\.1\}"""
    with pytest.raises(InvalidArgument, match=text):
        ax.simulate(model, 0.02, start={"base.z": 0.0}, **options)
    heights = {"base.z": [0.0, 0.1, 0.2]}
    with pytest.warns(RunsFailedWarning):
        runs = ax.simulate(model, 0.02, start=heights, **options)
    assert "'fl' is below its ground or beyond its stop by 0.1" in runs.statuses[0]
    assert runs.statuses[1:] == ("finished", "finished")
    made = ax.sweep(model, 0.02, start=heights, **options)
    assert made.statuses == {"finished": 2, "failed: not assembled": 1}
    assert np.isnan(made["base.z"][0]) and "'fl' is below its ground" in made.reasons.texts[0]
    for verb in (ax.simulate, ax.sweep):  # none is left to run
        with pytest.raises(InvalidArgument, match=text):
            verb(model, 0.02, start={"base.z": [0.0, 0.05]}, **options)


def test_starts_beyond_stops_are_refused_and_those_at_them_are_not():
    model = compiled(pendulum())
    with pytest.raises(
        InvalidArgument, match=r"'swing' is 0\.2 below.*beyond its stop(.|\n)*swing"
    ):
        ax.simulate(model, 0.1, start={"swing": -0.5}, step=1e-3)
    run = ax.simulate(model, 0.1, start={"swing": -0.3}, step=1e-3)
    assert run.status == "finished"


@pytest.mark.slow
def test_long_steps_leave_no_depth_that_a_start_may_not_have():
    model = compiled(rover(0.6))
    start = {"base.z": 0.3, "pitch": 0.2, "roll": 0.15, "vx": 1.0, "fl.rate": 20.0}
    with pytest.warns(RunsInaccurateWarning):
        run = ax.simulate(model, 1.2, start=start, step=1e-2, save_every=1e-2)
    for t in run.time[20:100:5]:
        assert ax.simulate(model, 0.02, start=run.at(t), step=1e-2).status


@pytest.mark.parametrize("options", [{}, {"step": 2e-3}, {"contacts": "auto"}])
def test_a_grid_of_two_parameters_is_swept(options):
    mechanism = rover(friction=ax.Parameter("mu", 0.8))
    mechanism.change_joint("fl", friction=ax.Parameter("drag", 0.1))
    grid = {"mu": np.linspace(0.2, 0.8, 4), "drag": np.linspace(0.1, 0.3, 3)}
    made = ax.sweep(compiled(mechanism), 0.02, parameters=grid, **options)
    assert made["base.z"].shape == (4, 3) and made.statuses == {"finished": 12}


def test_events_are_located_in_steps_through_contacts():
    model = compiled(block(friction=0.2, slope=0.3))
    event = ax.Event("one", lambda s: s["block.x"] - 1.0, stop=True)
    run = ax.simulate(model, 5.0, step=1e-3, events=event)
    a = G * (np.sin(0.3) - 0.2 * np.cos(0.3))
    assert run.events[0].time == pytest.approx(np.sqrt(2 / a), abs=1e-6)


def test_what_contacts_cannot_do_is_refused_by_name():
    model, ideal = compiled(block()), compiled(rover(friction=None))
    with pytest.raises(NotApplicable, match=r"friction=0\.8"):
        ax.simulate(ideal, 1.0, contacts="steps")
    with pytest.raises(UnknownName, match="steps"):
        ax.simulate(model, 1.0, contacts="stops")
    with pytest.raises(NotApplicable, match="sweep takes 'steps'"):
        ax.sweep(model, 1.0, contacts="events")
    with pytest.raises(NotApplicable, match="sweep takes 'steps'"):
        ax.sweep(ax.Scenario(model, 1.0, contacts="ideal"))
    with pytest.raises(InvalidArgument, match=r"rtol.*step=1e-3"):
        ax.simulate(model, 1.0, contacts="steps", rtol=1e-6)
    with pytest.raises(InvalidArgument, match="method"):
        ax.simulate(model, 1.0, contacts="steps", method="dopri5")
    with pytest.raises(NotApplicable, match="forwards"):
        ax.simulate(model, -1.0, backwards=True, contacts="steps")
    with pytest.raises(NotApplicable, match="GPU"):
        ax.simulate(model, 1.0, contacts="steps", target="cuda")
    with pytest.raises(NotApplicable, match="sensitivities"):
        ax.simulate(model, 1.0, contacts="steps", sensitivities=["x"])


def test_a_motion_that_rigid_bodies_do_not_have_is_a_status():
    """Painleve's rod slides on its tip, which friction presses into the ground."""
    m = ax.Mechanism("rod")
    rod = m.add_body("rod", mass=1.0, inertia=(1e-3, 1 / 12, 1 / 12))
    m.add_joint("rod", ax.Floating(), parent=m.ground, child=rod, at=(0, 0, 0.5 * np.sin(1.0)))
    tip = (0.5 * np.cos(1.0), 0, -0.5 * np.sin(1.0))
    m.add_contact("tip", ax.Point(friction=2.5), body=rod, at=tip)
    model = compiled(m)
    moving = {"rod.vx": 2.0, "rod.vz": -0.0}
    try:
        run = ax.simulate(model, 0.1, start=moving, step=1e-3)
    except SimulationFailed as error:
        assert "contact" in str(error)
        assert "Painleve" in str(error)
    else:  # an impact without collision has a solution in steps
        assert np.isfinite(state(run)).all()
        assert np.diff(energies(run)).max() < 1e-6 * energies(run)[0]


def test_a_law_that_remembers_drives_through_contacts():
    """A PI servo of the wheels settles at its speed, with the memory it needs."""
    model = compiled(rover(slope=-0.1))
    wheels = ("fl", "fr", "rl", "rr")
    law = ax.Law(
        lambda s, pi: dict.fromkeys((f"{w}.torque" for w in wheels), pi(5.0 - s["fl.rate"])),
        pi=ax.blocks.PI(2.0, 20.0),
    )
    run = ax.simulate(model, 6.0, step=2e-3, input=law)
    assert run["fl.rate"][-1] == pytest.approx(5.0, abs=1e-6)
    needed = 12.0 * G * np.sin(0.1) * 0.1 / 4  # of four wheels that hold the slope
    assert run["fl.torque"][-1] == pytest.approx(needed, rel=1e-6)


@pytest.mark.slow
def test_a_batch_of_sliding_rovers_finishes_as_each_does_alone():
    model = compiled(rover())
    rng = np.random.default_rng(0)
    start = {"base.vx": rng.normal(size=64), "base.vy": rng.normal(size=64)}
    start["base.wz"] = rng.normal(size=64)
    many = ax.simulate(model, 1.0, start=start, step=1e-3, save_every=0.1)
    assert set(many.statuses) == {"finished"}
    gains = np.diff(energies(many), axis=1).max(axis=1)
    assert gains.max() < 1e-9 * energies(many).max()


def test_slip_speeds_are_those_of_the_lowest_points():
    """v + omega x r of wheels that skid."""
    model = compiled(rover(0.6))
    q, nu = model.home, np.array([0.1, -0.2, 0.3, 0.7, 0.4, 0.05, 1.0, 2.0, 3.0, 4.0])
    speeds = dict(zip(model.independent, nu, strict=True))
    at = dict(zip(model.measure_names, model.measures(q, nu), strict=True))
    omega = np.array([speeds[f"base.w{axis}"] for axis in "xyz"])
    v = np.array([speeds[f"base.v{axis}"] for axis in "xyz"])
    for name, x, y in (("fl", 0.3, 0.2), ("fr", 0.3, -0.2), ("rl", -0.3, 0.2), ("rr", -0.3, -0.2)):
        down = np.array([0.0, 0.0, -0.1])
        spin = omega + np.array([0.0, speeds[f"{name}.rate"], 0.0])
        point = v + np.cross(omega, [x, y, 0.0]) + np.cross(spin, down)
        assert at[f"{name}.longitudinal_slip"] == pytest.approx(point[0], abs=1e-12)
        assert at[f"{name}.lateral_slip"] == pytest.approx(point[1], abs=1e-12)


def test_a_block_slips_as_fast_as_it_moves():
    for contacts in ("steps", "events"):
        run = ax.simulate(compiled(block(0.2, 0.3)), 0.1, contacts=contacts)
        np.testing.assert_allclose(run["foot.longitudinal_slip"], run["block.vx"], atol=1e-12)
        assert run["block.vx"][-1] > 0.1
    outputs = {"slip": ("final", "foot.longitudinal_slip"), "speed": ("final", "block.vx")}
    found = ax.sweep(
        compiled(block(0.2, 0.3)), 0.1, start={"block.vx": [0.0, 1.0]}, outputs=outputs
    )
    np.testing.assert_allclose(found["slip"], found["speed"], atol=1e-12)
    still = ax.simulate(compiled(block(0.5, 0.3)), 0.1, contacts="steps")
    assert not still["foot.longitudinal_slip"].any()


def test_modes_of_a_run_in_steps_name_what_says_the_same():
    run = ax.simulate(compiled(block(0.2, 0.3)), 0.1, contacts="steps")
    assert not run.modes
    with pytest.raises(
        InvalidArgument, match=r"in steps(.|\n)*'foot.longitudinal_slip'(.|\n)*events"
    ):
        run.modes["foot"]
    run = ax.simulate(compiled(block(0.2, 0.3)), 0.1)
    with pytest.raises(UnknownName, match="foot"):
        run.modes["feet"]
