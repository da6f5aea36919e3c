"""The wheeled pendulum Quasimoro: three manoeuvres, Figs 2 to 13 of Staicu (2011)."""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import numpy as np

import axode.literature.reproduce.printed as printed
from axode.codegen.tape.tape import Tape
from axode.gallery import build
from axode.literature.acceptance.case_runs import Hold, Holding
from axode.literature.reproduce.item import (
    TIME,
    Array,
    Check,
    FigureCurve,
    FigurePanel,
    ItemResult,
    Level,
    apart,
    at,
    at_most,
    columns_of,
    farthest,
    item,
    largest,
    methods_panel,
    operations_panel,
    our_curves,
    over_time,
    printed_curves,
    rows_beside,
    run_curves,
    states_of,
    swing,
    vanishing,
)
from axode.mechanism.values.expressions import parse_scalar
from axode.model.model import Model
from axode.numerics.tolerances import HALF_DIGITS
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.equations import Equations

DATA = {"m": 0.5, "M": 5.0, "J1": 0.2, "J2": 0.4, "r": 0.3, "d": 0.2, "rho": 0.5, "g": 9.81}
ANGLES = ("theta1", "theta2", "theta3")
SPEEDS = ("phi1_dot", "phi2_dot", "theta3_dot")
PULSE, END = 1.0, 90.0  # [s] of the torques, of a run
LOCKED_END = 4.0  # [s] of a run with the body locked, and of one to count operations
SHOWN = 4.0  # [s] that the source's figures cover
TORQUE = 0.1  # [N m]
AMPLITUDES = (0.1, 0.04)  # [N m] of M1 and M2 while the body is locked
WAVES = {f"M{k}": f"{size} * sin(pi * t)" for k, size in enumerate(AMPLITUDES, start=1)}
PUBLISHED = 0.0129  # [rad] amplitude of theta_3 that the source reads off Fig. 5
SPACING = 0.01  # [s] between samples
EXACT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "progress": False}


def _derive() -> tuple[Equations, Model]:
    equations = build("wheeled_pendulum", **DATA).derive(independent=SPEEDS)
    return equations, equations.compile("interpreter")


def pulse(t: float) -> float:
    """Equation (19): half a sine wave in the first second."""
    return TORQUE * math.sin(math.pi * t) if t < PULSE else 0.0


def _run(model: Model, during: Any, after: Any = None, end: float | None = None) -> Trajectory:
    """Motion from rest, of 90 s unless given; torques change their law after the first second."""
    first = simulate(model, PULSE, input=during, save_every=SPACING, **EXACT)
    left = (END if end is None else end) - PULSE
    return first + simulate(
        model, left, start=first, input=after, t0=PULSE, save_every=SPACING, **EXACT
    )


def _panel(
    number: int, words: str, y: str, end: float, *curves: FigureCurve, **more: Any
) -> FigurePanel:
    shown = tuple(FigureCurve(c.x[c.x <= end], c.y[c.x <= end], c.label, c.role) for c in curves)
    return over_time(f"Fig. {number}: {words}", y, shown, window=(0.0, end), **more)


def _both(run: Trajectory, name: str, theirs: Array) -> list[FigureCurve]:
    labels = {name: "Axode"}
    return [*run_curves(run, labels), *printed_curves(run.time, [theirs], "printed equations")]


# 1. rectilinear ----------------------------------------------------------------------------------


@item("quasimoro-straight", "staicu", "wheeled pendulum, rectilinear motion, Figs 2 to 5")
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
        vanishing("theta_1 - theta_2", apart(run["theta1"], run["theta2"]), "rad"),
    ]
    return ItemResult(_table(run, theirs), panels, caption, checks)


def _agreement(run: Trajectory, theirs: Array, words: str = "") -> Check:
    what = f"{words}our angles and those of (23) to (29), 90 s, apart by"
    return vanishing(what, farthest(run, ANGLES, theirs), "rad")


def _table(run: Trajectory, theirs: Array) -> dict[str, Array]:
    names = (*ANGLES, *(f"{name}_dot" for name in ANGLES), "x", "y", "psi", "M1", "M2")
    return columns_of(run, names) | rows_beside(run, ANGLES, "printed equations", theirs)


