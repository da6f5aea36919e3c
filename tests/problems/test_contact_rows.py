"""Contact rows: described, checked, saved, and right against velocities of the bodies."""

from __future__ import annotations

import re

import numpy as np
import pytest

import axode as ax
from axode.errors import MechanismError, NotApplicable
from axode.model.model_parts import facts_of
from problems.contact_robots import block, odd_vehicle, pendulum, rover

SMALL = 1e-6  # step of central differences
NEAR = 2e-8  # what they miss


def state_of(model, seed=1):
    """A random state near home, quaternion of length one."""
    rng = np.random.default_rng(seed)
    q = model.home + 0.2 * rng.normal(size=len(model.coordinates))
    for four in map(list, facts_of(model).quaternions):
        q[four] /= np.linalg.norm(q[four])
    return q, rng.normal(size=len(model.independent)), rng.normal(size=len(model.independent))


def rows_of(model, q, nu, **options):
    values = model.evaluate("contact_rows", {"q": q, "nu": nu}, options)
    return facts_of(model).contact_table.split(values, len(model.independent))


@pytest.fixture(scope="module")
def odd():
    return odd_vehicle().derive().compile()


def test_gaps_open_with_the_speeds_of_their_rows(odd):
    table = facts_of(odd).contact_table
    for seed in range(3):
        q, nu, _ = state_of(odd, seed)
        rows, q_dot = rows_of(odd, q, nu), odd.rates(q, nu)
        ends = [rows_of(odd, q + way * SMALL * q_dot, nu).gap for way in (-1, 1)]
        rate = (ends[1] - ends[0]) / (2 * SMALL)
        speeds = (rows.J @ nu + rows.drift)[list(table.normals)]
        np.testing.assert_allclose(rate, speeds, atol=NEAR)


def test_rates_are_those_of_the_speeds_along_a_motion(odd):
    for seed in range(3):
        q, nu, nu_dot = state_of(odd, seed)
        rows, q_dot = rows_of(odd, q, nu), odd.rates(q, nu)
        ends = []
        for way in (-1, 1):
            there = rows_of(odd, q + way * SMALL * q_dot, nu + way * SMALL * nu_dot)
            ends.append(there.J @ (nu + way * SMALL * nu_dot) + there.drift)
        rate = (ends[1] - ends[0]) / (2 * SMALL)
        np.testing.assert_allclose(rate, rows.J @ nu_dot + rows.rate, atol=20 * NEAR)


def test_speeds_are_those_of_the_material_points(odd):
    """By the twists of the bodies, the place of the contact, and the ground's normal."""
    mechanism, table = odd_vehicle(), facts_of(odd).contact_table
    q, nu, _ = state_of(odd, 5)
    rows = rows_of(odd, q, nu)
    speeds = dict(zip(table.rows, rows.J @ nu + rows.drift, strict=True))
    poses = dict(zip(odd.bodies, odd.poses(q), strict=True))
    twists = dict(zip(odd.bodies, odd.twists(q, nu), strict=True))
    places = dict(zip(odd.measure_names, odd.measures(q, nu), strict=True))
    poses["ground"], twists["ground"] = np.eye(4), np.zeros(6)
    masses = {b.name: np.array(b.com) for b in mechanism.bodies} | {"ground": np.zeros(3)}

    def velocity(body, point):
        R, p = poses[body][:3, :3], poses[body][:3, 3]
        w, v = twists[body][:3], twists[body][3:]
        return v + np.cross(w, point - p - R @ masses[body])

    for contact in mechanism.contacts:
        name, ground = contact.name, contact.plane.on
        R, R_g = poses[contact.body][:3, :3], poses[ground][:3, :3]
        n = R_g @ np.array(contact.plane.normal)
        Q = np.array([places[f"{name}.contact.{axis}"] for axis in "xyz"])
        relative = velocity(contact.body, Q) - velocity(ground, Q)
        turning = twists[contact.body][:3] - twists[ground][:3]
        assert speeds[f"{name}.touch"] == pytest.approx(relative @ n, abs=1e-12)
        if not contact.wheel.has_axis:  # its tangents are any two
            both = [speeds[f"{name}.{row}"] for row in ("longitudinal", "lateral")]
            across = relative - (relative @ n) * n
            assert np.hypot(*both) == pytest.approx(np.linalg.norm(across), abs=1e-12)
            continue
        a = R @ np.array(contact.axis)
        t1 = np.cross(a, n) / np.linalg.norm(np.cross(a, n))
        t2 = np.cross(n, t1)
        angle = getattr(contact.wheel, "roller_angle", 0.0)
        along = {
            "longitudinal": t1,
            "lateral": t2,
            "roller": np.cos(angle) * t2 - np.sin(angle) * t1,
        }
        for row in contact.wheel.rolling_rows:
            assert speeds[f"{name}.{row}"] == pytest.approx(relative @ along[row], abs=1e-12)
        for row, axis in {"scrub": n, "rolling": t2}.items():
            if f"{name}.{row}" in speeds:
                assert speeds[f"{name}.{row}"] == pytest.approx(turning @ axis, abs=1e-12)


