"""The rolling disk and the guided vehicle with a caster of Saha and Angeles (1991)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.literature.reproduce.item import (
    TIME,
    Array,
    Check,
    FigureCurve,
    FigurePanel,
    ItemResult,
    apart,
    columns_of,
    farthest,
    item,
    largest,
    misprinted,
    our_curves,
    over_time,
    plan_view,
    printed_curves,
    rows_beside,
    run_curves,
    vanishing,
)
from axode.model.model import Model
from axode.motions.paths import Path, circle, follow, parallel_lines
from axode.numerics.tolerances import HALF_DIGITS, NOTICEABLE
from axode.problems.feasible.feasible import feasible
from axode.problems.inputs.inputs import Sampled
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

# the rolling disk ---------------------------------------------------------------------------------

EXACT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "progress": False}
DISK = {"m": 2.0, "R": 0.3, "A": 0.045, "C": 0.09, "g": 9.81}  # none of it is printed
LEAN, TURN = 0.3, 1.2  # of the steady circle [rad], [rad/s]
TILT, SPIN = 1e-4, 8.0  # of the wobble [rad], [rad/s]
FREE = (0.3, (0.2, 8.0, 0.5))  # lean and angular velocity of the free motion [rad], [rad/s]
DISK_DURATION, DISK_SPACING = 3.0, 0.01  # of the free motion and of the wobble [s]
PRINT_GAINS = 1.0  # [J] that the printed equations may gain or lose
GREY = "closed form, or (35) corrected"


@item("disk", "saha_angeles", "rolling disk: circle, wobble, energy, section 5")
def disk() -> ItemResult:
    """Motions of the disk, by Axode, by the source's equations corrected and as printed."""
    model = build("rolling_disk", **DISK).derive().compile("interpreter")
    round_ = _disk_run(model, LEAN, _steady(LEAN, TURN), 2 * math.pi / TURN)
    wobble = _disk_run(
        model, TILT, _turning(TILT, SPIN, -DISK["C"] * SPIN * TILT / DISK["A"]), DISK_DURATION
    )
    free = _disk_run(model, *FREE, DISK_DURATION)
    right, wrong = (
        printed.rolling_disk(DISK, *FREE, free.time, misprint=misprint)
        for misprint in (False, True)
    )
    energies = [printed.disk_energy(DISK, states) for states in (right, wrong)]
    linear = TILT * np.cos(_wobble_rate() * wobble.time)
    checks = [
        vanishing(
            "our free motion and that of (35) corrected apart by",
            max(apart(_lean(free), np.arcsin(right[2])), apart(_place(free), right[6:8])),
            "rad or m",
        ),
        vanishing(
            "energy of (35) as printed changes by",
            largest(energies[1] - energies[1][0]),
            "J",
            why="by erratum B-2 the contact point stands still, and a torque is missing; "
            f"corrected, it changes by {largest(energies[0] - energies[0][0]):.0e} J",
            explained=PRINT_GAINS,
        ),
        vanishing("our energy, relative error", float(free.energy_error), within=1e-9),
        Check(
            "radius of the steady circle",
            _circumradius(round_),
            _circle_radius(),
            HALF_DIGITS,
            "m",
            "closed form",
        ),
        vanishing("lean on the steady circle changes by", apart(_lean(round_), LEAN), "rad"),
        vanishing(
            "wobble and its linear form apart by, of its amplitude",
            apart(_lean(wobble), linear) / TILT,
            within=NOTICEABLE,
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
    panels = _disk_panels(free, round_, wobble, (right, wrong), energies, linear)
    return ItemResult(table, panels, DISK_CAPTION, checks)


DISK_CAPTION = (
    "The disk of section 5: a steady circle in a lean of 0.3 rad, upright rolling at 8 rad/s with "
    "a wobble of 0.1 mrad, and a free motion from a lean of 0.3 rad. The source prints no data; "
    "m = 2 kg, R = 0.3 m, A = 0.045 and C = 0.09 kg m² are the gallery's. Grey: equation (35) "
    "with the C of (33) and the motion of the contact point in it (errata B-1, B-2), or closed "
    "forms; dashed: (35) as printed."
)


def _disk_panels(
    free: Trajectory,
    round_: Trajectory,
    wobble: Trajectory,
    states: tuple[Array, Array],
    energies: list[Array],
    linear: Array,
) -> list[FigurePanel]:
    centre = _centre(round_)
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = centre[:, np.newaxis] + _circle_radius() * np.array([np.cos(angle), np.sin(angle)])

    def panel(title: str, y: str, t: Array, ours: Array, *theirs: Array) -> FigurePanel:
        curves = [
            FigureCurve(t, ours, "Axode"),
            *printed_curves(t, theirs[:1], GREY),
            *misprinted(t, theirs[1:], "(35) as printed"),
        ]
        return over_time(title, y, curves)

    leans = [np.arcsin(x[2]) for x in states]
    return [
        plan_view(
            "steady circle of the centre",
            FigureCurve(round_["base.x"], round_["base.y"], "Axode"),
            FigureCurve(circle[0], circle[1], GREY, "printed"),
        ),
        panel(
            "wobble of upright rolling",
            "lean [mrad]",
            wobble.time,
            1e3 * _lean(wobble),
            1e3 * linear,
        ),
        panel("free motion", "lean [rad]", free.time, _lean(free), *leans),
        panel("energy of the free motion", "energy [J]", free.time, _energy(free), *energies),
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


def _disk_run(
    model: Model, lean: float, omega: tuple[float, float, float], duration: float
) -> Trajectory:
    """Motion from a lean about x and an angular velocity in the axes of the world."""
    c, s = math.cos(lean), math.sin(lean)
    q = {"base.qw": math.cos(lean / 2), "base.qx": math.sin(lean / 2), "base.z": DISK["R"] * c}
    x, y, z = omega
    speeds = dict(zip(model.independent, (x, c * y + s * z, c * z - s * y), strict=True))
    return simulate(model, duration, start=q | speeds, save_every=DISK_SPACING, **EXACT)


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
    whole = run.time < 2 * math.pi / TURN - DISK_SPACING / 2
    centre: Array = _place(run)[:, whole].mean(axis=1)
    return centre


def _circumradius(run: Trajectory) -> float:
    """Radius of the circle through three of its points."""
    a, b, c = (complex(*_place(run)[:, k]) for k in (0, len(run) // 3, 2 * len(run) // 3))
    area = abs(((b - a).conjugate() * (c - a)).imag) / 2
    return abs(a - b) * abs(b - c) * abs(c - a) / (4 * area)


# the guided vehicle -------------------------------------------------------------------------------

GRAVITY = 9.81  # [m/s^2]
RADIUS, TURNING = 2.0, 0.4  # of the mass centre's circle [m], of the platform [rad/s]
BETWEEN, CURVE, LEAD, SPEED = 0.6, 2.4, 0.8, 0.8  # the two lines [m], [m/s]
SPACING = 0.01  # [s]
STRAYS = NOTICEABLE  # [m] that torques joined by lines, a hundred a second, may lead off the path
BEGINNING = 2.0  # [s] of the circle that is drawn; nothing changes later
TRAILING = -math.pi / 2  # psi, when the caster runs ahead of the driven wheels
FRICTION = 0.6
PRINT_OFF = 1.0  # [N m] that three errata may be off by
WHEELS = ("theta1", "theta2")
POSE, RATES = ("x", "y", "phi", "C.x", "C.y"), ("theta1_dot", "theta2_dot", "theta3_dot")


@item("agv-circle", "saha_angeles", "guided vehicle on a circle, section 6")
def on_circle() -> ItemResult:
    """Once around a circle at constant speed."""
    path = circle(_axle_radius(), speed=TURNING * _axle_radius())
    model, run = _driven(path)
    psi = _steady_caster()
    rates = np.array([run.final[f"{name}_dot"] for name in WHEELS])
    torques = printed.caster(printed.CASTER, psi, rates)[1] @ rates
    checks = [
        *(
            Check(
                f"steady torque {k}",
                float(run[f"tau{k}"][-1]),
                float(torques[k - 1]),
                1e-8,
                "N m",
                "closed form",
            )
            for k in (1, 2)
        ),
        Check("steady caster angle", run.final["psi"], psi, 1e-8, "rad", "closed form"),
        Check("circle that the mass centre drives", _radius(run), RADIUS, 1e-8, "m", "asked for"),
    ]
    words = f"A circle of {RADIUS:g} m for the mass centre, at {TURNING:g} rad/s"
    return _outcome(model, path, run, checks, words, BEGINNING)


@item("agv-lines", "saha_angeles", "guided vehicle from one line to a parallel one, section 6")
def on_lines() -> ItemResult:
    """From one straight line to another beside it."""
    path = parallel_lines(BETWEEN, CURVE, speed=SPEED, lead=LEAD)
    model, run = _driven(path)
    side = float(run["y"][-1] - run["y"][0])
    checks = [
        Check("distance between the lines", side, BETWEEN, 1e-8, "m", "asked for"),
        vanishing(
            "rates at either end",
            largest([run[f"{name}_dot"][[0, -1]] for name in WHEELS]),
            "rad/s",
        ),
    ]
    words = (
        f"Two lines {BETWEEN:g} m apart joined by a curve {CURVE:g} m long, "
        f"{SPEED:g} m/s on average, from rest to rest"
    )
    return _outcome(model, path, run, checks, words)


def _driven(path: Path) -> tuple[Model, Trajectory]:
    """The motion along a path; the caster runs ahead, as in the source, so that -y is forward."""
    equations = build("caster_robot", **printed.CASTER).derive(
        independent=("theta1_dot", "theta2_dot")
    )
    model = equations.compile("interpreter")
    run = follow(model, path, forward="-y", start={"psi": TRAILING}, save_every=SPACING)
    return model, run


def _axle_radius() -> float:
    """Radius of the circle that the axle's midpoint drives."""
    return math.sqrt(RADIUS**2 - printed.CASTER["a"] ** 2)


def _radius(run: Trajectory) -> float:
    """Radius of the mass centre's circle about the path's centre."""
    return float(np.hypot(run["C.x"], run["C.y"] - _axle_radius()).mean())


def _steady_caster() -> float:
    """The angle at which the caster does not turn: -(a + b) omega sin psi + v cos psi = d omega."""
    along, across = -TURNING * _axle_radius(), (printed.CASTER["a"] + printed.CASTER["b"]) * TURNING
    lag = math.acos(printed.CASTER["d"] * TURNING / math.hypot(along, across))
    return math.atan2(-across, along) + lag


def _outcome(
    model: Model,
    path: Path,
    run: Trajectory,
    checks: list[Check],
    words: str,
    until: float | None = None,
) -> ItemResult:
    ground = feasible(model, run, friction=FRICTION)
    rates, angles, theirs = printed.caster_on_path(printed.CASTER, path.pose, TRAILING, run.time)
    printed_torques = printed.caster_on_path(
        printed.CASTER, path.pose, TRAILING, run.time, misprints=printed.CASTER_ERRATA
    )[2]
    back = _driven_back(model, run)
    weight = GRAVITY * sum(printed.CASTER[part] for part in ("mw", "mw", "mc", "mb", "mp"))
    checks = [
        vanishing(
            "our torques and those of (38) apart by", farthest(run, ("tau1", "tau2"), theirs), "N m"
        ),
        vanishing(
            "our torques and those of (38) with C as Angeles prints it apart by",
            farthest(run, ("tau1", "tau2"), printed_torques),
            "N m",
            why="(38) leaves C to the reader, and the printed one has no Coriolis forces of the "
            "platform by erratum A-7, and slips by A-8 and A-9",
            explained=PRINT_OFF,
        ),
        vanishing(
            "our rates of the wheels and those of (36) apart by",
            farthest(run, ("theta1_dot", "theta2_dot"), rates),
            "rad/s",
        ),
        vanishing("our caster angle and theirs apart by", apart(run["psi"], angles), "rad"),
        vanishing(
            "velocity of the path left over", largest(run["path.residual"]), "m/s", within=1e-10
        ),
        vanishing(
            "direct dynamics under these torques off the path by",
            farthest(run, ("x", "y"), (back["x"], back["y"])),
            "m",
            within=STRAYS,
        ),
        vanishing(
            "loads less the weight", apart(ground.normal.sum(axis=-1), weight), "N", within=1e-8
        ),
        *checks,
    ]
    table = columns_of(run, (*POSE, *RATES, "psi", "psi_dot", "tau1", "tau2"))
    for kind in ("longitudinal", "lateral", "normal"):
        forces = getattr(ground, kind)
        table |= {f"{wheel} {kind} [N]": forces[:, k] for k, wheel in enumerate(ground.wheels)}
    table |= rows_beside(run, ("tau1", "tau2"), "closed form", theirs)
    caption = (
        f"{words}, caster ahead of the driven wheels, beginning with the caster straight. The "
        "source describes both paths and prints no data and no results; robot and paths are chosen "
        "here. Grey: the source's steps (36) to (38), from the path alone, with a C free of errata "
        "(A-7 to A-9); thin dashes: with C as Angeles prints it. Side forces of the two driven "
        "wheels, which statics does not determine, are shared evenly."
    )
    panels = _panels(run, (theirs, printed_torques), ground, until)
    return ItemResult(table, panels, caption, checks)


def _driven_back(model: Model, run: Trajectory) -> Trajectory:
    """The motion that the torques bring about."""
    torques = {f"tau{k}": run[f"tau{k}"] for k in (1, 2)}
    names = (*model.coordinates, *model.independent)
    start = {name: float(run[name][0]) for name in names}
    period = float(run.time[1] - run.time[0])
    return simulate(
        model,
        float(run.time[-1]),
        start=start,
        input=Sampled(torques, period, between="linear"),
        save_every=period,
        progress=False,
    )


def _panels(
    run: Trajectory, theirs: tuple[Array, Array], ground: Any, until: float | None
) -> list[FigurePanel]:
    """Panels of a path; their torques by C corrected and as printed."""
    window = (0.0, until) if until else None
    rates = {f"theta{k}_dot": rf"$\dot\theta_{k}$" for k in (1, 2, 3)}
    torques = [
        *run_curves(run, {f"tau{k}": rf"$\tau_{k}$" for k in (1, 2)}),
        *printed_curves(run.time, theirs[0]),
        *misprinted(run.time, theirs[1], "C as printed"),
    ]

    def forces(values: Array) -> list[FigureCurve]:
        return our_curves(run.time, values.T, ground.wheels)

    return [
        plan_view(
            "path",
            FigureCurve(run["x"], run["y"], "axle's midpoint"),
            FigureCurve(run["C.x"], run["C.y"], "mass centre"),
        ),
        *(
            over_time(title, y, curves, window=window)
            for title, y, curves in (
                ("rates of the wheels", "rate [rad/s]", run_curves(run, rates)),
                ("caster", r"$\psi$ [rad]", run_curves(run, {"psi": ""})),
                ("torques", "torque [N m]", torques),
                ("contact forces along the wheels", "force [N]", forces(ground.longitudinal)),
                ("contact forces across the wheels", "force [N]", forces(ground.lateral)),
            )
        ),
    ]


ITEMS = (disk, on_circle, on_lines)
