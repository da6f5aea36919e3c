"""What the remedies for arms that lack freedoms cost, and whether they are smooth."""

from __future__ import annotations

import numpy as np

from axode.gallery import build
from axode.literature.reproduce.arms_with_load import JOINTS, arms_in_grip
from axode.literature.reproduce.item import (
    Array,
    ItemResult,
    apart,
    at_most,
    at_states,
    columns_of,
    farthest,
    item,
    largest,
    operations_panel,
    our_curves,
    over_time,
    run_curves,
    vanishing,
)
from axode.mechanism.mechanism import Mechanism
from axode.numerics.rank import pseudo_inverse, singular_vectors
from axode.numerics.tolerances import NEGLIGIBLE, RANK
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.symbolic.equations import Equations
from axode.symbolic.formulations.deficient_arms import (
    PseudoJointFormulation,
    ReducedOrderFormulation,
)

ANGLES = tuple(f"theta{j}" for j in JOINTS)
METHODS = ("spatial_operators", "pseudo_joints", "reduced_order")
TORQUES = {
    "tau11": "12.7",
    "tau12": "2 * sin(9 * t) - 1.9",
    "tau13": "0.5",
    "tau21": "3 * sin(7 * t) - 15.7",
    "tau22": "-1.7",
    "tau23": "0.5",
}
DURATION, SPACING = 1.0, 0.001  # [s]
JUMP = 0.1  # of entries of orthonormal rows from one sample to the next
SMOOTH = 0.02  # of the largest entry, from one sample to the next
FEWER = 1e4  # operations that dropping rows may save


@item("arms-operations", "yesiloglu", "remedies for arms that lack freedoms")
def operations() -> ItemResult:
    """Operations of direct dynamics, and R and D along a motion."""
    robot = arms_in_grip()
    equations = {name: robot.derive(name) for name in METHODS}
    one = equations["pseudo_joints"]
    runs = [_run(e) for e in (one, robot.derive())]
    run, by = runs[0], PseudoJointFormulation(one.system)
    reduced = ReducedOrderFormulation(one.system)
    J, R, D, M, free, total, B, beta = at_states(
        one, run, reduced.J, reduced.R, by.D, by.mass_matrix, by.six_steps.free, by.six_steps.total,
        *by.closure,
    )  # fmt: skip
    singular = [_by_singular_vectors(*state) for state in zip(J, M, free, B, beta, strict=True)]
    R_s, by_svd = (np.array(values) for values in zip(*singular, strict=True))
    changes = {name: _changes(values) for name, values in (("R_s", R_s), ("R", R), ("D", D))}
    jumps = int((changes["R_s"] > JUMP).sum())
    counts = {name: _counted(e) for name, e in equations.items()}
    others = {"3-RPS": _counts(build("platform_3rps"))}
    rows, columns = J.shape[1:]
    by_decomposition = counts["spatial_operators"] + 14 * rows * columns**2 - 2 * columns**3
    size = largest(total)
    checks = [
        vanishing(
            "accelerations with R of (11) by singular vectors and by (17) apart by",
            apart(by_svd, total),
            "rad/s²",
            within=NEGLIGIBLE * size,
        ),
        vanishing("jumps of R by singular vectors, fewer than one", max(0, 1 - jumps), within=0),
        vanishing(
            "share by which D of (15) and (16) changes in 1 ms",
            largest(changes["D"]) / largest(D),
            within=SMOOTH,
        ),
        vanishing("R by reflections changes in 1 ms by", largest(changes["R"]), within=SMOOTH),
        at_most(
            "operations with pseudo joints beyond those of a singular value decomposition",
            counts["pseudo_joints"],
            by_decomposition,
        ),
        *(
            at_most(
                f"operations with pseudo joints beyond six steps without dependent rows, {name}",
                found["pseudo_joints"],
                found["spatial_operators"],
                why="dropping the rows that follow from others costs less (erratum D-6)",
                explained=FEWER,
            )
            for name, found in ({"arms": counts} | others).items()
        ),
        vanishing(
            "motions by 'pseudo_joints' and by 'recursive' apart by",
            farthest(run, ANGLES, (runs[1][name] for name in ANGLES)),
            "rad",
            within=1e-6,
        ),
    ]
    counts["singular vectors"] = by_decomposition
    angles = {name: rf"$\theta_{{{j}}}$" for name, j in zip(ANGLES, JOINTS, strict=True)}
    rates = our_curves(
        run.time, (changes["R_s"], changes["R"]), ("singular vectors", "reflections")
    )
    panels = [
        over_time("joint angles", "[rad]", run_curves(run, angles)),
        over_time("change of R in 1 ms", "", rates),
        *(
            operations_panel(f"operations, {name}", found)
            for name, found in ({"arms": counts} | others).items()
        ),
    ]
    table = columns_of(run, ANGLES)
    table |= {f"{name}_ddot [rad/s^2]": total[:, k, 0] for k, name in enumerate(ANGLES)}
    table |= {f"change of {name} [1]": values for name, values in changes.items()}
    return ItemResult(table, panels, CAPTION.format(jumps), checks)


CAPTION = (
    "Two planar arms grip each other and move for 1 s under given torques. The source says, "
    "after (14) and in its conclusion, that singular vectors may jump and that pseudo joints take "
    "less computation. R of (11) by singular vectors of J jumps {} times; R by Householder "
    "reflections (13) and D of (15), (16) do not. No acceleration of (17) feels it, because (12) "
    "and (14) multiply R by its transpose. Operations are those of direct dynamics with the data "
    "as numbers; a singular value decomposition of m x n is counted as 14 m n² - 2 n³."
)


def _run(equations: Equations) -> Trajectory:
    return simulate(
        equations.compile("interpreter"),
        DURATION,
        input=TORQUES,
        save_every=SPACING,
        progress=False,
        rtol=1e-10,
        atol=1e-12,
    )


def _by_singular_vectors(J: Array, M: Array, free: Array, B: Array, beta: Array) -> list[Array]:
    """R of (11), and accelerations by the six steps in it, with a pseudo-inverse."""
    U, s, _ = singular_vectors(J)
    R = U[:, : int((s > RANK * s[0]).sum())].T
    A_r = (B @ pseudo_inverse(J)) @ R.T  # A~ on what the tips can do
    spread = np.linalg.solve(M, (A_r @ R @ J).T)
    inner = pseudo_inverse(A_r @ R @ J @ spread, tolerance=RANK, symmetric=True)
    return [R, free - spread @ (inner @ (B @ free + beta))]


def _changes(values: Array) -> Array:
    """Largest change of an entry from each sample to the next, none before the first."""
    return np.concatenate([[0.0], np.abs(np.diff(values, axis=0)).max(axis=(1, 2))])


def _counted(equations: Equations) -> int:
    model = equations.compile("interpreter", parameters="fixed")
    return model.operations("forward_dynamics")


def _counts(mechanism: Mechanism) -> dict[str, int]:
    return {name: _counted(mechanism.derive(name, self_check=False)) for name in METHODS}