def test_coefficients_follow_parameters(odd):
    q, nu, _ = state_of(odd)
    table = facts_of(odd).contact_table
    rows = rows_of(odd, q, nu, parameters={"mu": 0.25})
    both = dict(zip(table.rows, np.column_stack([rows.limits, rows.kinetic]).tolist(), strict=True))
    assert both["disk.lateral"] == [0.25, 0.125]
    assert both["disk.scrub"] == [0.02, 0.02]
    assert both["lift.friction"] == [3.0, 2.0]
    assert both["mecanum.roller"] == [0.4, 0.4]
    assert both["arm.low"] == [0.0, 0.0]
    bounce = dict(zip((table.rows[r] for r in table.normals), rows.restitution, strict=True))
    assert bounce["arm.high"] == 0.5 and bounce["disk.touch"] == 0.0
    gaps = dict(zip((table.rows[r] for r in table.normals), rows.gap, strict=True))
    arm = q[odd.coordinates.index("arm")]
    assert gaps["arm.low"] == pytest.approx(arm + 1.0)
    assert gaps["arm.high"] == pytest.approx(2.0 - arm)
    with pytest.raises(ax.AxodeError, match="friction: must be >= 0"):
        ax.simulate(odd, 0.1, parameters={"mu": -0.25})


def test_wheels_with_friction_leave_the_freedom_to_the_base():
    equations = rover().derive()
    assert len(equations.independent) == 10 and not equations.rows
    ideal = rover().ideal().derive()
    assert ideal.rows and not facts_of(ideal.compile()).contact_table
    assert "contact_rows" not in ideal.compile().functions
    assert odd_vehicle().ideal().contact_parts == []


