"""Robots with two casters and with any number of Mecanum wheels, after Angeles, chapter 12."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.literature.reproduce.item import (
    Array,
    Check,
    FigureCurve,
    FigurePanel,
    ItemResult,
    apart,
    columns_of,
    farthest,
    item,
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
from axode.model.model import Model
from axode.numerics.rank import singular_values, singular_vectors
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "progress": False}
PRINT_STRAYS = 1.0  # [rad/s, rad, m] that three errata may lead astray in 4 s
SPACING = 0.01  # [s]


def _path(run: Trajectory, x: str, y: str, rows: Array, wrong: Array | None = None) -> FigurePanel:
    paths = [
        FigureCurve(run[x], run[y], "Axode"),
        FigureCurve(rows[0], rows[1], "closed form", "printed"),
    ]
    if wrong is not None:
        paths.append(FigureCurve(wrong[0], wrong[1], "as printed", "misprint"))
    return plan_view("path of the mass centre", *paths)


# two casters, Exercise 12.5 -----------------------------------------------------------------------

SWIVELS = (1.0, -0.6)  # [rad] psi_1 and psi_2 at the start
CASTERS_END = 4.0  # [s]
CASTER_COLUMNS = ("theta1_dot", "theta2_dot", "psi1", "psi2", "phi", "C.x", "C.y")
CASTERS_CAPTION = (
    "tau_1 = 0.3 cos 2t and tau_2 = 0.2 sin 3t N m from rest, the casters at psi_1 = 1 and psi_2 = "
    "-0.6, their pivots half a track to either side. Exercise 12.5 asks for the model and has no "
    "numbers; the data are the gallery's. Grey: the closed form of section 12.5.1, errata "
    "corrected, with the terms of both casters; dashed: its terms as printed."
)


@item("two-casters", "angeles", "robot with two casters under torques, Exercise 12.5")
def two_casters() -> ItemResult:
    """Motion of the robot with two casters under torques, and its characteristic lengths."""
    p, track = printed.CASTER, printed.CASTER["l"]
    offsets = (track / 2, -track / 2)
    robot = build("two_caster_robot", **p, X1=offsets[0], X2=offsets[1])
    model = robot.derive(independent=("theta1_dot", "theta2_dot")).compile("interpreter")
    run = simulate(
        model,
        CASTERS_END,
        start={"psi1": SWIVELS[0], "psi2": SWIVELS[1]},
        input={"tau1": "0.3 * cos(2 * t)", "tau2": "0.2 * sin(3 * t)"},
        save_every=SPACING,
        **EXACT,
    )

    def torques(t: float) -> Array:
        return np.array([0.3 * math.cos(2 * t), 0.2 * math.sin(3 * t)])

    theirs = printed.casters_driven(p, torques, SWIVELS, offsets, run.time)
    wrong = printed.casters_driven(
        p, torques, SWIVELS, offsets, run.time, misprints=printed.CASTER_ERRATA
    )
    lengths = {
        "the axle with L = l/2": (track / 2, 0.0),
        "the mass centre with L = sqrt(l²/4 - a²)": (math.sqrt(track**2 / 4 - p["a"] ** 2), p["a"]),
    }
    checks = [
        vanishing(
            "our motion and that of the closed form apart by",
            farthest(run, CASTER_COLUMNS, theirs),
            "rad/s, rad or m",
        ),
        vanishing(
            "our motion and that of the terms of section 12.5.1 as printed apart by",
            farthest(run, CASTER_COLUMNS, wrong),
            "rad/s, rad or m",
            why="their platform has no Coriolis forces by erratum A-7, and there are the slips A-8 "
            "and A-9",
            explained=PRINT_STRAYS,
        ),
        vanishing("energy lost by the integration, relative", float(run.energy_error)),
        *(
            Check(
                f"condition number of the map to (L omega, velocity) of {words}",
                _condition(model, length, behind),
                1.0,
                1e-12,
                of="isotropic",
            )
            for words, (length, behind) in lengths.items()
        ),
    ]
    table = columns_of(run, CASTER_COLUMNS)
    table |= rows_beside(run, CASTER_COLUMNS, "closed form", theirs)
    return ItemResult(table, _caster_panels(run, theirs, wrong), CASTERS_CAPTION, checks)


def _condition(model: Model, length: float, behind: float) -> float:
    """Condition number of the map from the wheels' rates to L omega and the velocity of a point.

    The point lies on the platform's axis, so far behind the axle; for the characteristic length all
    rates of one size give twists of one size, and the number is 1.
    """
    platform = model.bodies.index("platform")
    twists = np.array([model.twists(model.home, unit)[platform] for unit in np.eye(2)]).T
    ahead = printed.CASTER["a"] - behind  # from the mass centre to the point, along j
    velocity = twists[3:5] + np.outer([-ahead, 0.0], twists[2])
    singular = singular_values(np.vstack([length * twists[2], velocity]))
    return float(singular[0] / singular[1])


def _caster_panels(run: Trajectory, theirs: Array, wrong: Array) -> list[FigurePanel]:
    rates = {"theta1_dot": r"$\dot\theta_1$", "theta2_dot": r"$\dot\theta_2$"}
    angles = {"psi1": r"$\psi_1$", "psi2": r"$\psi_2$", "phi": r"$\phi$"}
    return [
        torques_panel(run, 2),
        over_time(
            "rates of the driven wheels",
            "rate [rad/s]",
            three_ways(run, rates, theirs[:2], wrong[:2]),
        ),
        over_time(
            "casters and heading", "angle [rad]", three_ways(run, angles, theirs[2:5], wrong[2:5])
        ),
        _path(run, "C.x", "C.y", theirs[5:], wrong[5:]),
    ]


# any number of Mecanum wheels, derived here -------------------------------------------------------

# x, y, direction of the axis, roller angle: five wheels without any symmetry
WHEELS = (
    (0.22, 0.16, math.pi / 2, math.pi / 4),
    (0.20, -0.15, math.pi / 2, -math.pi / 4),
    (-0.18, 0.17, 1.3, -math.pi / 4),
    (-0.21, -0.14, 1.8, math.pi / 3),
    (0.02, 0.25, 0.2, math.pi / 2),
)
MECANUM = {"a": 0.05, "mw": 0.4, "mp": 6.0, "I": 0.0005, "J": 0.0003, "H": 0.12, "c": 0.01}
MECANUM_TORQUES = {
    "tau1": "0.12",
    "tau2": "0.10 * sin(2 * t)",
    "tau3": "-0.06 * cos(t)",
    "tau4": "0.05",
    "tau5": "0.08 * sin(3 * t)",
}
MECANUM_END = 6.0  # [s]
MECANUM_COLUMNS = ("omega", "vx", "vy", "sigma", "x", "y")
MECANUM_CAPTION = (
    "Five Mecanum wheels, no two alike, with rollers at 45, -45, -45, 60 and 90 degrees to their "
    "axes, under five torques from rest. Chapter 12 treats three wheels at 90 degrees and refers "
    "for others to section 10.5.2, which is not among the documents: the model is derived here, "
    "places and masses are chosen. Grey: Newton's and Euler's equations on the platform's speeds."
)


@item(
    "mecanum-torques",
    "angeles",
    "five Mecanum wheels under torques, in the manner of section 12.5.2",
)
def mecanum() -> ItemResult:
    """Motion of a platform on five Mecanum wheels, and the forces along their rollers."""
    robot = build("mecanum_platform", wheels=WHEELS, **MECANUM)
    model = robot.derive(independent=("omega", "vx", "vy")).compile("interpreter")
    run = simulate(model, MECANUM_END, input=MECANUM_TORQUES, save_every=SPACING, **EXACT)

    def torques(t: float) -> Array:
        waves = (0.12, 0.10 * math.sin(2 * t), -0.06 * math.cos(t), 0.05, 0.08 * math.sin(3 * t))
        return np.array(waves)

    theirs, forces = printed.mecanum_driven(MECANUM, WHEELS, torques, run.time)
    ours = _roller_forces(model, run)
    checks = [
        vanishing(
            "our motion and that of the closed form apart by",
            farthest(run, MECANUM_COLUMNS, theirs),
            "rad/s, m/s, rad or m",
        ),
        vanishing("our forces along the rollers and theirs apart by", apart(ours, forces), "N"),
        vanishing(
            "accelerations under torques that only strain", _strain(model), "m/s²", within=1e-11
        ),
        vanishing("energy lost by the integration, relative", float(run.energy_error)),
    ]
    names = tuple(f"theta{k}_dot" for k in range(1, len(WHEELS) + 1))
    table = columns_of(run, (*MECANUM_COLUMNS, *names))
    table |= rows_beside(run, MECANUM_COLUMNS, "closed form", theirs)
    table |= {f"roller force {k} [N]": row for k, row in enumerate(ours, start=1)}
    return ItemResult(table, _mecanum_panels(run, theirs, ours, forces), MECANUM_CAPTION, checks)


def _roller_forces(model: Model, run: Trajectory) -> Array:
    """Forces along the rollers that touch the ground, (wheels, samples)."""
    rows = [model.rows.index(f"wheel{k}.roller") for k in range(1, len(WHEELS) + 1)]
    return np.asarray(model.multipliers(*states_of(model, run)))[:, rows].T


def _strain(model: Model) -> float:
    """Largest change of the accelerations by torques that have no effect by the closed form."""
    still, count = np.zeros(3), len(WHEELS)
    unit = [printed.mecanum(MECANUM, WHEELS, still, torque)[0] for torque in np.eye(count)]
    idle = singular_vectors(np.array(unit).T)[2][3:]  # torques: count - 3 combinations
    moved = [model.forward_dynamics(model.home, still, torque) for torque in idle]
    return float(np.abs(moved).max())


def _mecanum_panels(
    run: Trajectory, theirs: Array, ours: Array, forces: Array
) -> list[FigurePanel]:
    speeds = {"vx": "$v_x$", "vy": "$v_y$"}
    turning = {"omega": r"$\omega$", "sigma": r"$\sigma$"}
    rollers = our_curves(run.time, ours, (f"wheel {k}" for k in range(1, len(ours) + 1)))
    grey = printed_curves(run.time, forces)
    return [
        over_time("velocity in the platform", "[m/s]", three_ways(run, speeds, theirs[1:3])),
        over_time(
            "turning rate and heading", "[rad/s, rad]", three_ways(run, turning, theirs[[0, 3]])
        ),
        over_time("forces along the rollers", "force [N]", (*rollers, *grey)),
        _path(run, "x", "y", theirs[4:]),
    ]
