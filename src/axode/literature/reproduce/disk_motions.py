"""The rolling disk, main example of Saha and Angeles (1991): steady circle, wobble, energy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.literature.reproduce.item import Array, FigureCurve, FigurePanel, ItemResult
from axode.literature.reproduce.measuring import apart, largest
from axode.literature.reproduce.verdict import Check
from axode.model.model import Model
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

EXACT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "progress": False}
DISK = {"m": 2.0, "R": 0.3, "A": 0.045, "C": 0.09, "g": 9.81}  # none of it is printed
LEAN, TURN = 0.3, 1.2  # of the steady circle [rad], [rad/s]
TILT, SPIN = 1e-4, 8.0  # of the wobble [rad], [rad/s]
FREE = (0.3, (0.2, 8.0, 0.5))  # lean and angular velocity of the free motion [rad], [rad/s]
DURATION, SPACING = 3.0, 0.01  # of the free motion and of the wobble [s]
SAME = 1e-8  # [rad, m, J] between ours and the corrected equations
SMALL = 1e-3  # of its amplitude: error of the linear wobble
PRINT_STRAYS = 1.0  # [J] that the printed equations may gain or lose
TIME = "t [s]"
GREY = "closed form, or (35) corrected"


def disk() -> ItemResult:
    """Motions of the disk, by Axode, by the source's equations corrected and as printed."""
    model = build("rolling_disk", **DISK).derive().compile("interpreter")
    round_ = _run(model, LEAN, _steady(LEAN, TURN), 2 * math.pi / TURN)
    wobble = _run(model, TILT, _turning(TILT, SPIN, -DISK["C"] * SPIN * TILT / DISK["A"]), DURATION)
    free = _run(model, *FREE, DURATION)
    right, wrong = (
        printed.rolling_disk(DISK, *FREE, free.time, misprint=misprint)
        for misprint in (False, True)
    )
    energies = [printed.disk_energy(DISK, states) for states in (right, wrong)]
    linear = TILT * np.cos(_wobble_rate() * wobble.time)
    checks = [
        Check(
            "our free motion and that of (35) corrected apart by",
            max(apart(_lean(free), np.arcsin(right[2])), apart(_place(free), right[6:8])),
            0.0,
            SAME,
            "rad or m",
        ),
        Check(
            "energy of (35) as printed changes by",
            largest(energies[1] - energies[1][0]),
            0.0,
            SAME,
            "J",
            why="by erratum B-2 the contact point stands still, and a torque is missing; "
            f"corrected, it changes by {largest(energies[0] - energies[0][0]):.0e} J",
            explained=PRINT_STRAYS,
        ),
        Check("our energy, relative error", float(free.energy_error), 0.0, 1e-9),
        Check(
            "radius of the steady circle",
            _radius(round_),
            _circle_radius(),
            SAME,
            "m",
            "closed form",
        ),
        Check("lean on the steady circle changes by", apart(_lean(round_), LEAN), 0.0, SAME, "rad"),
        Check(
            "wobble and its linear form apart by, of its amplitude",
            apart(_lean(wobble), linear) / TILT,
            0.0,
            SMALL,
        ),
    ]
    table = {TIME: free.time, "lean [rad]": _lean(free), "energy [J]": _energy(free)}
    table |= {"x [m]": free["base.x"], "y [m]": free["base.y"]}
    for word, states, energy in (
        ("corrected", right, energies[0]),
        ("printed", wrong, energies[1]),
    ):
        table |= {f"lean {word} [rad]": np.arcsin(states[2]), f"energy {word} [J]": energy}
        table |= {f"x {word} [m]": states[6], f"y {word} [m]": states[7]}
    panels = _panels(free, round_, wobble, (right, wrong), energies, linear)
    return ItemResult(table, panels, CAPTION, checks)


CAPTION = (
    "The disk of section 5: a steady circle in a lean of 0.3 rad, upright rolling at 8 rad/s with "
    "a wobble of 0.1 mrad, and a free motion from a lean of 0.3 rad. The source prints no data; "
    "m = 2 kg, R = 0.3 m, A = 0.045 and C = 0.09 kg m² are the gallery's. Grey: equation (35) "
    "with the C of (33) and the motion of the contact point in it (errata B-1, B-2), or closed "
    "forms; dashed: (35) as printed."
)