def _caption(torques: str) -> str:
    return (
        f"{torques} for 1 s as in (19), from rest, 90 s in all. m = 0.5 kg, M = 5 kg, J1 = 0.2, "
        "J2 = 0.4 kg m², r = 0.3 m, d = 0.2 m, r/l = 0.5 as printed; J3 = J2 and g = 9.81 m/s² "
        "are not. Grey: equations (23) to (29) as printed, integrated by SciPy."
    )


# 2. pure rotation --------------------------------------------------------------------------------


@item("quasimoro-spin", "staicu", "wheeled pendulum, pure rotation, Figs 6 and 7")
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
            HALF_DIGITS,
            "rad",
            "equation (39)",
        ),
        Check(
            "steady rate of theta_1",
            end["theta1_dot"],
            2 * TORQUE / (math.pi * inertia),
            HALF_DIGITS,
            "rad/s",
            "equation (39)",
        ),
        vanishing("psi + 2 rho theta_1", apart(run["psi"], -2 * p["rho"] * run["theta1"]), "rad"),
        vanishing("theta_3, which stays", largest(run["theta3"]), "rad"),
        _agreement(run, theirs),
    ]
    return ItemResult(_table(run, theirs), panels, _caption("M1 = -M2 = 0.1 sin(pi t) N m"), checks)


# 3. circular -------------------------------------------------------------------------------------


@item("quasimoro-circle", "staicu", "wheeled pendulum, one wheel held, Figs 8 to 13")
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
        vanishing("M2 and that of the printed equations apart by", apart(held["M2"], M2), "N m"),
        vanishing("theta_2 while it is held", largest(held["theta2"]), "rad"),
        _agreement(free, released, "released, "),
    ]
    table = _table(held, theirs) | {"M2 printed equations [N m]": M2}
    names = (*ANGLES, "M2")
    table |= rows_beside(free, names, "released", (free[name] for name in names))
    caption = _caption("M1 = 0.1 sin(pi t) N m and the M2 that keeps theta_2 = 0") + (
        " What M2 does after 1 s the source leaves open: 'held' keeps theta_2 = 0 for ever, "
        "'released' lets go of both wheels, and only then is there something to draw in Fig. 10."
    )
    return ItemResult(table, _circle_panels(held, free, theirs, M2), caption, checks)


def _circle_panels(
    held: Trajectory, free: Trajectory, theirs: Array, M2: Array
) -> list[FigurePanel]:
    def curves(name: str, printed_row: Array) -> list[FigureCurve]:
        return [
            *our_curves(held.time, (held[name], free[name]), ("held", "released")),
            *printed_curves(held.time, [printed_row], "printed equations, held"),
        ]

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


# the body locked, equation (36) -------------------------------------------------------------------

LOCKED_CAPTION = (
    "M1 = 0.1 sin(pi t) and M2 = 0.04 sin(pi t) N m for 1 s from rest, the body locked at theta_3 "
    "= 0, and left free. The source prints (36) for the locked body and no run of it; data as in "
    "Figs 2 to 13. Grey: (36), integrated in closed form, and the torque on the body that (28) "
    "leaves over. Without it the body would swing."
)


@item("quasimoro-locked", "staicu", "wheeled pendulum, body locked, equation (36)")
def locked() -> ItemResult:
    """Both torques with the body locked: equation (36), which the source does not run."""
    robot = build("wheeled_pendulum", **DATA)
    robot.prescribe("theta3", 0.0)
    model = robot.derive(independent=SPEEDS[:2]).compile("interpreter")
    free = build("wheeled_pendulum", **DATA).derive(independent=SPEEDS).compile("interpreter")
    held, swinging = (_run(one, WAVES, end=LOCKED_END) for one in (model, free))
    inertia = printed.quasimoro_locked(DATA)
    rates, angles = _closed_form(inertia, held.time)
    wheels = ("theta1", "theta2")
    found = np.asarray(model.multipliers(*states_of(model, held)))
    ours = found[:, model.rows.index("theta3.prescribed")]
    theirs = _torque_left(inertia, held.time)
    checks = [
        vanishing("our angles and those of (36) apart by", farthest(held, wheels, angles), "rad"),
        vanishing("our torques for any motion and those of (36) apart by", _torques(model)),
        vanishing("torque that locks the body and (28) apart by", apart(ours, theirs), "N m"),
        vanishing("theta_3, which is locked", largest(held["theta3"]), "rad"),
    ]
    names = (*wheels, "theta1_dot", "theta2_dot", "theta3", "psi")
    table = columns_of(held, names, " locked") | columns_of(swinging, names, " free")
    table |= {f"{name} of (36) [rad]": row for name, row in zip(wheels, angles, strict=True)}
    table |= {f"{name}_dot of (36) [rad/s]": row for name, row in zip(wheels, rates, strict=True)}
    table |= {"locking torque [N m]": ours, "locking torque of (28) [N m]": theirs}
    panels = _locked_panels(held, swinging, angles, (ours, theirs))
    return ItemResult(table, panels, LOCKED_CAPTION, checks)


