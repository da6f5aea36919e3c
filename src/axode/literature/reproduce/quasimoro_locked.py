"""The wheeled pendulum with its body locked, and what each method costs, after Staicu (2011)."""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import numpy as np

import axode.literature.reproduce.printed as printed
from axode.codegen.tape.tape import Tape
from axode.gallery import build
from axode.literature.reproduce.item import Array, FigureCurve, FigurePanel, ItemResult
from axode.literature.reproduce.measuring import apart, largest
from axode.literature.reproduce.verdict import Check
from axode.model.model import Model
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.algebra.linear import Factor

DATA = {"m": 0.5, "M": 5.0, "J1": 0.2, "J2": 0.4, "r": 0.3, "d": 0.2, "rho": 0.5, "g": 9.81}
AMPLITUDES = (0.1, 0.04)  # [N m] of M1 and M2
PULSE, END = 1.0, 4.0  # [s]
SPACING = 0.01  # [s]
EXACT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "progress": False}
SAME = 1e-8  # [rad, N m]
TIME = "t [s]"
SPEEDS, MOTORS = ("phi1_dot", "phi2_dot", "theta3_dot"), ("M1", "M2")


def _waves() -> dict[str, str]:
    return {f"M{k}": f"{size} * sin(pi * t)" for k, size in enumerate(AMPLITUDES, start=1)}


# the body locked, equation (36) -------------------------------------------------------------------

LOCKED_CAPTION = (
    "M1 = 0.1 sin(pi t) and M2 = 0.04 sin(pi t) N m for 1 s from rest, the body locked at theta_3 "
    "= 0, and left free. The source prints (36) for the locked body and no run of it; data as in "
    "Figs 2 to 13. Grey: (36), integrated in closed form, and the torque on the body that (28) "
    "leaves over. Without it the body would swing."
)


def locked() -> ItemResult:
    """Both torques with the body locked: equation (36), which the source does not run."""
    robot = build("wheeled_pendulum", **DATA)
    robot.prescribe("theta3", 0.0)
    model = robot.derive(independent=SPEEDS[:2]).compile("interpreter")
    free = build("wheeled_pendulum", **DATA).derive(independent=SPEEDS).compile("interpreter")
    held, swinging = _run(model), _run(free)
    inertia = printed.quasimoro_locked(DATA)
    rates, angles = _closed_form(inertia, held.time)
    wheels = ("theta1", "theta2")
    ours = _locking_torque(model, held)
    theirs = _torque_left(inertia, held.time)
    checks = [
        Check(
            "our angles and those of (36) apart by",
            max(apart(held[name], row) for name, row in zip(wheels, angles, strict=True)),
            0.0,
            SAME,
            "rad",
        ),
        Check("our torques for any motion and those of (36) apart by", _torques(model), 0, SAME),
        Check("torque that locks the body and (28) apart by", apart(ours, theirs), 0, SAME, "N m"),
        Check("theta_3, which is locked", largest(held["theta3"]), 0.0, SAME, "rad"),
    ]
    table = {TIME: held.time}
    for label, run in (("locked", held), ("free", swinging)):
        names = (*wheels, "theta1_dot", "theta2_dot", "theta3", "psi")
        table |= {f"{name} {label} [{run.unit(name)}]": run[name] for name in names}
    table |= {f"{name} of (36) [rad]": row for name, row in zip(wheels, angles, strict=True)}
    table |= {f"{name}_dot of (36) [rad/s]": row for name, row in zip(wheels, rates, strict=True)}
    table |= {"locking torque [N m]": ours, "locking torque of (28) [N m]": theirs}
    panels = _locked_panels(held, swinging, angles, (ours, theirs))
    return ItemResult(table, panels, LOCKED_CAPTION, checks)


def _run(model: Model) -> Trajectory:
    first = simulate(model, PULSE, input=_waves(), save_every=SPACING, **EXACT)
    rest = simulate(model, END - PULSE, start=first, t0=PULSE, save_every=SPACING, **EXACT)
    return first + rest


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


def _locking_torque(model: Model, run: Trajectory) -> Array:
    q, nu, u = (_columns(run, names) for names in (model.coordinates, model.independent, MOTORS))
    row = model.rows.index("theta3.prescribed")
    return np.asarray(model.multipliers(q, nu, u))[:, row]


