"""Detect explicit steps that are short because of stability, not accuracy.

Between the last two stages of Dormand and Prince's method, which share their time, lies a direction
along which the rate's slope is seen; steps that are as long as stability allows have a slope times
length of about 3.3. The rule of counting is that of E. Hairer and G. Wanner, *Solving Ordinary
Differential Equations II*, section IV.2.
"""

from __future__ import annotations

from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import RUNNING, STIFF

STABILITY_LIMIT = 3.25  # slope times step size where a step is as long as stability allows
SMOOTH_SLOPE = 30.0  # times the fifth root of the tolerance: what a smooth motion stays below
CALM_STEPS = 6  # steps below the limit in a row that reset the count


def stiff_slope(tolerance: float) -> float:
    """Slope times step size above which a step counts as stiff.

    A motion without fast parts has steps of a slope times length that is far below one if the
    tolerance is small.

    Args:
        tolerance: Relative error that a step may make.
    """
    return min(STABILITY_LIMIT, max(1.0, SMOOTH_SLOPE * tolerance**0.2))


def count_stiff_steps(d: Dynamics) -> Evaluate:
    """Count steps at the limit of stability; the run stops at `stiff_limit` of them.

    Stages six and seven are at q_6, nu_6 and q_s, nu_s.
    """
    n = d.n_q + d.n_nu

    def count(**v: Vector) -> dict[str, Vector]:
        status, commit, h = (v[name][0] for name in ("status", "commit", "h_s"))
        before, after = [*v["q_6"], *v["nu_6"]], [*v["q_s"], *v["nu_s"]]
        zero = 0.0 * h
        bend = sum(((b - a) * (b - a) for a, b in zip(v["k6"][:n], v["k7"][:n], strict=True)), zero)
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

    sizes = {"q_6": d.n_q, "nu_6": d.n_nu, "q_s": d.n_q, "nu_s": d.n_nu, "k6": d.n_k, "k7": d.n_k}
    sizes |= dict.fromkeys(
        ("h_s", "commit", "status", "stiff", "calm", "stiff_limit", "stiff_slope"), 1
    )
    return Evaluate(formula_tape("stiff", sizes, count), (*sizes, "stiff", "calm", "status"))
