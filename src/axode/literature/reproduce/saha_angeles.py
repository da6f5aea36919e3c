"""The rolling disk and the guided vehicle with a caster of Saha and Angeles (1991)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.literature.reproduce.disk_motions import disk
from axode.literature.reproduce.item import Array, FigureCurve, FigurePanel, Item, ItemResult
from axode.literature.reproduce.measuring import apart, largest
from axode.literature.reproduce.verdict import Check
from axode.model.model import Model
from axode.motions.paths import Path, circle, follow, parallel_lines
from axode.problems.feasible.feasible import feasible
from axode.problems.inputs.inputs import Sampled
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory

GRAVITY = 9.81  # [m/s^2]
RADIUS, TURNING = 2.0, 0.4  # of the mass centre's circle [m], of the platform [rad/s]
BETWEEN, CURVE, LEAD, SPEED = 0.6, 2.4, 0.8, 0.8  # the two lines [m], [m/s]
SPACING = 0.01  # [s]
STRAYS = 1e-3  # [m] that torques joined by lines, a hundred a second, may lead off the path
BEGINNING = 2.0  # [s] of the circle that is drawn; nothing changes later
TRAILING = -math.pi / 2  # psi, when the caster runs ahead of the driven wheels
FRICTION = 0.6
PRINT_OFF = 1.0  # [N m] that three errata may be off by
SAME = 1e-7  # [N m, rad/s, rad] between ours and the source's steps
TIME = "t [s]"
WHEELS = ("theta1", "theta2")


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


def on_lines() -> ItemResult:
    """From one straight line to another beside it."""
    path = parallel_lines(BETWEEN, CURVE, speed=SPEED, lead=LEAD)
    model, run = _driven(path)
    side = float(run["y"][-1] - run["y"][0])
    checks = [
        Check("distance between the lines", side, BETWEEN, 1e-8, "m", "asked for"),
        Check(
            "rates at either end",
            largest([run[f"{name}_dot"][[0, -1]] for name in WHEELS]),
            0.0,
            1e-8,
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
    weight = GRAVITY * (
        2 * printed.CASTER["mw"]
        + printed.CASTER["mc"]
        + printed.CASTER["mb"]
        + printed.CASTER["mp"]
    )
    checks = [
        Check(
            "our torques and those of (38) apart by",
            max(apart(run[f"tau{k}"], theirs[k - 1]) for k in (1, 2)),
            0.0,
            SAME,
            "N m",
        ),
        Check(
            "our torques and those of (38) with C as Angeles prints it apart by",
            max(apart(run[f"tau{k}"], printed_torques[k - 1]) for k in (1, 2)),
            0.0,
            SAME,
            "N m",
            why="(38) leaves C to the reader, and the printed one has no Coriolis forces of the "
            "platform by erratum A-7, and slips by A-8 and A-9",
            explained=PRINT_OFF,
        ),
        Check(
            "our rates of the wheels and those of (36) apart by",
            max(apart(run[f"{name}_dot"], row) for name, row in zip(WHEELS, rates, strict=True)),
            0.0,
            SAME,
            "rad/s",
        ),
        Check("our caster angle and theirs apart by", apart(run["psi"], angles), 0.0, SAME, "rad"),
        Check("velocity of the path left over", largest(run["path.residual"]), 0.0, 1e-10, "m/s"),
        Check(
            "direct dynamics under these torques off the path by",
            max(apart(run[name], back[name]) for name in ("x", "y")),
            0.0,
            STRAYS,
            "m",
        ),
        Check("loads less the weight", apart(ground.normal.sum(axis=-1), weight), 0.0, 1e-8, "N"),
        *checks,
    ]
    table = _table(run, ground, theirs)
    caption = (
        f"{words}, caster ahead of the driven wheels, beginning with the caster straight. The "
        "source describes both paths and prints no data and no results; robot and paths are chosen "
        "here. Grey: the source's steps (36) to (38), from the path alone, with a C free of errata "
        "(A-7 to A-9); thin dashes: with C as Angeles prints it. Side forces of the two driven "
        "wheels, which statics does not determine, are shared evenly."
    )
    return ItemResult(
        table, _panels(run, (theirs, printed_torques), ground, until), caption, checks
    )


def _table(run: Trajectory, ground: Any, theirs: Array) -> dict[str, Array]:
    names = (
        "x",
        "y",
        "phi",
        "C.x",
        "C.y",
        "theta1_dot",
        "theta2_dot",
        "theta3_dot",
        "psi",
        "psi_dot",
        "tau1",
        "tau2",
    )
    table = {TIME: run.time} | {f"{name} [{run.unit(name)}]": run[name] for name in names}
    for kind, forces in (
        ("longitudinal", ground.longitudinal),
        ("lateral", ground.lateral),
        ("normal", ground.normal),
    ):
        table |= {f"{wheel} {kind} [N]": forces[:, k] for k, wheel in enumerate(ground.wheels)}
    table |= {f"tau{k} closed form [N m]": row for k, row in enumerate(theirs, start=1)}
    return table


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
    t, window = run.time, (0.0, until) if until else None
    path = (
        FigureCurve(run["x"], run["y"], "axle's midpoint"),
        FigureCurve(run["C.x"], run["C.y"], "mass centre"),
    )
    rates = tuple(FigureCurve(t, run[f"theta{k}_dot"], rf"$\dot\theta_{k}$") for k in (1, 2, 3))
    torques = tuple(FigureCurve(t, run[f"tau{k}"], rf"$\tau_{k}$") for k in (1, 2))
    grey = tuple(FigureCurve(t, row, role="printed") for row in theirs[0])
    dashed = tuple(
        FigureCurve(t, row, "C as printed" * (k == 0), "misprint", like=k)
        for k, row in enumerate(theirs[1])
    )

    def forces(values: Array) -> tuple[FigureCurve, ...]:
        return tuple(FigureCurve(t, values[:, k], wheel) for k, wheel in enumerate(ground.wheels))

    return [
        FigurePanel("path", "x [m]", "y [m]", path, equal=True),
        FigurePanel("rates of the wheels", TIME, "rate [rad/s]", rates, window=window),
        FigurePanel("caster", TIME, r"$\psi$ [rad]", (FigureCurve(t, run["psi"]),), window=window),
        FigurePanel("torques", TIME, "torque [N m]", (*torques, *grey, *dashed), window=window),
        FigurePanel(
            "contact forces along the wheels",
            TIME,
            "force [N]",
            forces(ground.longitudinal),
            window=window,
        ),
        FigurePanel(
            "contact forces across the wheels",
            TIME,
            "force [N]",
            forces(ground.lateral),
            window=window,
        ),
    ]


ITEMS = (
    Item("disk", "saha_angeles", "rolling disk: circle, wobble, energy, section 5", disk),
    Item("agv-circle", "saha_angeles", "guided vehicle on a circle, section 6", on_circle),
    Item(
        "agv-lines",
        "saha_angeles",
        "guided vehicle from one line to a parallel one, section 6",
        on_lines,
    ),
)