def _columns(run: Trajectory, names: tuple[str, ...]) -> Array:
    return np.stack([run[name] for name in names], axis=-1)


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
    t = held.time

    def curves(name: str, theirs: Array | None = None) -> tuple[FigureCurve, ...]:
        ours = FigureCurve(t, held[name], "locked"), FigureCurve(t, free[name], "free")
        grey = () if theirs is None else (FigureCurve(t, theirs, "(36) and (28)", "printed"),)
        return (*ours, *grey)

    own, theirs = torque
    lock = (FigureCurve(t, own, "locked"), FigureCurve(t, theirs, role="printed"))
    return [
        FigurePanel("first wheel", TIME, r"$\theta_1$ [rad]", curves("theta1", angles[0])),
        FigurePanel("second wheel", TIME, r"$\theta_2$ [rad]", curves("theta2", angles[1])),
        FigurePanel("body", TIME, r"$\theta_3$ [rad]", curves("theta3")),
        FigurePanel("torque that locks the body", TIME, "torque [N m]", lock),
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


def operations() -> ItemResult:
    """Direct and inverse dynamics by every method: the same numbers, their operations counted."""
    robot = build("wheeled_pendulum", **DATA)
    models = {
        name: robot.derive(name, independent=SPEEDS, self_check=False).compile(
            "interpreter", parameters="fixed"
        )
        for name in METHODS
    }
    run = _run(models[METHODS[0]])
    states = [_columns(run, names) for names in (models[METHODS[0]].coordinates, SPEEDS, MOTORS)]
    by = {name: np.asarray(model.forward_dynamics(*states)) for name, model in models.items()}
    known = _by_hand(run)
    off = {name: largest(found - known) for name, found in by.items()}
    direct, inverse = _counts(models, "forward_dynamics"), _counts(models, "inverse_dynamics")
    direct[BY_HAND], inverse[BY_HAND] = _counts_by_hand()
    checks = [
        Check(
            "accelerations by (23) to (29) and by every method apart by",
            max(off.values()),
            0.0,
            1e-10,
            "rad/s²",
        ),
        *(
            Check(
                f"operations of {words} by virtual work beyond those by Lagrange's equations",
                max(0, counts["virtual_work"] - min(counts["multipliers"], counts["lagrange"])),
                0,
                0,
            )
            for words, counts in (("direct dynamics", direct), ("inverse dynamics", inverse))
        ),
        Check(
            "operations of direct dynamics by recursion beyond those by any other method",
            max(0, direct["recursive"] - min(direct[name] for name in METHODS)),
            0,
            0,
        ),
    ]
    table = {TIME: run.time}
    for name, found in ({BY_HAND: known} | by).items():
        angles = _of_the_source(found)
        table |= {f"theta{k + 1}_ddot {name} [rad/s²]": angles[:, k] for k in range(3)}
    panels = _count_panels(
        run, _of_the_source(by[METHODS[0]]), _of_the_source(known), off, (direct, inverse)
    )
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


def _counts(models: dict[str, Model], function: str) -> dict[str, int]:
    return {name: model.operations(function) for name, model in models.items()}


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


def _count_panels(
    run: Trajectory,
    ours: Array,
    theirs: Array,
    off: dict[str, float],
    counts: tuple[dict[str, int], dict[str, int]],
) -> list[FigurePanel]:
    labels = (r"$\ddot\theta_1$", r"$\ddot\theta_2$", r"$\ddot\theta_3$")
    curves = [FigureCurve(run.time, ours[:, k], label) for k, label in enumerate(labels)]
    grey = [FigureCurve(run.time, theirs[:, k], role="printed") for k in range(3)]
    bars = [tuple((name, float(value)) for name, value in one.items()) for one in counts]
    return [
        FigurePanel("accelerations", TIME, "[rad/s²]", (*curves, *grey)),
        FigurePanel(
            f"each method minus {BY_HAND}",
            "largest difference [rad/s²]",
            "",
            (),
            dots=tuple(off.items()),
        ),
        FigurePanel("direct dynamics", "operations", "", (), bars=bars[0]),
        FigurePanel("torques of a motion", "operations", "", (), bars=bars[1]),
    ]
