"""Joints coupled by functions: cams, gears that are not round, and what no joint can follow."""

import numpy as np
import pytest

import axode as ax
from axode.gallery.cam_follower import DEFAULTS

ROUNDING = 1e-12
FORMULATIONS = (
    "recursive",
    "complement",
    "multipliers",
    "lagrange",
    "virtual_work",
    "spatial_operators",
)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_an_eccentric_cam_feels_its_follower_as_the_cosine_of_its_angle(formulation):
    """y = e sin(theta): inertia m e^2 cos^2, and the force that lifts, springs and accelerates."""
    e, R, m_c, m_f, k, preload, g = DEFAULTS.values()
    equations = ax.gallery.build("cam_follower").derive(formulation, independent=["theta_dot"])
    model = equations.compile("interpreter")
    for theta, rate, tau in ((0.4, 12.0, 0.3), (2.9, -7.0, 0.0), (np.pi / 2, 30.0, -1.0)):
        s, c = np.sin(theta), np.cos(theta)
        q = ax.assemble(model, {"theta": theta}).q
        own = m_c * (R**2 / 2 + e**2)
        inertia = own + m_f * (e * c) ** 2
        resisting = m_f * g + k * (e * s + preload) - m_f * e * s * rate**2
        theta_ddot = (tau - m_c * g * e * c - e * c * resisting) / inertia
        assert model.mass_matrix(q) == pytest.approx(inertia, rel=ROUNDING)
        found = model.forward_dynamics(q, [rate], [tau]).item()
        assert found == pytest.approx(theta_ddot, rel=1e-11)
        lift = m_f * e * c * theta_ddot + resisting
        assert model.multipliers(q, [rate], [tau]).item() == pytest.approx(lift, rel=1e-11)
        assert model.joint_speeds(q, [rate]) == pytest.approx([rate, e * c * rate], abs=1e-15)


def test_a_cam_turns_for_many_revolutions_on_its_profile_and_keeps_its_energy():
    model = ax.gallery.build("cam_follower").derive(independent=["theta_dot"]).compile()
    run = ax.simulate(model, 2.0, start={"theta_dot": 60.0}, rtol=1e-10, atol=1e-12)
    assert run["theta"][-1] > 6 * np.pi
    assert run["y"] == pytest.approx(DEFAULTS["e"] * np.sin(run["theta"]), abs=1e-14)
    energy = run["kinetic"] + run["potential"]
    assert energy == pytest.approx(energy[0], rel=1e-9)
    assert run.unit("lift.coupling.force") == "N"


def shafts(**coupling) -> ax.Mechanism:
    m = ax.Mechanism("shafts")
    for k, name in enumerate("ab"):
        m.add_body(name, mass=1.0, inertia=(0.02 + 0.3 * k,) * 3)
        m.add_joint(name, ax.Revolute("z"), parent="ground", child=name, at=(0.1 * k, 0, 0))
    m.add_motor("a", "a")
    m.add_coupling("k", {"b": 1.0}, **coupling)
    return m


def test_a_linear_function_is_a_gear():
    results = []
    for given in (
        {"function": "-2.5 * a", "offset": 0.3},
        {"function": lambda q: 0.3 - 2.5 * q["a"]},
    ):
        model = shafts(**given).derive(independent=["a.rate"]).compile("interpreter")
        results.append((model.home, model.forward_dynamics(model.home, [2.0], [0.7])))
    gear = shafts()
    gear.couplings.clear()
    gear.add_gear("k", "b", "a", 2.5, offset=0.3)
    model = gear.derive(independent=["a.rate"]).compile("interpreter")
    for home, found in results:
        assert home == pytest.approx(model.home, abs=1e-15)
        assert found == pytest.approx(model.forward_dynamics(home, [2.0], [0.7]), rel=1e-13)


