"""The wheeled pendulum Quasimoro: three manoeuvres, Figs 2 to 13 of Staicu (2011)."""

from __future__ import annotations

import math
from typing import Any

import axode.literature.reproduce.printed as printed
from axode.gallery import build
from axode.literature.acceptance.locked_coordinates import Hold, Holding
from axode.literature.reproduce.item import Array, FigureCurve, FigurePanel, Item, ItemResult, Level
from axode.literature.reproduce.measuring import apart, at, largest, swing
from axode.literature.reproduce.quasimoro_locked import DATA, locked, operations
from axode.literature.reproduce.verdict import Check
from axode.mechanism.values.expressions import parse_scalar
from axode.model.model import Model
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.equations import Equations

ANGLES = ("theta1", "theta2", "theta3")
PULSE, END = 1.0, 90.0  # [s] of the torques, of a run
SHOWN = 4.0  # [s] that the source's figures cover
TORQUE = 0.1  # [N m]
PUBLISHED = 0.0129  # [rad] amplitude of theta_3 that the source reads off Fig. 5
SPACING = 0.01  # [s] between samples
EXACT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "progress": False}
SAME = 1e-8  # [rad, N m] between our curve and the one of the printed equations
TIME = "t [s]"


def _derive() -> tuple[Equations, Model]:
    equations = build("wheeled_pendulum", **DATA).derive(
        independent=("phi1_dot", "phi2_dot", "theta3_dot")
    )
    return equations, equations.compile("interpreter")


def pulse(t: float) -> float:
    """Equation (19): half a sine wave in the first second."""
    return TORQUE * math.sin(math.pi * t) if t < PULSE else 0.0


def _run(model: Model, during: Any, after: Any = None) -> Trajectory:
    """90 s from rest; the torques change their law after the first second."""
    first = simulate(model, PULSE, input=during, save_every=SPACING, **EXACT)
    rest = simulate(
        model, END - PULSE, start=first, input=after, t0=PULSE, save_every=SPACING, **EXACT
    )
    return first + rest


def _panel(
    number: int, words: str, y: str, end: float, *curves: FigureCurve, **more: Any
) -> FigurePanel:
    shown = tuple(FigureCurve(c.x[c.x <= end], c.y[c.x <= end], c.label, c.role) for c in curves)
    return FigurePanel(f"Fig. {number}: {words}", TIME, y, shown, window=(0.0, end), **more)


def _both(run: Trajectory, name: str, theirs: Array) -> tuple[FigureCurve, FigureCurve]:
    return (
        FigureCurve(run.time, run[name], "Axode"),
        FigureCurve(run.time, theirs, "printed equations", "printed"),
    )


# 1. rectilinear ----------------------------------------------------------------------------------


def straight() -> ItemResult:
    """Equal torques on both wheels: Figs 2 to 5."""
    _, model = _derive()
    wave = f"{TORQUE} * sin(pi * t)"
    run = _run(model, {"M1": wave, "M2": wave})
    theirs = printed.quasimoro_driven(DATA, lambda t: (pulse(t), pulse(t)), run.time, PULSE)
    wheel, body = _both(run, "theta1", theirs[0]), _both(run, "theta3", theirs[2])
    level = (Level(PUBLISHED, f"published ±{PUBLISHED} rad"), Level(-PUBLISHED))
    amplitude = swing(run.time, run["theta3"], PULSE)
    panels = [
        _panel(2, "actuated rectilinear motion", r"$\theta_1$ [rad]", PULSE, *wheel),
        _panel(3, "rectilinear motion", r"$\theta_1$ [rad]", SHOWN, *wheel),
        _panel(4, "actuated rectilinear motion", r"$\theta_3$ [rad]", PULSE, *body),
        _panel(
            5,
            "rectilinear motion",
            r"$\theta_3$ [rad]",
            SHOWN,
            *body,
            levels=level,
            inset=((1.6, 1.9), (0.0126, 0.0133)),
            heights=(-0.018, 0.05),
        ),
    ]
    caption = (
        _caption("M1 = M2 = 0.1 sin(pi t) N m") + " With equal torques they are (37) and (38)."
    )
    checks = [
        Check(
            "amplitude of theta_3",
            amplitude,
            PUBLISHED,
            0.0005 * PUBLISHED,
            "rad",
            "printed",
            why="the printed equations with the printed data give our number too; 0.0129 needs "
            "g = 9.91 or A33 = 0.395, or an integrator that loses energy (erratum C-7)",
            explained=0.03 * PUBLISHED,
        ),
        _agreement(run, theirs),
        Check("theta_1 - theta_2", apart(run["theta1"], run["theta2"]), 0.0, SAME, "rad"),
    ]
    return ItemResult(_table(run, theirs), panels, caption, checks)


def _agreement(run: Trajectory, theirs: Array, ours: tuple[str, ...] = ANGLES) -> Check:
    far = max(apart(run[name], row) for name, row in zip(ours, theirs, strict=False))
    return Check("our angles and those of (23) to (29), 90 s, apart by", far, 0.0, SAME, "rad")


def _table(run: Trajectory, theirs: Array) -> dict[str, Array]:
    names = (*ANGLES, *(f"{name}_dot" for name in ANGLES), "x", "y", "psi", "M1", "M2")
    table = {TIME: run.time} | {f"{name} [{run.unit(name)}]": run[name] for name in names}
    return table | {
        f"{name} printed equations [rad]": row for name, row in zip(ANGLES, theirs, strict=False)
    }


