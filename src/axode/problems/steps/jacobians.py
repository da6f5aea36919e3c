"""Derivatives of the rate inside a step: by the state, and by time."""

from __future__ import annotations

from axode.codegen.lowering.elimination import stride
from axode.codegen.lowering.program import Evaluate, JacobianColumns, Operation
from axode.codegen.tape.derivatives import forward_tape, reads
from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.tape import Tape
from axode.problems.steps.rates import Dynamics


def jacobian(d: Dynamics, *, timed: bool = False) -> JacobianColumns:
    """Derivatives by q and nu, and by t in a last column, at the present state, time and input.

    An input that is a formula or a function of the state is differentiated with the rate; one that
    is held stays.
    """
    x = d.n_q + d.n_nu
    moving = {"q": ("direction", 0), "nu": ("direction", d.n_q)}
    if timed:
        moving["t"] = ("direction", x)
    sizes = {"direction": x + timed}
    chain: list[Evaluate] = []
    if d.input is not None:
        chain.append(d.evaluate(forward_tape(d.input, moving, sizes), {}, "u_change"))
    elif timed and d.samples == "linear":
        tape = _slope_along(d, x + timed)
        chain.append(Evaluate(tape, ("u_slope", "direction", "u_change")))
    if chain:
        moving, sizes = moving | {"u": ("u_change", 0)}, sizes | {"u_change": d.n_u}
    chain.append(d.evaluate(forward_tape(d.rate, moving, sizes), {}, "k_change"))
    return JacobianColumns(tuple(chain), "direction", "k_change", "jacobian", stride(d.n_k))


def rate_by_time(d: Dynamics) -> Evaluate:
    """The last column of a Jacobian, as k_t."""
    n, x, places = d.n_k, d.n_q + d.n_nu, stride(d.n_k)
    tape = formula_tape(
        "by_time",
        {"jacobian": n * places},
        lambda jacobian: {"k_t": [jacobian[i * places + x] for i in range(n)]},
    )
    return Evaluate(tape, ("jacobian", "k_t"))


def whole_state(d: Dynamics) -> Evaluate:
    """The state as one vector x."""
    tape = formula_tape(
        "whole", {"q": d.n_q, "nu": d.n_nu, "w": 2}, lambda q, nu, w: {"x": [*q, *nu, *w]}
    )
    return Evaluate(tape, ("q", "nu", "w", "x"))


def state_parts(d: Dynamics) -> Evaluate:
    """Coordinates and speeds of a whole state x_s."""
    n = d.n_q + d.n_nu
    tape = formula_tape("parts", {"x": d.n_k}, lambda x: {"q": x[: d.n_q], "nu": x[d.n_q : n]})
    return Evaluate(tape, ("x_s", "q_s", "nu_s"))


def depends_on_time(d: Dynamics) -> bool:
    """Check whether the rate depends on time explicitly, inside a step."""
    if d.samples is not None:
        return d.samples == "linear" or reads(d.rate, "t")
    return reads(d.rate, "t") or (d.input is not None and reads(d.input, "t"))


def sample_slope(d: Dynamics) -> list[Operation]:
    """Find the slope of linearly interpolated samples in the middle of the step."""
    middle = formula_tape("middle", {"t": 1, "h": 1}, lambda t, h: {"t_m": [t[0] + 0.5 * h[0]]})

    def slope(
        a: Vector, b: Vector, t: Vector, start: Vector, period: Vector, count: Vector
    ) -> dict[str, Vector]:
        place = (t[0] - start[0]) / period[0]
        inside = (place > 0.0) & (place < count[0] - 1.0)
        return {"slope": [inside.then((y - x) / period[0], 0.0) for x, y in zip(a, b, strict=True)]}

    sizes = {"a": d.n_u, "b": d.n_u, "t": 1, "start": 1, "period": 1, "count": 1}
    samples = ("sample_start", "sample_period", "sample_count")
    return [
        Evaluate(middle, ("t", "h_s", "t_m")),
        *d.input_at("q", "nu", "t_m"),
        Evaluate(
            formula_tape("slope", sizes, slope), ("u_before", "u_after", "t_m", *samples, "u_slope")
        ),
    ]


def _slope_along(d: Dynamics, size: int) -> Tape:
    return formula_tape(
        "slope_along",
        {"slope": d.n_u, "direction": size},
        lambda slope, direction: {"u_change": [x * direction[-1] for x in slope]},
    )
