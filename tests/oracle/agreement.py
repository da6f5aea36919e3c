"""Formulations against the oracle on one mechanism: by how much its equations do not hold."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

import axode as ax
from axode.oracle.body_laws import Oracle
from axode.symbolic.equations import Equations
from axode.symbolic.formulations.self_check import EXPLAINED, INSTANT, SelfCheck

# Everything but a defect: the description is wrong, does not close or does not move.
REFUSALS = (ax.MechanismError, ax.LoopNotClosed, ax.Immobile, ax.NotApplicable)
# of the terms of every sum
AGREE = 1e-9
ROUNDING, THIN = 1e-14, 1e-10  # of rows: what lies between is told apart by nobody
SHORT = 1e-5  # of the largest terms of a row: relative to more, rounding is below THIN
WELL_CONDITIONED = 1e5  # of the inertia on the independent speeds: beyond it digits are lost


@dataclass
class Verdict:
    """What became of one mechanism."""

    name: str
    refused: str = ""
    failed: str = ""
    lost: str = ""  # a rival that has too few digits for this mechanism
    errors: dict[str, float] = field(default_factory=dict)
    equations: Equations | None = None

    @property
    def worst(self) -> float:
        """Largest of its errors."""
        return max(self.errors.values(), default=0.0)


def judge(
    mechanism: ax.Mechanism, rivals: Sequence[str], *, bodies: bool = True, thin: bool = False
) -> Verdict:
    """Derive a mechanism by the default formulation and by rivals, and hold all to the oracle.

    Args:
        mechanism: What to derive.
        rivals: Other formulations.
        bodies: Whether to solve for all bodies in maximal coordinates, too.
        thin: Whether to compare the number of independent speeds with the rank of the oracle's
            rows, however small they are; `derive` may differ only where it reports that.
    """
    verdict = Verdict(mechanism.name)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            equations = mechanism.derive()
        _ = equations.forward_dynamics  # whose inertia may be refused only now
    except REFUSALS as refusal:
        verdict.refused = type(refusal).__name__
        return verdict
    except ax.SelfCheckFailed as failure:
        verdict.failed = str(failure)
        return verdict
    check = equations.self_check
    assert check is not None
    verdict.equations = equations
    if thin and not said:
        verdict.failed = count_fault(equations, check)
        if verdict.failed:
            return verdict
    for name in ("recursive", *rivals):
        try:
            rival = equations if name == "recursive" else Equations(equations.system, name)
        except ax.NotApplicable:
            continue
        for key, error in function_errors(rival, check).items():
            verdict.errors[f"{name} {key}"] = error
        # solved with the digits that the inertias leave; the self-check refuses these functions
        for key in (f"{name} direct", f"{name} inertia"):
            if verdict.errors[key] > AGREE and is_explained(verdict.errors[key], check):
                verdict.lost = f"{name}: {verdict.errors.pop(key):.1e}"
    if bodies:
        verdict.errors |= body_errors(equations, check)
    # the oracle's rows are those of the bodies as they are, apart by what the loops leave open
    allowed = max(map(check.allowed, check.states))
    wrong = {key: error for key, error in verdict.errors.items() if not error <= allowed}
    if wrong:
        verdict.failed = ", ".join(f"{key} off by {error:.1e}" for key, error in wrong.items())
    return verdict


def count_fault(equations: Equations, check: SelfCheck) -> str:
    """Return how the number of independent speeds misses the rank of the oracle's rows."""
    if any(row.disagreement for row in equations.system.report.dropped):
        return ""  # reported as left out although something is left of it
    own = len(equations.system.independent)
    for rows in check.oracle_rows:
        # the terms of a row with the shortest levers are rounding themselves
        A = rows.A / (rows.A_size + SHORT * rows.A_size.max(initial=1.0))[:, np.newaxis]
        sizes = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(0)
        free = A.shape[1] - int((sizes > THIN).sum())
        if own != free and not ((sizes > ROUNDING) & (sizes < THIN)).any():
            least = min(sizes[sizes > THIN], default=0.0)
            return f"{own} independent speeds without a word, and rows leave {free}: {least:.1e}"
    return ""


def is_explained(error: float, check: SelfCheck) -> bool:
    """Whether the equations leave no more digits than these."""
    return any(error <= EXPLAINED * check.condition(state) for state in check.states)


def function_errors(equations: Equations, check: SelfCheck) -> dict[str, float]:
    """How far the numbers of a formulation are from satisfying the oracle's equations."""
    e, system = equations, equations.system
    function = ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], [e.forward_dynamics, ca.densify(e.I)])
    errors = {"direct": 0.0, "inertia": 0.0}
    for i, state in enumerate(check.states):
        nu = state.v[list(system.independent)]
        direct, inertia = (
            np.array(x) for x in function(state.q, nu, state.u, INSTANT, system.defaults)
        )
        for key, name, values in (
            ("direct", "forward_dynamics", direct.ravel()),
            ("inertia", "mass_matrix", inertia.ravel()),
        ):
            found = check.function_errors(i, name, values, nu)
            errors[key] = max(errors[key], float(np.max(found, initial=0.0)))
    return errors


def body_errors(equations: Equations, check: SelfCheck) -> dict[str, float]:
    """Accelerations against all bodies in maximal coordinates, where these can be solved."""
    e, system = equations, equations.system
    v_dot = ca.substitute(e.accelerations, e.nu_dot, e.forward_dynamics)
    function = ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], [v_dot, ca.densify(e.I)])
    oracle, worst = Oracle(system.mechanism), 0.0
    kept = {row.name for row in system.kept}
    for state in check.states:
        nu = state.v[list(system.independent)]
        mine, inertia = (
            np.array(x) for x in function(state.q, nu, state.u, INSTANT, system.defaults)
        )
        if not inertia.size or np.linalg.cond(inertia) > WELL_CONDITIONED:
            continue
        solution = oracle.solve(state.q, state.v, state.u, INSTANT, kept)
        if solution.condition > WELL_CONDITIONED:
            continue
        scale = max(1.0, float(np.abs(solution.v_dot).max(initial=0.0)))
        worst = max(worst, float(np.abs(mine.ravel() - solution.v_dot).max(initial=0.0)) / scale)
    return {"all bodies": worst}
