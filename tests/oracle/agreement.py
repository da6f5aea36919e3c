"""Formulations against the oracle on one mechanism: by how much its equations do not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

import axode as ax
from axode.oracle.dynamics import Oracle
from axode.symbolic.equations import Equations
from axode.symbolic.self_check import SelfCheck

# Everything but a defect: the description is wrong, does not close or does not move.
REFUSALS = (ax.MechanismError, ax.LoopNotClosed, ax.Immobile, ax.NotApplicable)
# of the terms of every sum
AGREE = 1e-9
FEW = 1e8  # a condition that leaves fewer digits than are asked for
WELL_CONDITIONED = 1e5  # of the inertia on the independent speeds: beyond it digits are lost


@dataclass
class Verdict:
    """What became of one mechanism."""

    name: str
    refused: str = ""
    failed: str = ""
    lost: str = ""  # a rival that has too few digits for this mechanism
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> float:
        """Largest of its errors."""
        return max(self.errors.values(), default=0.0)


def judge(mechanism: ax.Mechanism, rivals: Sequence[str]) -> Verdict:
    """Derive a mechanism by the default formulation and by rivals, and hold all to the oracle."""
    verdict = Verdict(mechanism.name)
    try:
        equations = mechanism.derive()
    except REFUSALS as refusal:
        verdict.refused = type(refusal).__name__
        return verdict
    except ax.SelfCheckFailed as failure:
        verdict.failed = str(failure)
        return verdict
    check = equations.self_check
    assert check is not None
    for name in ("recursive", *rivals):
        try:
            rival = equations if name == "recursive" else Equations(equations.system, name)
        except ax.NotApplicable:
            continue
        for key, error in function_errors(rival, check).items():
            verdict.errors[f"{name} {key}"] = error
        # these invert the inertia of the tree, with the digits that it has: the check refuses them
        inverts = name in ("multipliers", "spatial_operators")
        if inverts and verdict.errors[f"{name} direct"] > AGREE and digits_lost(check) > FEW:
            verdict.lost = f"{name}: {verdict.errors.pop(f'{name} direct'):.1e}"
    verdict.errors |= body_errors(equations, check)
    wrong = {key: error for key, error in verdict.errors.items() if not error <= AGREE}
    if wrong:
        verdict.failed = ", ".join(f"{key} off by {error:.1e}" for key, error in wrong.items())
    return verdict


def digits_lost(check: SelfCheck) -> float:
    """Condition of the tree's inertia, or of the system of all bodies if that is worse."""
    worst = 1.0
    for state in check.states:
        M = check.oracle.mass_matrix(state.q)
        solution = check.oracle.solve(state.q, state.v, state.u, check.instant)
        worst = max(worst, float(np.linalg.cond(M)), solution.condition)
    return worst


def function_errors(equations: Equations, check: SelfCheck) -> dict[str, float]:
    """How far the numbers of a formulation are from satisfying the oracle's equations."""
    e, system = equations, equations.system
    function = ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], [e.forward_dynamics, ca.densify(e.I)])
    errors = {"direct": 0.0, "inertia": 0.0}
    for i, state in enumerate(check.states):
        nu = state.v[list(system.independent)]
        direct, inertia = (np.array(x) for x in function(
            state.q, nu, state.u, check.instant, system.defaults))  # fmt: skip
        for key, name, values in (("direct", "forward_dynamics", direct.ravel()),
                                  ("inertia", "mass_matrix", inertia.ravel())):  # fmt: skip
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
        mine, inertia = (np.array(x) for x in function(
            state.q, nu, state.u, check.instant, system.defaults))  # fmt: skip
        if not inertia.size or np.linalg.cond(inertia) > WELL_CONDITIONED:
            continue
        solution = oracle.solve(state.q, state.v, state.u, check.instant, kept)
        if solution.condition > WELL_CONDITIONED:
            continue
        scale = max(1.0, float(np.abs(solution.v_dot).max(initial=0.0)))
        worst = max(worst, float(np.abs(mine.ravel() - solution.v_dot).max(initial=0.0)) / scale)
    return {"all bodies": worst}