def _closed_form(inertia: Array, times: Array) -> tuple[Array, Array]:
    """Rates and angles of the wheels: (36) has a constant inertia and no other terms."""
    during = np.minimum(times, PULSE)
    rate = (1 - np.cos(math.pi * during)) / math.pi
    angle = during / math.pi - np.sin(math.pi * during) / math.pi**2
    angle = angle + (times - during) * rate
    push = np.linalg.solve(inertia, np.array(AMPLITUDES))
    return np.outer(push, rate), np.outer(push, angle)


def _torque_left(inertia: Array, times: Array) -> Array:
    """Torque on theta_3 that (28) asks for besides M1 + M2, at theta_3 = 0."""
    push = np.linalg.solve(inertia, np.array(AMPLITUDES)).sum()
    wave = np.where(times < PULSE, np.sin(math.pi * times), 0.0)
    return (DATA["M"] * DATA["r"] * DATA["d"] / 2 * push - sum(AMPLITUDES)) * wave


def _torques(model: Model) -> float:
    """Difference between inverse dynamics and (36) at random speeds and accelerations."""
    rng = np.random.default_rng(36)
    nu, nu_dot = rng.normal(0.0, 3.0, (2, 20, 2))
    q = np.tile(model.home, (20, 1))
    q[:, model.coordinates.index("psi")] = rng.normal(size=20)
    ours = model.inverse_dynamics(q, nu, nu_dot)
    return apart(ours, nu_dot @ printed.quasimoro_locked(DATA))


def _locked_panels(
    held: Trajectory, free: Trajectory, angles: Array, torque: tuple[Array, Array]
) -> list[FigurePanel]:
    def panel(title: str, name: str, *theirs: Array) -> FigurePanel:
        curves = our_curves(held.time, (held[name], free[name]), ("locked", "free"))
        grey = printed_curves(held.time, theirs, "(36) and (28)")
        return over_time(title, rf"$\theta_{name[-1]}$ [rad]", [*curves, *grey])

    own, theirs = torque
    lock = [*our_curves(held.time, [own], ["locked"]), *printed_curves(held.time, [theirs])]
    return [
        panel("first wheel", "theta1", angles[0]),
        panel("second wheel", "theta2", angles[1]),
        panel("body", "theta3"),
        over_time("torque that locks the body", "torque [N m]", lock),
    ]


# operations ---------------------------------------------------------------------------------------

METHODS = ("recursive", "virtual_work", "complement", "multipliers", "lagrange")
BY_HAND = "(23) to (29)"
COUNT_CAPTION = (
    "Accelerations along a motion under M1 = 0.1 sin(pi t) and M2 = 0.04 sin(pi t) N m, and the "
    "scalar operations that each method takes for them, and for the torques of a motion, with the "
    "data put in as numbers. All were counted alike: equal terms once, constants folded. The "
    "source says that its way, by virtual work, takes fewer than Lagrange's equations, and gives "
    "no counts. So it is here. Its final equations, simplified by hand for this one robot, take "
    "fewer still than anything that is generated from a description."
)


