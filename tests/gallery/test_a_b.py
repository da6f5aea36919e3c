"""Gallery mechanisms of Angeles's chapter 12 and of Saha and Angeles."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode.gallery import NAMES, build
from axode.symbolic.analysis.twist_constraints import TwistConstraints
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.equations import Equations
from laws.cases import gallery_case
from variants import further, slow, some

LEGS = ("I", "II", "III", "IV", "V", "VI")
SLOW = (0.03, -0.02, 0.01, 0.02, -0.03, 0.02)  # [rad/s or m/s] of the legs' joints
AGREE = 1e-9  # relative, between formulations
ENERGY = 1e-8  # relative, lost or won in ten seconds


@dataclass(frozen=True)
class Entry:
    """What a mechanism is known to be, and a motion without friction and motors."""

    mobility: int
    bodies: int
    joints: int
    loops: int
    actuation: str
    holonomic: bool
    start: dict[str, float]
    free: dict[str, Any] = field(default_factory=dict)  # options for that motion
    near: dict[str, float] = field(default_factory=dict)  # a configuration off home
    twist_rows: int = 0  # of the constraint matrix on twists


# A platform on elbows that nothing holds up soon lies in the plane of its base and later in a
# configuration where no motion is determined: it floats instead, and falls in a test of its own.
ENTRIES = {
    "four_bar": Entry(
        1, 3, 4, 1, "fully actuated", True, {"theta1_dot": 8.0}, near={"theta1": 2.5}, twist_rows=24
    ),
    "six_legged_platform": Entry(
        6,
        31,
        36,
        5,
        "fully actuated",
        True,
        {f"theta_{leg}4_dot": rate for leg, rate in zip(LEGS, SLOW, strict=True)},
        {"g": 0.0},
        {"c_M.x": 0.05, "c_M.z": 0.95, "roll": 0.08, "yaw": -0.1},
        216,
    ),
    "flight_simulator": Entry(
        6,
        13,
        18,
        5,
        "fully actuated",
        True,
        {f"l_{leg}_dot": rate for leg, rate in zip(LEGS, SLOW, strict=True)},
        {},
        {"c_M.x": 0.05, "c_M.z": 0.95, "roll": 0.08, "yaw": -0.1},
        6 * 4 + 6 * 6 + 6 * 3,
    ),
    "caster_robot": Entry(
        2,
        5,
        5,
        0,
        "fully actuated",
        False,
        {"theta1_dot": 3.0, "theta2_dot": 1.0},
        near={"psi": 0.4, "phi": 1.0},
        twist_rows=33,
    ),
    "two_caster_robot": Entry(
        2,
        7,
        7,
        0,
        "fully actuated",
        False,
        {"theta1_dot": 3.0, "theta2_dot": 1.0},
        near={"psi1": 0.4, "psi2": -1.0},
        twist_rows=6 * 6 + 3 * 4,
    ),
    "delta_array": Entry(
        3,
        4,
        4,
        0,
        "fully actuated",
        False,
        {"theta1_dot": 3.0, "theta2_dot": 1.0, "theta3_dot": -5.0},
        {"c": 0.0},
        {"sigma": 0.7},
        6 * 3 + 2 * 3,
    ),
    "mecanum_platform": Entry(
        3,
        5,
        5,
        0,
        "redundantly actuated",
        False,
        {"vx": 0.3, "vy": 1.0, "omega": 0.5},
        {"c": 0.0},
        {"sigma": 0.7},
        6 * 4 + 2 * 4,
    ),
    "rolling_disk": Entry(
        3,
        1,
        1,
        0,
        "unactuated",
        False,
        {"base.wx": 0.3, "base.wy": 8.0, "base.wz": 0.5},
        near={"base.roll": 0.4, "base.pitch": 0.3},
        twist_rows=3,
    ),
}


def derived(name: str) -> ax.Equations:
    """Return the equations of a mechanism, derived once for all tests."""
    return gallery_case(name).equations


def state(model: ax.Model, entry: Entry) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A closed configuration away from home, any speeds, any inputs."""
    q = ax.assemble(model, entry.near).q
    generator = np.random.default_rng(3)
    assert np.abs(q - model.home).max() > 1e-3
    return (
        q,
        generator.normal(size=len(model.independent)),
        generator.normal(size=len(model.inputs)),
    )


