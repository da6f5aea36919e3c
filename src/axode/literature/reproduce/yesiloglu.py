"""The two-wheeled cart by every method, after Yesiloglu, Temeltas and Kaynak."""

from __future__ import annotations

from typing import Any

import numpy as np

from axode.errors import NotApplicable
from axode.gallery import build
from axode.literature.cooperating_arms import rank_of
from axode.literature.reproduce.arms_with_load import arms
from axode.literature.reproduce.cart_of_arms import PSEUDO, accelerations, cart_of_arms
from axode.literature.reproduce.item import Array, FigureCurve, FigurePanel, Item, ItemResult
from axode.literature.reproduce.measuring import apart, largest
from axode.literature.reproduce.verdict import Check
from axode.model.model import Model
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.formulations import FORMULATIONS

DATA = {  # a rod with its mass centre below the axle; the source has no numbers
    "r": 0.15,
    "l": 0.6,
    "d": 0.08,
    "mw": 1.3,
    "Ia": 0.0146,
    "It": 0.0078,
    "Mc": 4.0,
    "Jx": 0.1556,
    "Jy": 0.0456,
    "Jz": 0.135,
    "g": 9.81,
}
START = {"pitch": 0.35, "pitch_rate": 0.8, "wheel1_rate": 4.0, "wheel2_rate": -1.0}
TORQUES = {"tau1": "0.3 * sin(2 * t)", "tau2": "0.2 * cos(3 * t)"}
INDEPENDENT = ("q1_dot", "q2_dot", "pitch_rate")
DURATION, SPACING = 4.0, 0.01  # [s]
FEW = 2  # samples from one state at which the source's methods are taken to the next
REFERENCE = "recursive"
AGREE = 1e-9  # of the largest acceleration
PIVOTS = 100.0  # [rad/s²] that pivots in place of rolling contacts may be off by
EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "progress": False}
TIME = "t [s]"


def cart() -> ItemResult:
    """Accelerations along a motion by all formulations and all of the source's ways."""
    model = _compile(REFERENCE)
    run = _run(model)
    operators = _run(_compile("spatial_operators"))
    few = run.time[::FEW]
    ours = {name: found[::FEW] for name, found in _by_formulations(model, run).items()}
    theirs = _by_the_source(run)
    pivots = theirs.pop("contacts as pivots")
    known = ours.pop(REFERENCE)
    off = {name: np.abs(found - known).max(axis=1) for name, found in (ours | theirs).items()}
    return ItemResult(
        _table(run, few, known, ours | theirs),
        _panels(run, few, known, pivots, off),
        CAPTION.format(pivots=largest(pivots - known)),
        _checks(run, operators, off, largest(known), largest(pivots - known)),
    )


CAPTION = (
    "A cart with its rod's mass centre 80 mm below the axle, from pitch 0.35 and wheel rates 4 and "
    "-1 rad/s, under tau_1 = 0.3 sin 2t and tau_2 = 0.2 cos 3t N m. The source has neither numbers "
    "nor results. Dashed: the six steps with the contacts as pivots, as printed; a rolling contact "
    "accelerates, and without that the joint accelerations are off by up to {pivots:.2g} rad/s² "
    "(erratum D-7). The last panel has all formulations that take the cart and the source's three "
    "ways, each less the formulation 'recursive': the six steps with the tip forces of (36), the "
    "smaller task space of (11) to (14), the pseudo joints of (15) to (17), Fig. 2 and Figs 4 to 5."
)


def _compile(formulation: str) -> Model:
    equations = build("two_wheeled_cart", **DATA).derive(formulation, INDEPENDENT)
    return equations.compile("interpreter")


def _run(model: Model) -> Trajectory:
    return simulate(model, DURATION, start=START, input=TORQUES, save_every=SPACING, **EXACT)


def _by_formulations(model: Model, run: Trajectory) -> dict[str, Array]:
    """Accelerations of the two driven joints at all samples, (samples, 2), by formulation."""
    q, nu, u = (
        np.stack([run[name] for name in names], axis=-1)
        for names in (model.coordinates, model.independent, model.inputs)
    )
    found = {}
    for name in FORMULATIONS:
        try:
            equations = build("two_wheeled_cart", **DATA).derive(name, INDEPENDENT)
        except NotApplicable:  # made for other mechanisms
            continue
        found[name] = np.asarray(equations.compile("interpreter").forward_dynamics(q, nu, u))[:, :2]
    return found


