"""Gallery mechanisms that no source describes and that users look for."""

from collections.abc import Callable

import numpy as np
import pytest

import axode as ax
from axode.errors import UnknownName
from axode.gallery import build
from gallery.known import (
    Known,
    check_description,
    check_energy,
    check_formulations,
    check_mobility,
    derived,
    each_check,
)
from laws.cases import gallery_case
from variants import further

LOW = 1.9  # angle of the delta's arms near where it hangs [rad]
KNOWN = {
    "unicycle": Known(2, 3, 2, 0, 4, 4, "fully actuated", 2, {"phi_dot": 3.0, "w": 0.4}),
    "cam_follower": Known(1, 1, 1, 0, 1, 1, "fully actuated", 1, {"theta_dot": 20.0}),
    "differential_drive": Known(
        2, 6, 3, 0, 5, 4, "fully actuated", 2, {"phi_R_dot": 5.0, "phi_L_dot": 2.0}
    ),
    "chaplygin_sleigh": Known(2, 2, 1, 0, 3, 3, "unactuated", 0, {"v": -0.5, "omega": 1.0}),
    "snakeboard": Known(
        4,
        4,
        2,
        0,
        6,
        6,
        "underactuated",
        3,
        {"psi_dot": 1.0, "v": 0.3, "phi_f_dot": 0.05, "phi_b_dot": -0.03},
        spread=0.1,
    ),
    "ballbot": Known(
        6,
        3,
        3,
        0,
        8,
        8,
        "underactuated",
        3,
        {"base.wx": 1.0, "base.wz": 0.3, "drive.wx": 0.4, "drive.wy": -0.2},
    ),
    "five_bar": Known(
        2, 5, 2, 1, 2, 2, "fully actuated", 2, {"theta1_dot": 0.4, "theta2_dot": -0.3}, spread=0.1
    ),
    "mecanum_rover": Known(
        3, 8, 4, 0, 7, 5, "redundantly actuated", 4, {"vx": 0.5, "vy": -0.3, "w": 0.7}
    ),
    "tricycle": Known(
        2, 9, 5, 0, 7, 6, "fully actuated", 2, {"phi_F_dot": 4.0, "delta_dot": 0.02, "delta": 0.2}
    ),
    "pendulum_on_slope": Known(
        3,
        6,
        5,
        0,
        6,
        5,
        "underactuated",
        2,
        {"base.wy": 0.3, "base.wz": 0.5, "base.vx": 0.2},
        spread=0.2,
    ),
    "seven_axis_arm": Known(7, 0, 0, 0, 7, 7, "fully actuated", 7, {"q1_dot": 0.5, "q3_dot": 0.4}),
    "delta_robot": Known(
        3,
        25,
        13,
        5,
        3,
        3,
        "fully actuated",
        3,
        {
            "theta1": LOW,
            "theta2": LOW + 0.03,
            "theta3": LOW - 0.02,
            "pitch1": -1.5,
            "pitch2": -1.5,
            "pitch3": -1.5,
            "hinge1": -0.2,
        },
        spread=0.05,
    ),
}
PLATFORMS = {
    "planar_3rrr": Known(
        3,
        10,
        4,
        2,
        3,
        3,
        "fully actuated",
        3,
        {"theta1_dot": 0.3, "theta2_dot": -0.2, "theta3_dot": 0.1},
        spread=0.05,
    ),
    "platform_3rps": Known(
        3,
        6,
        6,
        2,
        3,
        3,
        "fully actuated",
        3,
        {"l1_dot": 0.015, "l2_dot": -0.01},
        options={"g": 0.0},
        spread=0.05,
    ),
    "agile_eye": Known(
        3,
        10,
        4,
        2,
        3,
        3,
        "fully actuated",
        3,
        {"theta1_dot": 0.03, "theta2_dot": 0.02},
        options={"g": 0.0},
        spread=0.1,
    ),
}
SIX_LEGS = Known(6, 15, 15, 5, 6, 6, "fully actuated", 6, {})


@each_check(KNOWN, long_runs={"delta_robot", "pendulum_on_slope"})
def test_known(label: str, check: Callable[[str, Known], None]):
    check(label, KNOWN[label])


# what each is known for ---------------------------------------------------------------------------