def test_files_hold_them(tmp_path, odd):
    mechanism = odd_vehicle()
    mechanism.save(tmp_path / "odd.toml")
    assert ax.load(tmp_path / "odd.toml") == mechanism
    odd.save(tmp_path / "odd.axm")
    again = ax.load_model(tmp_path / "odd.axm")
    assert facts_of(again).contact_table == facts_of(odd).contact_table
    q, nu, _ = state_of(odd)
    for one, other in zip(rows_of(odd, q, nu), rows_of(again, q, nu), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("wheel", "fault"),
    [
        (ax.Rolling(0.1, friction=-0.1), "friction: must be >= 0 and finite, got -0.1"),
        (ax.Rolling(0.1, friction=np.nan), "friction: must be >= 0 and finite"),
        (ax.Rolling(0.1, friction=(0.5, 0.8)), "friction: static friction, 0.5, must not be below"),
        (ax.Rolling(0.1, friction=0.5, restitution=1.2), "restitution: must be from 0"),
        (ax.Rolling(0.1, restitution=0.5), "restitution: belongs to contacts that may slip"),
        (ax.Omni(0.1, friction=0.5, scrub=-1.0), "scrub: must be >= 0 m"),
        (ax.Omni(0.1, scrub=0.1), "scrub: belongs to contacts that may slip"),
        (ax.Ball(0.1, friction=0.5, rolling_resistance=np.inf), "rolling_resistance: must be >= 0"),
    ],
)
def test_wrong_numbers_of_wheels_are_named(wheel, fault):
    m = rover()
    m.change_contact("fl", wheel=wheel)
    with pytest.raises(MechanismError, match=re.escape(fault)):
        m.derive()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"stops": (1.0, -1.0)}, "the lower stop, 1, must be below the upper one, -1"),
        ({"stops": (np.nan, 1.0)}, "must be numbers"),
        ({"friction": -1.0}, "must be >= 0 N m"),
        ({"friction": (1.0, 2.0)}, "must not be below the kinetic one"),
        ({"restitution": 0.5}, "is that of stops"),
        ({"stops": (-1.0, 1.0), "restitution": -0.5}, "must be from 0"),
    ],
)
def test_wrong_numbers_of_joints_are_named(given, fault):
    m = ax.Mechanism("arm")
    body = m.add_body("rod", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("arm", ax.Revolute("y"), parent=m.ground, child=body, **given)
    with pytest.raises(MechanismError, match=re.escape(fault)):
        m.derive()


def test_other_wrong_descriptions_are_named():
    m = ax.Mechanism("free")
    body = m.add_body("rod", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("free", ax.Floating(), parent=m.ground, child=body, friction=1.0)
    with pytest.raises(MechanismError, match="for joints with one coordinate, and this one has 7"):
        m.derive()
    m = block()
    m.contacts = []
    flat = ax.Plane(normal=(0.0, 0.0, 0.0))
    m.add_contact("foot", ax.Point(friction=0.5), body="block", ground=flat)
    with pytest.raises(MechanismError, match="normal must be a unit vector, got zero length"):
        m.derive()
    with pytest.raises(ax.AxodeError, match=r"expected a number or \(static, kinetic\), got 3"):
        ax.Rolling(0.1, friction=(1, 2, 3))


def cart(base, *, ideal=()):
    m = ax.Mechanism("cart")
    deck = m.add_body("deck", mass=5.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("base", base, parent=m.ground, child=deck, at=(0, 0, 0.1))
    for name, x, y in (("l", 0, 0.2), ("r", 0, -0.2), ("f", 0.3, 0.1), ("b", -0.3, 0.1)):
        wheel = ax.Rolling(0.1, friction=None if name in ideal else 0.6)
        m.add_wheel(name, wheel, on=deck, at=(x, y, 0), mass=0.5, motor=True)
    return m


def test_wheels_that_nothing_presses_onto_their_ground_are_named():
    planar = cart(ax.Planar())
    with pytest.raises(MechanismError, match=r"Floating\(\)") as error:
        planar.derive()
    found = {(fault.kind, fault.name, fault.field) for fault in error.value.faults}
    assert found == {("wheel", name, "friction") for name in "lrfb"}
    planar.ideal()  # without friction nothing is wrong with it
    cart(ax.Floating()).derive()


def test_wheels_beside_ideal_ones_that_carry_everything_are_named():
    with pytest.raises(MechanismError, match=r"\[wheel\.b\] friction: no motion lifts it"):
        cart(ax.Floating(), ideal="lrf").derive()


def test_stops_of_a_joint_that_a_clock_moves_are_named():
    m = pendulum()
    bob = m.add_body("second", mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.add_joint("free", ax.Revolute("y"), parent="bob", child=bob, at=(0, 0, -1))
    m.prescribe("swing", "0.5*sin(t)")
    with pytest.raises(MechanismError, match=r"\[joint\.swing\] stops: no motion"):
        m.derive()


def test_verbs_that_know_no_contacts_refuse_them(tmp_path):
    model = pendulum().derive().compile()
    verbs = {
        "inverse_dynamics": lambda: ax.inverse_dynamics(model, {"swing": 0.0}),
        "stepper": lambda: model.stepper(),
        "gradient": lambda: ax.gradient(ax.Cost(model, 1.0, final="swing")),
        "page": lambda: ax.page(model, tmp_path / "page.html"),
        "x.fmu": lambda: model.export(tmp_path / "x.fmu"),
        "x.c": lambda: model.export(tmp_path / "x.c"),
        "x.wasm": lambda: model.export(tmp_path / "x.wasm"),
        "x.ptx": lambda: model.export(tmp_path / "x.ptx", rollout="rk4"),
    }
    for call in verbs.values():
        with pytest.raises(NotApplicable, match=r"no friction, lift-off or stops.*\n.*ideal\(\)"):
            call()