def _caption(torques: str) -> str:
    return (
        f"{torques} for 1 s as in (19), from rest, 90 s in all. m = 0.5 kg, M = 5 kg, J1 = 0.2, "
        "J2 = 0.4 kg m², r = 0.3 m, d = 0.2 m, r/l = 0.5 as printed; J3 = J2 and g = 9.81 m/s² "
        "are not. Grey: equations (23) to (29) as printed, integrated by SciPy."
    )


# 2. pure rotation --------------------------------------------------------------------------------


def spin() -> ItemResult:
    """Opposite torques: Figs 6 and 7."""
    _, model = _derive()
    run = _run(model, {"M1": f"{TORQUE} * sin(pi * t)", "M2": f"-{TORQUE} * sin(pi * t)"})
    theirs = printed.quasimoro_driven(DATA, lambda t: (pulse(t), -pulse(t)), run.time, PULSE)
    p = DATA
    inertia = p["m"] * p["r"] ** 2 * (1.5 + p["rho"] ** 2) + 2 * p["rho"] ** 2 * p["J1"]  # (39)
    wheel = _both(run, "theta1", theirs[0])
    panels = [
        _panel(6, "actuated pure rotation", r"$\theta_1$ [rad]", PULSE, *wheel),
        _panel(7, "pure rotation", r"$\theta_1$ [rad]", SHOWN, *wheel),
    ]
    end = run.final
    checks = [
        Check(
            "theta_1 after 1 s",
            at(run, "theta1", PULSE),
            TORQUE / (math.pi * inertia),
            SAME,
            "rad",
            "equation (39)",
        ),
        Check(
            "steady rate of theta_1",
            end["theta1_dot"],
            2 * TORQUE / (math.pi * inertia),
            SAME,
            "rad/s",
            "equation (39)",
        ),
        Check(
            "psi + 2 rho theta_1",
            apart(run["psi"], -2 * p["rho"] * run["theta1"]),
            0.0,
            SAME,
            "rad",
        ),
        Check("theta_3, which stays", largest(run["theta3"]), 0.0, SAME, "rad"),
        _agreement(run, theirs),
    ]
    return ItemResult(_table(run, theirs), panels, _caption("M1 = -M2 = 0.1 sin(pi t) N m"), checks)


# 3. circular -------------------------------------------------------------------------------------


def circle() -> ItemResult:
    """Wheel 2 held at rest by an unknown torque: Figs 8 to 13, in both readings."""
    equations, model = _derive()
    holding = Holding(equations, (Hold("theta2", 0.0, math.inf, "M2"),))
    wave = {"M1": parse_scalar(f"{TORQUE} * sin(pi * t)", {})}
    held = _run(model, holding.formulas(wave), holding.formulas({}))
    free = _run(model, holding.formulas(wave))
    theirs, M2 = printed.quasimoro_held(DATA, pulse, held.time, PULSE)
    released, _ = printed.quasimoro_held(DATA, pulse, held.time, PULSE, release=True)
    checks = [
        _agreement(held, theirs),
        Check(
            "M2 and that of the printed equations apart by", apart(held["M2"], M2), 0.0, SAME, "N m"
        ),
        Check("theta_2 while it is held", largest(held["theta2"]), 0.0, SAME, "rad"),
        Check(
            "released, our angles and those of (23) to (29), 90 s, apart by",
            max(apart(free[name], row) for name, row in zip(ANGLES, released, strict=False)),
            0.0,
            SAME,
            "rad",
        ),
    ]
    table = _table(held, theirs) | {"M2 printed equations [N m]": M2}
    table |= {f"{name} released [{free.unit(name)}]": free[name] for name in (*ANGLES, "M2")}
    caption = _caption("M1 = 0.1 sin(pi t) N m and the M2 that keeps theta_2 = 0") + (
        " What M2 does after 1 s the source leaves open: 'held' keeps theta_2 = 0 for ever, "
        "'released' lets go of both wheels, and only then is there something to draw in Fig. 10."
    )
    return ItemResult(table, _circle_panels(held, free, theirs, M2), caption, checks)


def _circle_panels(
    held: Trajectory, free: Trajectory, theirs: Array, M2: Array
) -> list[FigurePanel]:
    def curves(name: str, printed_row: Array) -> tuple[FigureCurve, ...]:
        return (
            FigureCurve(held.time, held[name], "held"),
            FigureCurve(free.time, free[name], "released"),
            FigureCurve(held.time, printed_row, "printed equations, held", "printed"),
        )

    first, second, third = (curves(name, row) for name, row in zip(ANGLES, theirs, strict=False))
    words = "circular motion"
    return [
        _panel(8, f"actuated {words}", r"$\theta_1$ [rad]", PULSE, *first),
        _panel(9, words, r"$\theta_1$ [rad]", SHOWN, *first),
        _panel(10, words, r"$\theta_2$ [rad]", SHOWN, *second),
        _panel(11, f"actuated {words}", r"$\theta_3$ [rad]", PULSE, *third),
        _panel(12, words, r"$\theta_3$ [rad]", SHOWN, *third),
        _panel(13, f"{words}, second wheel", r"$M_2$ [N m]", SHOWN, *curves("M2", M2)),
    ]


ITEMS = (
    Item(
        "quasimoro-straight",
        "staicu",
        "wheeled pendulum, rectilinear motion, Figs 2 to 5",
        straight,
    ),
    Item("quasimoro-spin", "staicu", "wheeled pendulum, pure rotation, Figs 6 and 7", spin),
    Item("quasimoro-circle", "staicu", "wheeled pendulum, one wheel held, Figs 8 to 13", circle),
    Item("quasimoro-locked", "staicu", "wheeled pendulum, body locked, equation (36)", locked),
    Item(
        "quasimoro-operations",
        "staicu",
        "wheeled pendulum, operations of every method, section 5",
        operations,
    ),
)