@item("quasimoro-operations", "staicu", "wheeled pendulum, operations of every method, section 5")
def operations() -> ItemResult:
    """Direct and inverse dynamics by every method: the same numbers, their operations counted."""
    robot = build("wheeled_pendulum", **DATA)
    models = {
        name: robot.derive(name, independent=SPEEDS, self_check=False).compile(
            "interpreter", parameters="fixed"
        )
        for name in METHODS
    }
    run = _run(models[METHODS[0]], WAVES, end=LOCKED_END)
    states = states_of(models[METHODS[0]], run)
    by = {name: np.asarray(model.forward_dynamics(*states)) for name, model in models.items()}
    known = _by_hand(run)
    off = {name: largest(found - known) for name, found in by.items()}
    direct, inverse = (
        {name: model.operations(function) for name, model in models.items()}
        for function in ("forward_dynamics", "inverse_dynamics")
    )
    direct[BY_HAND], inverse[BY_HAND] = _counts_by_hand()
    checks = [
        vanishing(
            "accelerations by (23) to (29) and by every method apart by",
            max(off.values()),
            "rad/s²",
            within=1e-10,
        ),
        *(
            at_most(
                f"operations of {words} by virtual work beyond those by Lagrange's equations",
                counts["virtual_work"],
                min(counts["multipliers"], counts["lagrange"]),
            )
            for words, counts in (("direct dynamics", direct), ("inverse dynamics", inverse))
        ),
        at_most(
            "operations of direct dynamics by recursion beyond those by any other method",
            direct["recursive"],
            min(direct[name] for name in METHODS),
        ),
    ]
    table = {TIME: run.time}
    for name, found in ({BY_HAND: known} | by).items():
        angles = _of_the_source(found)
        table |= {f"theta{k + 1}_ddot {name} [rad/s²]": angles[:, k] for k in range(3)}
    labels = [rf"$\ddot\theta_{k}$" for k in (1, 2, 3)]
    ours, theirs = _of_the_source(by[METHODS[0]]), _of_the_source(known)
    curves = [*our_curves(run.time, ours.T, labels), *printed_curves(run.time, theirs.T)]
    panels = [
        over_time("accelerations", "[rad/s²]", curves),
        methods_panel(BY_HAND, off),
        operations_panel("direct dynamics", direct),
        operations_panel("torques of a motion", inverse),
    ]
    return ItemResult(table, panels, COUNT_CAPTION, checks)


def _by_hand(run: Trajectory) -> Array:
    """Accelerations of phi_1, phi_2 and theta_3 by the printed equations, J3 being J2."""
    found = []
    for k in range(len(run.time)):
        rates = np.array([run[f"theta{j}_dot"][k] for j in (1, 2, 3)])
        A, b = printed.quasimoro(DATA, run["theta3"][k], rates)
        M1, M2 = run["M1"][k], run["M2"][k]
        first, second, third = np.linalg.solve(A, np.array([M1, M2, M1 + M2]) - b)
        found.append([first + third, second + third, third])
    return np.array(found)


def _of_the_source(found: Array) -> Array:
    """Accelerations of theta_1 to theta_3 from those of phi_1 = theta_1 + theta_3 and so on."""
    return found - found[:, 2:] * np.array([1.0, 1.0, 0.0])


def _counts_by_hand() -> tuple[int, int]:
    """Operations of the printed equations: with a solve for accelerations, and for M1 and M2."""
    c, s = ca.SX.sym("c"), ca.SX.sym("s")
    rates, accelerations, torques = ca.SX.sym("w", 3), ca.SX.sym("a", 3), ca.SX.sym("M", 2)
    rows, rest = printed.quasimoro_terms(DATA, c, s, ca.vertsplit(rates))
    A = ca.vertcat(*[ca.horzcat(*row) for row in rows])
    b = ca.vertcat(*rest)
    given = ca.vertcat(torques, torques[0] + torques[1])
    counts = []
    for x, value in (
        (torques, Factor.of(A).solve(given - b)),
        (accelerations, (A @ accelerations + b)[:2]),
    ):
        function = ca.Function("f", [c, s, rates, x], [ca.densify(value)])
        counts.append(Tape.from_casadi(function).n_operations + 2)  # and the sine and cosine
    return counts[0], counts[1]


ITEMS = (straight, spin, circle, locked, operations)