@pytest.mark.parametrize("name", ENTRIES)
def test_it_is_in_the_gallery_and_documented(name: str):
    assert NAMES[name]
    mechanism = build(name)
    assert mechanism.name == name
    assert all(body.shape is not None for body in mechanism.bodies)


@pytest.mark.parametrize("name", ENTRIES)
def test_mobility(name: str):
    report, entry = derived(name).mobility, ENTRIES[name]
    assert (report.mobility, report.bodies, report.joints, report.loops) == (
        entry.mobility,
        entry.bodies,
        entry.joints,
        entry.loops,
    )
    assert (report.actuation, report.holonomic) == (entry.actuation, entry.holonomic)


@pytest.mark.parametrize("name", some(ENTRIES, "six_legged_platform"))
def test_formulations_agree(name: str):
    equations, entry = derived(name), ENTRIES[name]
    model = equations.compile("interpreter")
    q, nu, u = state(model, entry)
    wanted = model.forward_dynamics(q, nu, u)
    for formulation in set(ax.FORMULATIONS) & {"complement", "multipliers", "lagrange"}:
        other = Equations(equations.system, formulation, equations.self_check)
        found = other.compile("interpreter").forward_dynamics(q, nu, u)
        assert np.abs(found - wanted).max() <= AGREE * np.abs(wanted).max(), formulation


@pytest.mark.parametrize("name", ENTRIES)
def test_constraints_on_twists(name: str):
    """(6 gamma + 3 nu) x 6p, its null space is spanned by T, and its nullity is the mobility."""
    equations, entry = derived(name), ENTRIES[name]
    q = state(equations.compile("interpreter"), entry)[0]
    A, T = TwistConstraints(equations).at(q)
    assert A.shape == (entry.twist_rows, 6 * entry.bodies)
    assert A.shape[1] - rank_of(A) == entry.mobility == rank_of(T)
    assert np.abs(A @ T).max() <= 1e-12 * np.abs(A).max() * np.abs(T).max()


@pytest.mark.parametrize(
    "name",
    slow(
        some([name for name in ENTRIES if name != "six_legged_platform"], "flight_simulator"),
        "delta_array",
        "mecanum_platform",
    ),
)
def test_energy_stays(name: str):
    """The platform on six legs keeps its energy while it falls, below."""
    entry = ENTRIES[name]
    model = build(name, **entry.free).derive().compile()
    duration = 2.0 if name == "flight_simulator" else 10.0
    run = ax.simulate(model, duration, start=entry.start, rtol=1e-10, atol=1e-12, progress=False)
    assert run.status == "finished" and run.ended == pytest.approx(duration)
    assert np.ptp(run[model.coordinates[-1]]) > 1e-3  # it does move
    assert run.energy_error < ENERGY


@pytest.mark.soak
def test_the_six_legged_platform_falls():
    model = build("six_legged_platform").derive().compile()
    run = ax.simulate(model, 0.35, rtol=1e-10, atol=1e-12, progress=False)
    assert run["c_M.z"][0] - run["c_M.z"][-1] > 0.3
    assert run.energy_error < ENERGY


# options -----------------------------------------------------------------------------------------


