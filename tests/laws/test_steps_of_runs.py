"""Derivatives of a step of a run, of any mechanism: forwards is the transpose of reverse, and both
are what differences of the same step in long doubles say."""

import numpy as np
import pytest

import axode as ax
import random_mechanisms
from axode.codegen.tape.operations import MEANING
from axode.codegen.tape.reversal import forward, reverse
from axode.problems.gradients.steps_of_cost import TABLEAUS, StepOfCost
from axode.problems.inputs.inputs import plan_input
from axode.problems.steps.compiled import dynamics_of
from variants import slow, some

TRANSPOSED = 1e-12  # relative
EXTENDED = 1e-9  # relative to the largest change: steps of nearly singular loops lose digits
STEP = 0.01  # [s]
FIRST = ("tree_0", "loop_30", "vehicle_0", "shaken_pendulum", "parametric_loop", "snakeboard")
NAMES = [n for n in random_mechanisms.MECHANISMS if n not in ("platform", "all_joints_tree")]


def evaluate(evaluations, known, number=np.float64):
    """Evaluations one after the other, in numbers of any precision."""
    known = {k: np.atleast_1d(np.asarray(v, dtype=number)) for k, v in known.items()}
    for e in evaluations:
        n = len(e.tape.inputs)
        arrays = [known[b] for b in e.buffers[:n]]
        with np.errstate(all="ignore"):
            made = e.tape.fold(
                lambda port, i, arrays=arrays: arrays[port][i],
                lambda x: number(x),
                lambda kind, *x: MEANING[kind](*x),
            )
        first = 0
        for b, port in zip(e.buffers[n:], e.tape.outputs, strict=True):
            known[b] = np.array(made[first : first + port.size], dtype=number)
            first += port.size
    return known


@pytest.mark.parametrize("name", slow(some(NAMES, *(set(NAMES) - set(FIRST))), "loop_30"))
def test_a_step_forwards_backwards_and_by_differences(name):
    model = random_mechanisms.MECHANISMS[name]().derive().compile("interpreter")
    if not model.independent:
        pytest.skip("nothing moves")
    rng = np.random.default_rng(5)
    d = dynamics_of(model, plan_input(model, None), ())
    step = StepOfCost(TABLEAUS["rk4"], d)
    q = ax.assemble(model, {}, t=0.2).q
    known = {"q": q, "nu": 0.3 * rng.normal(size=d.n_nu), "t": [0.2], "h": [STEP]}
    known["u"] = 0.1 * rng.normal(size=d.n_u)
    if "p" in d.given:
        known["p"] = model.parameter_vector()
    of = [n for n in ("q", "nu", "u", "p", "h") if n in known and len(known[n])]
    v = {n: rng.normal(size=len(known[n])) * (1e-2 if n in "ph" else 1.0) for n in of}
    w = {"q_n": rng.normal(size=d.n_q), "nu_n": rng.normal(size=d.n_nu)}
    along, changes = forward(step.evaluations, {n: f"{n}~" for n in of})
    against, parts = reverse(
        step.evaluations, {n: (f"{n}_weight",) for n in w}, {n: range(len(known[n])) for n in of}
    )
    made = evaluate(step.evaluations, known)
    made |= {f"{n}~": x for n, x in v.items()} | {f"{n}_weight": x for n, x in w.items()}
    ahead, back = evaluate(along, made), evaluate(against, made)
    moved = {n: ahead[changes[n]] for n in w}
    left = sum(float(w[n] @ moved[n]) for n in w)
    terms = [v[n] * back[part] for n in of for part in parts[n]]
    size = sum(float(np.abs(x).sum()) for x in terms)
    assert left == pytest.approx(sum(float(x.sum()) for x in terms), abs=TRANSPOSED * size)

    wide, k = np.longdouble, np.longdouble(2) ** -16
    ends = []
    for shift in (-2, -1, 1, 2):
        there = {
            n: wide(1) * np.asarray(x) + wide(shift) * k * v.get(n, 0) for n, x in known.items()
        }
        ends.append(evaluate(step.evaluations, there, wide))
    for n in w:
        a, b, c, e = (end[n] for end in ends)
        slope = (a - 8 * b + 8 * c - e) / (12 * k)
        scale = max(np.abs(ahead[changes[m]]).max() for m in w)
        assert np.abs(moved[n] - slope).max() < EXTENDED * scale
