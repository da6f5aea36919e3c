"""The two-wheeled cart by every method, after Yesiloglu, Temeltas and Kaynak."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from axode.gallery import build
from axode.literature.reproduce.arms_operations import operations
from axode.literature.reproduce.arms_with_load import arms
from axode.literature.reproduce.item import (
    Array,
    Check,
    FigureCurve,
    ItemResult,
    at_states,
    by_formulations,
    columns_of,
    farthest,
    item,
    largest,
    methods_panel,
    misprinted,
    our_curves,
    over_time,
    plan_view,
    run_curves,
    vanishing,
)
from axode.model.model import Model
from axode.numerics.tolerances import NEGLIGIBLE
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.equations import Equations
from axode.symbolic.formulations.deficient_arms import PseudoJointFormulation
from axode.symbolic.formulations.spatial_operators import SpatialOperatorFormulation

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
START = {
    "pitch": 0.35,
    "q1": 0.35,
    "q2": 0.35,
    "pitch_rate": 0.8,
    "wheel1_rate": 4.0,
    "wheel2_rate": -1.0,
}
START_OF_ARMS = {"q1": 0.35, "q2": 0.35, "q1_dot": -3.2, "q2_dot": 1.8, "ground1.wy": 4.0}
TORQUES = {"tau1": "0.3 * sin(2 * t)", "tau2": "0.2 * cos(3 * t)"}
INDEPENDENT = ("q1_dot", "q2_dot", "pitch_rate")
DRIVEN = ("q1_dot", "q2_dot")
DURATION, SPACING = 4.0, 0.01  # [s]
FEW = 4  # samples from one state at which every method is taken to the next
REFERENCE = "recursive"
PIVOTS = 100.0  # [rad/s²] that pivots in place of rolling contacts may be off by
EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14, "progress": False}


class PivotsFormulation(SpatialOperatorFormulation):
    """The six steps with the contacts of (18): points of the ground that do not move on."""

    def wandering(self, V_t: SX) -> SX:
        """Nothing."""
        return SX.zeros(len(self.closing_rows))


@item("cart-methods", "yesiloglu", "two-wheeled cart, forward dynamics by every method")
def cart() -> ItemResult:
    """Accelerations along a motion of the cart of two arms by all formulations."""
    run = _run(build("two_wheeled_cart", **DATA).derive(independent=INDEPENDENT), START)
    robot = build("two_wheeled_cart", arms=True, **DATA)
    equations = robot.derive()
    as_arms = _run(equations, START_OF_ARMS)
    held = _run(robot.derive("pseudo_joints"), START_OF_ARMS)
    few = as_arms.resample(as_arms.time[::FEW])
    by = by_formulations(robot, equations.independent, few, DRIVEN)
    known = by.pop(REFERENCE)
    total = at_states(equations, few, PivotsFormulation(equations.system).six_steps.total)[0]
    pivots = total[:, [equations.speeds.index(name) for name in DRIVEN], 0]
    off = {name: np.abs(found - known).max(axis=1) for name, found in by.items()}
    wrong = largest(pivots - known)
    checks = _checks(equations, off, largest(known), wrong)
    checks += [
        vanishing(
            f"{first} and of {second}, {DURATION:g} s, apart by",
            farthest(one, ("q1", "q2"), (two["q1"], two["q2"])),
            "rad",
            within=1e-6,
        )
        for first, one, second, two in (
            ("motions of the cart on wheels", run, "the two arms", as_arms),
            ("motions of the arms by 'recursive'", as_arms, "'pseudo_joints'", held),
        )
    ]
    rates = {"wheel1_rate": "wheel 1", "wheel2_rate": "wheel 2", "pitch_rate": "load"}
    accelerations = [
        *our_curves(few.time, known.T, (r"$\ddot q_1$", r"$\ddot q_2$")),
        *misprinted(few.time, pivots.T, "as pivots"),
    ]
    panels = [
        over_time("wheels and load", "rate [rad/s]", run_curves(run, rates)),
        plan_view("path of the axle's midpoint", FigureCurve(run["x"], run["y"])),
        over_time("accelerations of the driven joints", "[rad/s²]", accelerations),
        methods_panel("'recursive'", {name: largest(values) for name, values in off.items()}),
    ]
    names = ("pitch", "pitch_rate", "wheel1_rate", "wheel2_rate", "x", "y", "psi", "tau1", "tau2")
    table = columns_of(run, names)
    table = {name: values[::FEW] for name, values in table.items()}
    for method, values in ({REFERENCE: known} | by).items():
        table |= {f"q{k}_ddot {method} [rad/s^2]": values[:, k - 1] for k in (1, 2)}
    return ItemResult(table, panels, CAPTION.format(pivots=wrong), checks)


CAPTION = (
    "A cart with its rod's mass centre 80 mm below the axle, from pitch 0.35 and wheel rates 4 and "
    "-1 rad/s, under T_1 = 0.3 sin 2t and T_2 = 0.2 cos 3t N m. The source has neither numbers "
    "nor results. Dashed: the six steps with the contacts as pivots, as printed; a rolling contact "
    "accelerates, and without that the joint accelerations are off by up to {pivots:.2g} rad/s² "
    "(erratum D-7). The last panel has all formulations that take the cart as two arms, each with "
    "half of the rod, less the formulation 'recursive': 'spatial_operators' is the six steps with "
    "the tip forces of (36), 'reduced_order' the smaller task space of (11) to (14), "
    "'pseudo_joints' (15) to (17), Fig. 2 and Figs 4 to 5."
)


def _run(equations: Equations, start: dict[str, float]) -> Trajectory:
    model: Model = equations.compile()
    return simulate(model, DURATION, start=start, input=TORQUES, save_every=SPACING, **EXACT)


def _checks(equations: Equations, off: dict[str, Array], size: float, pivots: float) -> list[Check]:
    by = PseudoJointFormulation(equations.system)
    home = ca.Function("D", [equations.q, equations.t, equations.p], [by.D])
    D = np.array(home(equations.system.home, 0.0, equations.system.defaults))
    real = len(equations.speeds)
    return [
        Check(
            "independent motions of the cart",
            len(equations.independent),
            2,
            0.0,
            of="printed",
            why="the closure of the "
            "two arms has rank 5, not 6: the rod may pitch as well (erratum D-5)",
            explained=1.0,
        ),
        Check(
            "rank of d4, to be inverted in (17)",
            rank_of(D[real:, real:]),
            len(by.pseudo_joints),
            0.0,
            of="needed",
            why="one closure row follows from the others, and the joint in its place cannot move; "
            "no force need hold it (erratum D-6)",
            explained=1.0,
        ),
        vanishing(
            "six steps with the contacts of (18), joint accelerations off by",
            pivots,
            "rad/s²",
            within=NEGLIGIBLE * size,
            why="(18) treats them as pivots; by erratum D-7 a rolling contact accelerates",
            explained=PIVOTS,
        ),
        *(
            vanishing(
                f"{name}, joint accelerations off by",
                largest(values),
                "rad/s²",
                within=NEGLIGIBLE * size,
            )
            for name, values in off.items()
        ),
    ]


ITEMS = (cart, arms, operations)
