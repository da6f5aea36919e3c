"""Detect explicit steps that are short because of stability, not accuracy.

Between the last two stages of the methods of Dormand and Prince, which share their time, lies a
direction along which the rate's slope is seen; steps that are as long as stability allows have a
slope times length of about 3.3, of order eight of about 6.1. The rule of counting is that of
E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, section IV.2.
"""

from __future__ import annotations

from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import RUNNING, STIFF
from axode.problems.steps.tableaus import DOPRI5, EXPLICIT_METHODS

SMOOTH_SLOPE = 30.0  # times the fifth root of the tolerance: what a smooth motion stays below
CALM_STEPS = 6  # steps below the limit in a row that reset the count


def stiff_slope(tolerance: float, stepper: str) -> float:
    """Slope times step size above which a step counts as stiff.

    A motion without fast parts has steps of a slope times length that is far below one if the
    tolerance is small.

    Args:
        tolerance: Relative error that a step may make.
        stepper: Name of an explicit method; of others nothing is counted.
    """
    method = EXPLICIT_METHODS.get(stepper, DOPRI5)
    smooth = SMOOTH_SLOPE * tolerance ** (1.0 / method.error_order)
    return min(method.stability, max(1.0, smooth))


def count_stiff_steps(d: Dynamics, stages: int) -> Evaluate:
    """Count steps at the limit of stability; the run stops at `stiff_limit` of them.

    The last stage is at q_s, nu_s, the one before at q and nu with its number.
    """
    n = d.n_q + d.n_nu
    q, nu, k, k_s = f"q_{stages - 1}", f"nu_{stages - 1}", f"k{stages - 1}", f"k{stages}"

    def count(**v: Vector) -> dict[str, Vector]:
        status, commit, h = (v[name][0] for name in ("status", "commit", "h_s"))
        before, after = [*v[q], *v[nu]], [*v["q_s"], *v["nu_s"]]
        zero = 0.0 * h
        bend = sum(((b - a) * (b - a) for a, b in zip(v[k][:n], v[k_s][:n], strict=True)), zero)
        move = sum(((b - a) * (b - a) for a, b in zip(before, after, strict=True)), zero)
        slope = v["stiff_slope"][0]
        at_limit = h * h * bend > slope * slope * move
        calm = at_limit.then(0.0, v["calm"][0] + 1.0)
        stiff = v["stiff"][0] + at_limit
        stiff = (calm >= float(CALM_STEPS)).then(0.0, stiff)
        stiff, calm = (
            commit.then(new, v[name][0]) for new, name in ((stiff, "stiff"), (calm, "calm"))
        )
        asks = commit & status.equals(float(RUNNING)) & (stiff >= v["stiff_limit"][0])
        return {"stiff": [stiff], "calm": [calm], "status": [asks.then(float(STIFF), status)]}

    sizes = {q: d.n_q, nu: d.n_nu, "q_s": d.n_q, "nu_s": d.n_nu, k: d.n_k, k_s: d.n_k}
    sizes |= dict.fromkeys(
        ("h_s", "commit", "status", "stiff", "calm", "stiff_limit", "stiff_slope"), 1
    )
    return Evaluate(formula_tape("stiff", sizes, count), (*sizes, "stiff", "calm", "status"))