def _by_the_source(run: Trajectory) -> dict[str, Array]:
    """Accelerations at some of the samples by the source's methods."""
    names = ("pitch", "wheel1_rate", "wheel2_rate", "pitch_rate", "tau1", "tau2")
    rows = [
        accelerations(DATA, pitch, (first, second), pitch_rate, torques)
        for pitch, first, second, pitch_rate, *torques in run[names].values[::FEW].tolist()
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _checks(
    run: Trajectory, operators: Trajectory, off: dict[str, Array], size: float, pivots: float
) -> list[Check]:
    with_pseudo = cart_of_arms(DATA, 0.35, (4.0, -1.0), 0.8, pseudo=True)
    d4 = with_pseudo.pseudo_joints([0.0] * 12, PSEUDO).d4
    arms = build("two_wheeled_cart", arms=True, **DATA).derive().mobility
    return [
        Check(
            "independent motions of the cart",
            arms.mobility,
            2,
            0.0,
            of="printed",
            why="the closure of the "
            "two arms has rank 5, not 6: the rod may pitch as well (erratum D-5)",
            explained=1.0,
        ),
        Check(
            "rank of d4, to be inverted in (17)",
            rank_of(d4),
            len(PSEUDO),
            0.0,
            of="needed",
            why="opposite torques on the two leans move nothing; a pseudo-inverse serves "
            "(erratum D-6)",
            explained=1.0,
        ),
        Check(
            "six steps with the contacts of (18), joint accelerations off by",
            pivots,
            0.0,
            AGREE * size,
            "rad/s²",
            why="(18) treats them as pivots; by erratum D-7 a rolling contact accelerates",
            explained=PIVOTS,
        ),
        *(
            Check(
                f"{name}, joint accelerations off by", largest(values), 0.0, AGREE * size, "rad/s²"
            )
            for name, values in off.items()
        ),
        Check(
            "motions by 'recursive' and by 'spatial_operators', 4 s, apart by",
            max(apart(run[name], operators[name]) for name in ("pitch", "q1", "q2", "psi")),
            0.0,
            1e-6,
            "rad",
        ),
    ]


def _panels(
    run: Trajectory, few: Array, known: Array, pivots: Array, off: dict[str, Array]
) -> list[FigurePanel]:
    t = run.time
    return [
        FigurePanel(
            "wheels and load",
            TIME,
            "rate [rad/s]",
            (
                FigureCurve(t, run["wheel1_rate"], "wheel 1"),
                FigureCurve(t, run["wheel2_rate"], "wheel 2"),
                FigureCurve(t, run["pitch_rate"], "load"),
            ),
        ),
        FigurePanel(
            "path of the axle's midpoint",
            "x [m]",
            "y [m]",
            (FigureCurve(run["x"], run["y"]),),
            equal=True,
        ),
        FigurePanel(
            "accelerations of the driven joints",
            TIME,
            "[rad/s²]",
            (
                *(FigureCurve(few, known[:, k], rf"$\ddot q_{k + 1}$") for k in (0, 1)),
                *(
                    FigureCurve(few, pivots[:, k], "as pivots" * (k == 0), "misprint")
                    for k in (0, 1)
                ),
            ),
        ),
        FigurePanel(
            "each method less 'recursive'",
            "largest difference [rad/s²]",
            "",
            (),
            dots=tuple((name, largest(values)) for name, values in off.items()),
        ),
    ]


def _table(run: Trajectory, few: Array, known: Array, others: dict[str, Array]) -> dict[str, Array]:
    names = ("pitch", "pitch_rate", "wheel1_rate", "wheel2_rate", "x", "y", "psi", "tau1", "tau2")
    table = {TIME: few} | {f"{name} [{run.unit(name)}]": run[name][::FEW] for name in names}
    for method, values in ({REFERENCE: known} | others).items():
        table |= {f"q{k}_ddot {method} [rad/s^2]": values[:, k - 1] for k in (1, 2)}
    return table


ITEMS = (
    Item("cart-methods", "yesiloglu", "two-wheeled cart, forward dynamics by every method", cart),
    Item("arms-methods", "yesiloglu", "two arms with a common load, by every method", arms),
)