def test_unicycle_separates_drive_from_steering():
    """A torque on the wheel drives it, one about the vertical turns it, neither does both."""
    model = build("unicycle").derive(independent=["v", "w"]).compile("interpreter")
    assert np.abs(model.mass_matrix({"theta": 0.7}) - np.diag([3.5, 0.06])).max() < 1e-12


def test_differential_drive_pushes_outwards():
    """Turning with the mass centre ahead, the robot speeds up by m d w^2."""
    model = build("differential_drive").derive(independent=["v", "w"]).compile("interpreter")
    w, m, d, r = 2.0, 12.0, 0.08, 0.08
    mass = m + 2 * 0.8 + 2 * (0.8 * r**2 / 2) / r**2
    found = model.forward_dynamics({"theta": -1.0}, {"w": w})
    assert abs(found[0] - m * d * w**2 / mass) < 1e-12


def test_sleigh_ends_up_straight():
    """Edge ahead is unstable: it turns round until the mass centre leads, and stops turning."""
    model = build("chaplygin_sleigh").derive(independent=["v", "omega"]).compile()
    run = ax.simulate(model, 60.0, start={"v": -0.5, "omega": 0.1}, rtol=1e-10, progress=False)
    m, J, a = 3.0, 0.2, 0.35
    speed = np.sqrt(0.5**2 + (J + m * a**2) / m * 0.1**2)
    assert abs(run.final["omega"]) < 1e-6
    assert run.final["v"] == pytest.approx(speed, rel=1e-6)


@pytest.mark.slow
def test_agile_eye_folds_all_its_legs_at_once():
    """Where the camera's axes lie along the motors', these may turn without it: rank is lost.

    It comes there whatever the start. Momentum carries it across, also on other rows and speeds
    than those it began with.
    """
    model = build("agile_eye").derive().compile()
    start = {"theta1_dot": 0.23, "theta2_dot": -0.1, "theta3_dot": 0.15}
    with pytest.raises(ax.SingularConfiguration) as caught:
        ax.simulate(model, 0.5, start=start)
    knees = [caught.value.trajectory.final[f"phi{k}"] for k in (1, 2, 3)]
    np.testing.assert_allclose(np.abs(knees), np.pi / 2, atol=0.01)
    run = ax.simulate(model, 0.5, start=start, singular="pass")
    assert run.status == "finished" and run.energy_error < 1e-9
    assert run.info["switches"] > 0 and run.info["passed"][0]["correction"] < 1e-8


def test_snakeboard_drives_itself():
    """Rotor and wheelsets swung in step move it forward, though no wheel is driven."""
    bot = build("snakeboard")
    for name, motion in (
        ("psi", lambda t: 0.7 * np.sin(t)),
        ("phi_f", lambda t: 0.5 * np.sin(t)),
        ("phi_b", lambda t: -0.5 * np.sin(t)),
    ):
        bot.prescribe(name, motion)
    bot.set_home(phi_f=0.0, phi_b=0.0)
    model = bot.derive().compile()
    run = ax.simulate(model, 40.0, progress=False)
    assert np.hypot(run.final["x"], run.final["y"]) > 0.5


def test_ballbot_falls_and_the_drive_catches_it():
    """Leaning it falls; the torque that would hold the body drives the ball under it."""
    model = gallery_case("ballbot").equations.compile("interpreter")
    lean = 0.1
    state = ax.assemble(model, {"drive.qw": np.cos(lean / 2), "drive.qy": np.sin(lean / 2)})
    falling = dict(zip(model.independent, model.forward_dynamics(state.q, state.nu), strict=True))
    assert falling["drive.wy"] > 0.5
    held = {"tau_y": -14.0 * 9.81 * 0.45 * np.sin(lean)}
    caught = dict(
        zip(model.independent, model.forward_dynamics(state.q, state.nu, held), strict=True)
    )
    assert caught["base.wy"] > 0.1  # the ball is driven under the body


def test_five_bar_is_symmetric():
    """Mirrored cranks: the tip is on the middle line, and equal torques keep it there."""
    model = gallery_case("five_bar").equations.compile("interpreter")
    measures = dict(zip(model.measure_names, model.measures(model.home, np.zeros(2)), strict=True))
    assert abs(measures["tip.x"]) < 1e-12 and measures["tip.y"] > 0.3
    found = model.forward_dynamics(model.home, np.zeros(2), [0.1, -0.1])
    assert found[0] == pytest.approx(-found[1], rel=1e-9)