def _panels(
    free: Trajectory,
    round_: Trajectory,
    wobble: Trajectory,
    states: tuple[Array, Array],
    energies: list[Array],
    linear: Array,
) -> list[FigurePanel]:
    t, (right, wrong) = free.time, states
    dashed = "(35) as printed"
    centre = _centre(round_)
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = centre[:, np.newaxis] + _circle_radius() * np.array([np.cos(angle), np.sin(angle)])
    return [
        FigurePanel(
            "steady circle of the centre",
            "x [m]",
            "y [m]",
            (
                FigureCurve(round_["base.x"], round_["base.y"], "Axode"),
                FigureCurve(circle[0], circle[1], GREY, "printed"),
            ),
            equal=True,
        ),
        FigurePanel(
            "wobble of upright rolling",
            TIME,
            "lean [mrad]",
            (
                FigureCurve(wobble.time, 1e3 * _lean(wobble), "Axode"),
                FigureCurve(wobble.time, 1e3 * linear, GREY, "printed"),
            ),
        ),
        FigurePanel(
            "free motion",
            TIME,
            "lean [rad]",
            (
                FigureCurve(t, _lean(free), "Axode"),
                FigureCurve(t, np.arcsin(right[2]), GREY, "printed"),
                FigureCurve(t, np.arcsin(wrong[2]), dashed, "misprint"),
            ),
        ),
        FigurePanel(
            "energy of the free motion",
            TIME,
            "energy [J]",
            (
                FigureCurve(t, _energy(free), "Axode"),
                FigureCurve(t, energies[0], GREY, "printed"),
                FigureCurve(t, energies[1], dashed, "misprint"),
            ),
        ),
    ]


# starts and closed forms --------------------------------------------------------------------------


def _turning(lean: float, spin: float, turn: float) -> tuple[float, float, float]:
    """Angular velocity of a disk that spins about its axis and turns about the vertical."""
    n = np.array([0.0, math.cos(lean), math.sin(lean)])
    x, y, z = spin * n + turn * (np.array([0.0, 0.0, 1.0]) - n[2] * n)
    return float(x), float(y), float(z)


def _steady(lean: float, turn: float) -> tuple[float, float, float]:
    """(C + m R²) spin turn cos - A turn² sin cos = -m g R sin: then the disk only precesses."""
    c, s = math.cos(lean), math.sin(lean)
    lever = DISK["m"] * DISK["g"] * DISK["R"]
    spin = (DISK["A"] * turn**2 * s * c - lever * s) / (
        (DISK["C"] + DISK["m"] * DISK["R"] ** 2) * turn * c
    )
    return _turning(lean, spin, turn)


def _circle_radius() -> float:
    """Speed of the centre over its turning rate: omega x (c - q)."""
    up = np.array([0.0, -math.sin(LEAN), math.cos(LEAN)])  # in the disk's plane
    velocity = np.cross(_steady(LEAN, TURN), DISK["R"] * up)
    return float(np.linalg.norm(velocity) / TURN)


def _wobble_rate() -> float:
    """(A + m R²) w² = C (C + m R²) spin² / A - m g R, of small leans of upright rolling."""
    A, C, m, R = (DISK[name] for name in ("A", "C", "m", "R"))
    return math.sqrt((C * (C + m * R**2) * SPIN**2 / A - m * DISK["g"] * R) / (A + m * R**2))


def _run(
    model: Model, lean: float, omega: tuple[float, float, float], duration: float
) -> Trajectory:
    """Motion from a lean about x and an angular velocity in the axes of the world."""
    c, s = math.cos(lean), math.sin(lean)
    q = {"base.qw": math.cos(lean / 2), "base.qx": math.sin(lean / 2), "base.z": DISK["R"] * c}
    x, y, z = omega
    speeds = dict(zip(model.independent, (x, c * y + s * z, c * z - s * y), strict=True))
    return simulate(model, duration, start=q | speeds, save_every=SPACING, **EXACT)


def _lean(run: Trajectory) -> Array:
    """Angle of the disk's axis above the horizontal."""
    w, x, y, z = (run[f"base.q{letter}"] for letter in "wxyz")
    lean: Array = np.arcsin(np.clip(2 * (y * z + w * x), -1.0, 1.0))
    return lean


def _place(run: Trajectory) -> Array:
    return np.array([run["base.x"], run["base.y"]])


def _energy(run: Trajectory) -> Array:
    return run["kinetic"] + run["potential"]


def _centre(run: Trajectory) -> Array:
    """Centre of the circle: points at equal times once around, the last of them the first."""
    whole = run.time < 2 * math.pi / TURN - SPACING / 2
    centre: Array = _place(run)[:, whole].mean(axis=1)
    return centre


def _radius(run: Trajectory) -> float:
    """Radius of the circle through three of its points."""
    a, b, c = (complex(*_place(run)[:, k]) for k in (0, len(run) // 3, 2 * len(run) // 3))
    area = abs(((b - a).conjugate() * (c - a)).imag) / 2
    return abs(a - b) * abs(b - c) * abs(c - a) / (4 * area)
