"""Platform, caster robot and Delta array: inverse and direct dynamics of Angeles, chapter 12."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.gallery.six_legged_platform import BETA, PI
from axode.literature.reproduce.item import (
    Array,
    FigureCurve,
    FigurePanel,
    ItemResult,
    apart,
    columns_of,
    farthest,
    from_start,
    item,
    largest,
    misprinted,
    our_curves,
    over_time,
    plan_view,
    printed_curves,
    rows_beside,
    states_of,
    three_ways,
    torques_panel,
    vanishing,
)
from axode.literature.reproduce.legs import Legs, forces, hinged_leg, legs_recursion, sliding_leg
from axode.literature.reproduce.more_wheels import mecanum, two_casters
from axode.model.model import Model
from axode.problems.inputs.inputs import Sampled
from axode.problems.inverse.inverse import inverse_dynamics
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "progress": False}


# platforms on legs, section 12.4 ------------------------------------------------------------------

LEGS = ("I", "II", "III", "IV", "V", "VI")
DURATION, PERIOD = 1.0, 0.001  # [s], between samples of the torques
ONCE = "(1 - cos(2 * pi * t)) / 2"  # there and back, from rest to rest
PLACES = {f"c_M.{axis}": f"$c_{axis}$" for axis in "xyz"}
TURNS = {name: name for name in ("roll", "pitch", "yaw")}
REACHED = dict(zip((*PLACES, *TURNS), (0.08, -0.06, 0.07, 0.10, -0.08, 0.15), strict=True))
MIDDLE = {"c_M.z": 1.0}  # [m] at the start
MOTION = {name: f"{MIDDLE.get(name, 0.0)} + {size} * {ONCE}" for name, size in REACHED.items()}
RETURN = 5e-4  # [m, rad] that an unstable platform may stray in 1 s under torques joined by lines
WEIGHT = 100.0  # [N m, N] that a motor may hold up of platform and legs


@item("six-legs", "angeles", "platform on six legs, inverse and direct dynamics, section 12.4")
def six_legs() -> ItemResult:
    """Legs of six revolutes, elbows driven."""
    return _there_and_back("six_legged_platform", hinged_leg, r"elbow torques $\phi_J$", "N m")


@item(
    "flight-simulator",
    "angeles",
    "platform on sliding legs, inverse and direct dynamics, section 12.4",
)
def flight_simulator() -> ItemResult:
    """Legs that change their length."""
    return _there_and_back("flight_simulator", sliding_leg, r"leg forces $\phi_J$", "N")


def _there_and_back(name: str, leg: Legs, words: str, unit: str) -> ItemResult:
    """Forces for a motion, then the motion for these forces."""
    equations = build(name).derive()
    model = equations.compile("interpreter")
    asked = inverse_dynamics(model, MOTION, times=DURATION, save_every=PERIOD)
    motors = tuple(f"f_{number}" for number in LEGS)
    given = Sampled({motor: asked[motor] for motor in motors}, PERIOD, between="linear")
    start = tuple(values[0] for values in states_of(model, asked)[:2])
    found = simulate(model, DURATION, start=start, input=given, save_every=PERIOD, **EXACT)
    by_legs = build(name).derive("legs", model.independent).compile("interpreter")
    few = slice(None, None, 50)  # other ways, at some of the samples
    data = dict(model.parameters)
    poses = _poses(asked.time[few])
    lagrange = forces(leg, data, (BETA, PI), poses)
    weightless = forces(leg, data | {"g": 0.0}, (BETA, PI), poses)
    ours = np.array([asked[motor] for motor in motors])
    strayed = {name: found[name] - asked[name] for name in MOTION}
    near = 1e-9 * largest(ours)
    checks = [
        vanishing(
            "our forces and those of (12.31) as printed apart by",
            apart(ours[:, few], weightless),
            unit,
            within=near,
            why="by erratum A-6 the weight of platform and legs is missing",
            explained=WEIGHT,
        ),
        vanishing(
            "our forces and those of Lagrange's equations of the pose apart by",
            apart(ours[:, few], lagrange),
            unit,
            within=near,
        ),
        vanishing(
            "our forces and those of (12.27) and (12.30), leg by leg, corrected, apart by",
            apart(ours[:, few], _by_legs(by_legs, model, asked, few)),
            unit,
            within=near,
        ),
        vanishing(
            "direct dynamics under the forces of inverse dynamics strays by",
            largest(list(strayed.values())),
            "m or rad",
            within=RETURN,
        ),
        vanishing("work there and back", float(asked["supplied"][-1]), "J", within=1e-6),
    ]
    t = asked.time
    grey = printed_curves(t[few], lagrange, "Lagrange")
    dashed = misprinted(t[few], weightless, "as printed")
    legs = our_curves(t, ours, (f"leg {leg}" for leg in LEGS))
    off = (1e6 * value for value in strayed.values())
    panels = [
        over_time("place of the platform", "from the start [m]", from_start(found, asked, PLACES)),
        over_time("turning of the platform", "angle [rad]", from_start(found, asked, TURNS)),
        over_time(words, f"[{unit}]", (*legs, *grey, *dashed)),
        over_time(
            "direct dynamics minus given motion",
            "[µm, µrad]",
            our_curves(t, off, (PLACES | TURNS).values()),
        ),
    ]
    table = columns_of(asked, (*MOTION, *motors))
    table |= rows_beside(found, MOTION, "by direct dynamics", (found[name] for name in MOTION))
    return ItemResult(table, panels, PLATFORM_CAPTION, checks)


PLATFORM_CAPTION = (
    "A motion of the platform there and back in 1 s, the forces phi that inverse dynamics (12.31) "
    "finds for it, and the motion that direct dynamics (12.32) finds for these, given 1000 times "
    "per second and joined by lines. Nothing holds the platform but these forces, so that it "
    "strays from what is asked, more the longer it goes. Grey in the panel of the forces: "
    "Lagrange's equations of the pose, in which every link's place is a closed form of the pose; "
    "dashed: (12.31) as printed, without weight. "
    "The book has no numbers; geometry and masses are those of the gallery."
)


def _poses(times: Array) -> tuple[Array, Array, Array]:
    """Place and angles of the platform with two derivatives, (samples, 6) each."""
    rate = 2 * math.pi
    shapes = (1 - np.cos(rate * times)) / 2, rate * np.sin(rate * times) / 2
    sizes = np.array(list(REACHED.values()))
    start = np.array([MIDDLE.get(name, 0.0) for name in REACHED])
    first, second = (np.outer(shape, sizes) for shape in shapes)
    return start + first, second, np.outer(rate**2 * np.cos(rate * times) / 2, sizes)


def _by_legs(by_legs: Model, model: Model, run: Trajectory, few: slice) -> Array:
    """Forces by the formulation that goes leg by leg, (forces, samples)."""
    q, nu, u = (values[few] for values in states_of(model, run))
    found = by_legs.inverse_dynamics(q, nu, model.forward_dynamics(q, nu, u))
    return np.asarray(found)[:, : len(LEGS)].T


# robot with a caster, section 12.5.1 --------------------------------------------------------------

HISTORY = {"tau1": "0.3 * cos(2 * t)", "tau2": "0.2 * sin(3 * t)"}
SWIVEL = 1.0  # [rad] psi at the start
PRINT_STRAYS = 1.0  # [rad/s, rad, m] that three errata may lead astray in 4 s


CASTER_NAMES = ("theta1_dot", "theta2_dot", "psi", "phi", "C.x", "C.y")
WHEEL_RATES = {f"theta{k}_dot": rf"$\dot\theta_{k}$" for k in (1, 2)}
CASTER_CAPTION = (
    "tau_1 = 0.3 cos 2t and tau_2 = 0.2 sin 3t N m from rest, the caster at psi = 1; the pose "
    "follows by quadrature. The book has no numbers; the data are the gallery's. Grey: the "
    "closed form of section 12.5.1 with errata A-7, A-8 and A-9 corrected; dashed: as printed."
)


@item("caster-torques", "angeles", "robot with a caster under torques, section 12.5.1")
def caster_robot() -> ItemResult:
    """Motion of the robot with a caster under torques, its pose by quadrature."""
    equations = build("caster_robot", **printed.CASTER).derive(
        independent=("theta1_dot", "theta2_dot")
    )
    model = equations.compile("interpreter")
    run = simulate(model, 4.0, start={"psi": SWIVEL}, input=HISTORY, save_every=0.01, **EXACT)

    def torques(t: float) -> Array:
        return np.array([0.3 * math.cos(2 * t), 0.2 * math.sin(3 * t)])

    def book(misprints: Collection[str]) -> Array:
        return printed.casters_driven(printed.CASTER, torques, [SWIVEL], [0.0], run.time, misprints)

    errata = printed.CASTER_ERRATA
    right, wrong = book(()), book(errata)
    alone = {row: farthest(run, CASTER_NAMES, book({row})) for row in errata}
    shares = ", ".join(f"{size:.2g} by {row} alone" for row, size in alone.items())
    checks = [
        vanishing(
            "our motion and that of C as printed apart by",
            farthest(run, CASTER_NAMES, wrong),
            "rad/s, rad or m",
            why="by erratum A-7 its platform has no Coriolis forces, by A-8 its bracket no bars, "
            f"by A-9 an index is swapped ({shares})",
            explained=PRINT_STRAYS,
        ),
        vanishing(
            "with these three errata corrected apart by",
            farthest(run, CASTER_NAMES, right),
            "rad/s, rad or m",
        ),
        vanishing("energy lost by the integration, relative", float(run.energy_error)),
    ]
    table = columns_of(run, (*CASTER_NAMES, "theta3_dot", "psi_dot", "omega", "tau1", "tau2"))
    table |= rows_beside(run, CASTER_NAMES, "corrected", right)
    table |= rows_beside(run, CASTER_NAMES, "as printed", wrong)
    return ItemResult(table, _caster_panels(run, right, wrong), CASTER_CAPTION, checks)


def _caster_panels(run: Trajectory, right: Array, wrong: Array) -> list[FigurePanel]:
    def curves(labels: Mapping[str, str]) -> list[FigureCurve]:
        rows = [CASTER_NAMES.index(name) for name in labels]
        return three_ways(run, labels, right[rows], wrong[rows])

    return [
        torques_panel(run, 2),
        over_time("rates of the driven wheels", "rate [rad/s]", curves(WHEEL_RATES)),
        over_time(
            "caster and heading", "angle [rad]", curves({"psi": r"$\psi$", "phi": r"$\phi$"})
        ),
        plan_view(
            "path of the mass centre",
            FigureCurve(run["C.x"], run["C.y"], "Axode"),
            FigureCurve(right[4], right[5], "book, corrected", "printed"),
            FigureCurve(wrong[4], wrong[5], "book, as printed", "misprint"),
        ),
    ]


# Delta array, section 12.5.2 ----------------------------------------------------------------------

DELTA = {"a": 0.05, "r": 0.2, "mw": 0.4, "mp": 6.0, "I": 0.0005, "J": 0.0003, "H": 0.12, "c": 0.01}
DELTA_HISTORY = {"tau1": 0.1, "tau2": "0.05 * sin(2 * t)", "tau3": -0.08}


DELTA_NAMES = ("theta1_dot", "theta2_dot", "theta3_dot", "sigma", "x", "y")
DELTA_CAPTION = (
    "tau = (0.1, 0.05 sin 2t, -0.08) N m, the second wheel turning at 1 rad/s at first; joint "
    "rates by (12.78), heading and place by quadrature of (12.61) and (12.62), which are the "
    "grey lines. The book has no numbers; the data are the gallery's."
)


@item("delta-torques", "angeles", "three omni wheels under torques, section 12.5.2")
def delta_array() -> ItemResult:
    """Motion of three omni wheels under torques, the pose by (12.61) and (12.62)."""
    model = build("delta_array", **DELTA).derive().compile("interpreter")
    run = simulate(
        model, 6.0, start={"theta2_dot": 1.0}, input=DELTA_HISTORY, save_every=0.01, **EXACT
    )

    def torques(t: float) -> Array:
        return np.array([0.1, 0.05 * math.sin(2 * t), -0.08])

    theirs = printed.delta_array(DELTA, torques, [0.0, 1.0, 0.0], run.time)
    omega = printed.delta_turning(DELTA, torques, float(run["omega"][0]), run.time)
    rolled = DELTA["a"] * sum(run[f"theta{k}"] for k in (1, 2, 3))
    kept = 3 * DELTA["r"] * run["sigma"] + rolled
    checks = [
        vanishing(
            "our motion and that of (12.78), (12.61), (12.62) apart by",
            farthest(run, DELTA_NAMES, theirs),
            "rad/s, rad or m",
        ),
        vanishing(
            "omega and Exercise 12.7 apart by", apart(run["omega"], omega), "rad/s", within=1e-6
        ),
        vanishing(
            "3 r sigma + a (theta_1 + theta_2 + theta_3) changes by", apart(kept, kept[0]), "m"
        ),
    ]
    table = columns_of(run, (*DELTA_NAMES, "omega", "tau1", "tau2", "tau3"))
    table |= rows_beside(run, DELTA_NAMES, "closed form", theirs)
    return ItemResult(table, _delta_panels(run, theirs, omega), DELTA_CAPTION, checks)


def _delta_panels(run: Trajectory, theirs: Array, omega: Array) -> list[FigurePanel]:
    rates = {f"theta{k}_dot": rf"$\dot\theta_{k}$" for k in (1, 2, 3)}
    turning = {"sigma": r"$\sigma$", "omega": r"$\omega$"}
    return [
        torques_panel(run, 3),
        over_time("rates of the wheels", "rate [rad/s]", three_ways(run, rates, theirs[:3])),
        over_time(
            "heading and turning rate", "[rad, rad/s]", three_ways(run, turning, (theirs[3], omega))
        ),
        plan_view(
            "path of the mass centre",
            FigureCurve(run["x"], run["y"], "Axode"),
            FigureCurve(theirs[4], theirs[5], "book", "printed"),
        ),
    ]


ITEMS = (
    six_legs,
    flight_simulator,
    legs_recursion,
    caster_robot,
    two_casters,
    delta_array,
    mecanum,
)