def test_parameters_by_keyword():
    defaults = derived("caster_robot").parameters
    assert build("caster_robot", l=0.7).derive().parameters == {**defaults, "l": 0.7}
    with pytest.raises(
        ax.UnknownName, match="'caster_robot' of the gallery has no parameter 'lenght'"
    ):
        build("caster_robot", lenght=1.0)
    with pytest.raises(ax.UnknownName, match=r"Parameters: beta, pi, knee, .*, g"):
        build("six_legged_platform", legs=4)  # those of the signature as well as the defaults
    with pytest.raises(ax.InvalidArgument, match="3 on the base and 2 on the platform"):
        build("flight_simulator", beta=[0.0, 2.0, 4.0], pi=[0.5, 2.5])
    with pytest.raises(ax.InvalidArgument, match="of wheel 2, got 3 numbers"):
        build("mecanum_platform", wheels=[(0.2, 0.1, 0.0, 0.8), (0.2, 0.1, 0.0)])


@pytest.mark.parametrize("legs", [3, further(4), further(8)])
@pytest.mark.parametrize(("name", "links"), [("six_legged_platform", 5), ("flight_simulator", 2)])
def test_any_number_of_legs(name: str, links: int, legs: int):
    angles = np.linspace(0, 2 * np.pi, legs, endpoint=False) + 0.1
    # similar polygons, all legs turned alike, would be singular wherever the platform is
    top = angles + 0.3 * (-1.0) ** np.arange(legs)
    mechanism = build(name, beta=angles, pi=top, Rb=0.9, c_M=(0.02, 0.05, 0.9))
    report = mechanism.derive().mobility
    assert (report.bodies, report.loops, report.mobility) == (links * legs + 1, legs - 1, 6)
    wanted = {3: "underactuated", 4: "underactuated", 8: "redundantly actuated"}
    assert report.actuation == wanted[legs]


@pytest.mark.parametrize("name", ["six_legged_platform", "flight_simulator"])
def test_home_is_where_it_is_asked_to_be(name: str):
    place, turn = (0.05, -0.04, 0.95), (0.08, -0.06, 0.15)
    model = build(name, c_M=place, rpy_zyx=turn).derive().compile("interpreter")
    assert np.abs(model.residual(model.home)).max() < 1e-12
    found = ax.assemble(model).as_dict()
    names = ("c_M.x", "c_M.y", "c_M.z", "roll", "pitch", "yaw")
    assert [found[n] for n in names] == pytest.approx([*place, *turn], abs=1e-12)


def test_a_leg_that_cannot_reach_is_named():
    with pytest.raises(ax.AxodeError, match="leg I cannot reach"):
        build("six_legged_platform", c_M=(0, 0, 3.0))


def test_unlike_wheels():
    """Five wheels with five roller angles still leave the platform three speeds."""
    wheels = [
        (0.25, 0.1, 0.3, 1.1),
        (-0.1, 0.2, 2.0, -0.6),
        (-0.2, -0.15, -1.2, 0.9),
        (0.15, -0.2, 1.0, 2.2),
        (0.0, 0.3, -0.4, 0.7),
    ]
    report = build("mecanum_platform", wheels=wheels).derive().mobility
    assert (report.mobility, report.motors) == (3, 5)


def test_signs_of_the_caster_robot():
    """Equal rates drive along +y; a faster wheel 1 turns to the left; the caster trails behind."""
    model = derived("caster_robot").compile("interpreter")
    speeds = dict(zip(model.speed_names, model.joint_speeds(None, [2.0, 2.0]), strict=True))
    assert speeds["v_j"] == pytest.approx(0.2) and speeds["omega"] == pytest.approx(0.0)
    assert speeds["theta3_dot"] == pytest.approx(2.0) and speeds["psi_dot"] == pytest.approx(0.0)
    turning = dict(zip(model.speed_names, model.joint_speeds(None, [2.0, 1.0]), strict=True))
    assert turning["omega"] == pytest.approx(0.1 / 0.5)
    places = dict(zip(model.bodies, model.poses(model.home)[:, :3, 3], strict=True))
    assert places["caster"] == pytest.approx([0.0, -0.36, 0.1])