def test_rover_moves_sideways():
    """Wheels of one diagonal against those of the other push it straight to the side."""
    model = build("mecanum_rover").derive(independent=["vx", "vy", "w"]).compile("interpreter")
    vx, vy, w = model.forward_dynamics(None, np.zeros(3), [-1.0, 1.0, 1.0, -1.0])
    assert abs(vx) < 1e-12 and abs(w) < 1e-12 and abs(vy) > 0.1


def test_tricycle_turns_about_the_point_where_its_axles_meet():
    model = gallery_case("tricycle").equations.compile("interpreter")
    q, delta = {"delta": 0.5}, 0.5
    speeds = model.joint_speeds(q, {"phi_F_dot": 2.0})
    named = dict(zip(model.speed_names, speeds, strict=True))
    assert named["v"] == pytest.approx(0.15 * 2.0 * np.cos(delta))
    assert named["theta_dot"] == pytest.approx(named["v"] * np.tan(delta) / 1.0)


@pytest.mark.parametrize("slope", [0.0, 0.15, -0.3])
def test_pendulum_stands_on_its_slope(slope: float):
    """At rest with the mass centre above the contact: a torque on the wheels holds it there."""
    model = build("pendulum_on_slope", slope=slope).derive().compile("interpreter")
    M, m, r, h, g = 8.0, 0.5, 0.1, 0.4, 9.81
    torque = (M + 2 * m) * g * r * np.sin(slope)  # of both wheels, up the slope
    pitch = np.arcsin(torque / (M * g * h))
    state = ax.assemble(model, {"base.pitch": pitch})
    assert state["base.pitch"] == pytest.approx(pitch)
    found = model.forward_dynamics(state.q, state.nu, [torque / 2, torque / 2])
    assert np.abs(found).max() < 1e-9


def test_seven_axis_arm_moves_its_elbow_alone():
    """One combination of the seven speeds leaves the hand where it is."""
    bot = build("seven_axis_arm")
    equations = bot.derive()
    model = equations.compile("interpreter")
    q = model.home + 0.1
    hand = model.bodies.index("link7")
    twists = np.array([model.twists(q, unit)[hand] for unit in np.eye(7)]).T
    assert np.linalg.matrix_rank(twists) == 6


def test_delta_keeps_its_platform_level():
    model = gallery_case("delta_robot").equations.compile("interpreter")
    platform = model.bodies.index("platform")
    assert np.abs(model.poses(model.home)[platform, :2, 3]).max() < 1e-12
    for nu in np.eye(3):
        assert np.abs(model.twists(model.home, nu)[platform, :3]).max() < 1e-12


def test_delta_reports_what_revolutes_alone_leave_open():
    report = gallery_case("delta_robot").equations.mobility
    loops = ("foot1b", "foot2b", "foot3b", "hinge2", "hinge3")
    assert {name.split(".")[0] for name in report.dropped} == set(loops)
    assert report.indeterminate


def test_parameters_by_keyword():
    defaults = gallery_case("unicycle").equations.parameters
    assert build("unicycle", r=0.3).derive().parameters == {**defaults, "r": 0.3}
    with pytest.raises(UnknownName, match="radius"):
        build("unicycle", radius=0.3)


@pytest.mark.parametrize("name", [*PLATFORMS, further("gough_stewart"), "dietmaier_platform"])
def test_platforms(name):
    check_description(name, PLATFORMS.get(name, SIX_LEGS))
    check_mobility(name, PLATFORMS.get(name, SIX_LEGS))


@pytest.mark.soak
@pytest.mark.parametrize("name", PLATFORMS)
def test_motions_of_platforms(name):
    check_formulations(name, PLATFORMS[name])
    check_energy(name, PLATFORMS[name])


def test_platforms_need_six_points():
    with pytest.raises(ax.InvalidArgument, match="base, platform: expected six points of three"):
        build("gough_stewart", base=np.zeros((5, 3)))


def test_dietmaiers_lengths():
    equations = derived("dietmaier_platform", SIX_LEGS)
    named = dict(zip(equations.coordinates, equations.system.home, strict=True))
    lengths = [named[f"l_{leg}"] for leg in ("I", "II", "III", "IV", "V", "VI")]
    wanted = [1, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071]
    assert np.abs(np.subtract(lengths, wanted)).max() < 1e-9
