"""Explicit steps of many stages: weighted sums of rates as loops, which keep the code short."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, WeightedSum, slices
from axode.numerics.tolerances import TINY
from axode.problems.steps.adaptive import CONTROL, Interpolant, control, error_size
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.tableaus import ButcherTableau


def weighted_stages(method: ButcherTableau, d: Dynamics) -> list[Operation]:
    """Find the rates of all stages but the first; the last one is at x_s, q_s, nu_s and t_s.

    Where stiffness is looked for, the state of the last stage but one is kept as well. Times and
    weights of all stages are found together, so that the stages share their code.
    """
    count, rows = len(method.stages), (*method.stages, *method.inner)

    def begin(q: Vector, nu: Vector, w: Vector, t: Vector, h: Vector) -> dict[str, Vector]:
        times = {_time(method, n): [t[0] + float(method.nodes[n - 1]) * h[0]] for n in _later(rows)}
        weights = [x for n in _later(rows) for x in _times(h[0], _used(method, rows[n - 1])[1])]
        return {"x": [*q, *nu, *w], "weights": weights, **times}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "t": 1, "h": 1}
    made = ("x", "weights", *(_time(method, n) for n in _later(rows)))
    operations: list[Operation] = [
        Evaluate(formula_tape("begin", sizes, begin), ("q", "nu", "w", "t", "h_s", *made))
    ]
    for number in range(2, count + 1):
        at = f"{number}" if d.stiffness and number == count - 1 else "s"
        operations += _compact_stage(method, d, number, at)
    return operations


def inner_stages(method: ButcherTableau, d: Dynamics, begun: str) -> list[Operation]:
    """Find the rates that the interpolant alone needs, of a step from the state x.

    Args:
        method: The coefficients.
        d: Tapes of the model.
        begun: Name of the time when the step began.
    """
    numbers = range(len(method.stages) + 1, len(method.rates) + 1)
    return [x for number in numbers for x in _compact_stage(method, d, number, "d", begun)]


def _compact_stage(
    method: ButcherTableau, d: Dynamics, number: int, at: str, begun: str = "t"
) -> list[Operation]:
    """Find rate k(number); the state of the stage is x, q and nu with the ending `at`."""
    rows = (*method.stages, *method.inner)
    rates, _ = _used(method, rows[number - 1])
    first = sum(1 + len(_used(method, row)[0]) for row in rows[1 : number - 1])

    def split(x: Vector) -> dict[str, Vector]:
        return {"q": x[: d.n_q], "nu": x[d.n_q : d.n_q + d.n_nu]}

    split_tape = formula_tape("split", {"x": d.n_k}, split)
    time = _time(method, number)
    return [
        WeightedSum(("weights", first), slices("x", *rates), (f"x_{at}", 0), d.n_k),
        Evaluate(split_tape, (f"x_{at}", f"q_{at}", f"nu_{at}")),
        *d.rate_at(f"q_{at}", f"nu_{at}", time, f"k{number}", begun),
    ]


def _later(rows: Sequence[Sequence[Fraction]]) -> range:
    """Numbers of all stages but the first."""
    return range(2, len(rows) + 1)


def _time(method: ButcherTableau, number: int) -> str:
    """Name of the time of a stage."""
    return "t_s" if number == len(method.stages) else f"t_{number}"


def weighted_finish(method: ButcherTableau, d: Dynamics, made: Sequence[str]) -> list[Operation]:
    """Find the new state, its error, the next step size, and whether the step is accepted."""
    n = d.n_q + d.n_nu
    estimates = {"e": method.error, "c": method.coarse}
    used = {name: _used(method, row) for name, row in estimates.items()}

    def weigh(h: Vector) -> dict[str, Vector]:
        return {name: [h[0] * w for w in weights] for name, (_, weights) in used.items()}

    def finish(x: Vector, x_n: Vector, e: Vector, c: Vector, **v: Vector) -> dict[str, Vector]:
        fine, coarse = (
            error_size(x[:n], x_n[:n], errors[:n], v["rtol"][0], v["atol"][0]) for errors in (e, c)
        )
        # E. Hairer and others, section II.10
        both = fine * fine + 0.01 * coarse * coarse
        size = (both > TINY).then(fine * fine / both.most(TINY).sqrt(), fine)
        return {**control(size, v, 1.0 / method.error_order), **d.split(x_n)}

    sizes = dict.fromkeys(("x", "x_n", "e", "c"), d.n_k) | dict.fromkeys(CONTROL, 1)
    given = ("x", "x_s", "x_e", "x_c", *CONTROL)
    sums = [
        WeightedSum((f"{name}_w", 0), slices(*rates), (f"x_{name}", 0), d.n_k)
        for name, (rates, _) in used.items()
    ]
    return [
        Evaluate(formula_tape("estimates", {"h": 1}, weigh), ("h_s", "e_w", "c_w")),
        *sums,
        Evaluate(formula_tape("finish", sizes, finish), (*given, *made)),
    ]


def weighted_interpolant(method: ButcherTableau, d: Dynamics) -> Interpolant:
    """Interpolate the state inside the step that was accepted last, which began at x."""
    rows = {rate: row for rate, row in zip(method.rates, method.dense, strict=True) if any(row)}

    def weigh(part: Vector, h: Vector) -> dict[str, Vector]:
        return {"weights": _times(h[0], [polynomial(part[0], row) for row in rows.values()])}

    tape = formula_tape("dense_weights", {"part": 1, "h": 1}, weigh)
    return lambda part, x: [
        Evaluate(tape, (part, "h_s", "dense_w")),
        WeightedSum(("dense_w", 0), slices("x", *rows), (x, 0), d.n_k),
    ]


def polynomial(s: Formula, row: Sequence[Fraction]) -> Formula:
    """Evaluate a polynomial without a constant by its coefficients."""
    value = 0.0 * s
    for coefficient in reversed(row):
        value = float(coefficient) + s * value
    return s * value


def _used(method: ButcherTableau, row: Sequence[Fraction]) -> tuple[list[str], list[float]]:
    """Names of the rates that a row weighs, and their weights."""
    pairs = [(k, float(a)) for k, a in zip(method.rates, row, strict=False) if a]
    return [k for k, _ in pairs], [a for _, a in pairs]


def _times(h: Formula, weights: Sequence[float | Formula]) -> list[Formula]:
    """Weights of a state, one, and of rates."""
    return [1.0 + 0.0 * h, *(h * w for w in weights)]