def test_a_dwell_may_join_a_rise_where_the_slopes_meet():
    """A cycloidal rise between dwells: at rest, the follower bears no inertia."""
    rise = lambda x: x - np.sin(2 * np.pi * x) / (2 * np.pi)  # noqa: E731
    profile = lambda q: 0.4 * rise(np.clip(q["a"], 0.0, 1.0))  # noqa: E731
    model = shafts(function=profile).derive(independent=["a.rate"]).compile()
    for angle, inertia in ((-0.5, 0.02), (0.5, 0.02 + 0.32 * 0.8**2), (1.5, 0.02)):
        q = ax.assemble(model, {"a": angle}).q
        assert model.mass_matrix(q) == pytest.approx(inertia, rel=1e-12)
    run = ax.simulate(model, 3.0, start={"a": -0.5, "a.rate": 2.0}, rtol=1e-10, atol=1e-12)
    assert run["b"][-1] == pytest.approx(0.4, abs=1e-14)
    assert run["a.rate"][-1] == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("abs(sin(a))", "its slope jumps by 2 at a = 0"),
        ("a % (2 * pi)", "it jumps by 6.28 at a = 0"),
        (lambda q: np.where(q["a"] > 0.3, 0.0, np.minimum(q["a"], 0.3)), "jumps by 0.3 at a = 0.3"),
        (lambda q: np.sign(q["a"]) * 1e-3, "it jumps by 0.002 at a = 0"),
        ("sqrt(sin(a) ** 2)", "its slope jumps by 2 at a = 0"),
        ("asin(sin(a))", "its slope jumps by 2 at a = 1.5708"),
        ("atan2(sin(a), cos(a))", "it jumps by 6.28 at a = 3.14159"),
    ],
)
def test_jumps_of_value_or_slope_are_refused(function, message):
    with pytest.raises(ax.MechanismError, match=message):
        shafts(function=function).derive()


@pytest.mark.parametrize(
    "function",
    ["sqrt(1 + a ** 2)", "0.3 * sqrt(4 - a ** 2)", "atan2(sin(a), 2 + cos(a))", "tan(a / 3)"],
)
def test_roots_and_poles_that_are_no_jumps_are_accepted(function):
    assert shafts(function=function).derive().mobility.mobility == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("sin(c)", "unknown joint or coordinate 'c'.*Parameters"),
        ('sin(q["a.rate"])', "'a.rate' is a speed, and a function takes coordinates: a, b"),
        ("a * t", "time may stand only in a prescribed motion"),
        ("0.3", "a coupling relates at least two joints, got 1"),
    ],
)
def test_faults_of_functions_are_reported_with_their_remedy(function, message):
    with pytest.raises(ax.MechanismError, match=message):
        shafts(function=function).check()


def test_functions_that_cannot_be_read_are_refused_at_once():
    with pytest.raises(ax.InvalidArgument, match=r"coupling 'k', function: 'sin\(a, b\)' is not"):
        shafts(function="sin(a, b)")
    with pytest.raises(ax.InvalidArgument, match=r'coordinates are read as q\["cam"\]'):
        shafts(function=lambda q: q.a)
    with pytest.raises(ax.InvalidArgument, match="use functions such as numpy"):
        shafts(function=lambda q: __import__("math").sin(q["a"]))


def test_a_function_without_a_value_at_home_is_named():
    with pytest.raises(ax.LoopNotClosed, match="no value there: set_home where it has one"):
        shafts(function="sqrt(a - 5)").derive()


def test_files_hold_functions_of_joints_by_any_name(tmp_path):
    """Also names that a formula reads otherwise: `t`, `max`, `arm/elbow-1`."""
    for name in ("t", "max", "arm/elbow-1", "base.x", 'a"b'):
        m = ax.Mechanism("names")
        r = ax.Parameter("r", 0.2)
        for joint in (name, "z"):
            m.add_body(joint, mass=1.0, inertia=(0.1, 0.1, 0.1))
            m.add_joint(joint, ax.Revolute("z"), parent="ground", child=joint)
        m.add_cam("k", "z", name, lambda angle, r=r: r * np.cos(angle))
        m.save(tmp_path / "m.toml")
        again = ax.load(tmp_path / "m.toml")
        assert again.couplings == m.couplings
        again.derive(independent=[m.connections[0].speeds[0]])
    text = '[parameters]\nr = 0.2\n[cam.k]\nfollower = "z"\ncam = "x"\nprofile = "r * tan(xx)"\n'
    bodies = "".join(
        f'[body.{n}]\nmass = 1\ninertia = [1, 1, 1]\n[joint.{n}]\ntype = "revolute"\n'
        f'parent = "ground"\nchild = "{n}"\naxis = "z"\n'
        for n in "xz"
    )
    (tmp_path / "wrong.toml").write_text(text + bodies)
    with pytest.raises(ax.MechanismError, match=r"line +6 .*cam.k.*profile: .*'xx'.*Parameters: r"):
        ax.load(tmp_path / "wrong.toml")


def test_other_formats_say_that_they_leave_a_cam_out(tmp_path):
    m = ax.gallery.build("cam_follower")
    with pytest.warns(ax.OmissionWarning, match="coupling 'lift' is not linear"):
        m.to_urdf(tmp_path / "cam.urdf")
