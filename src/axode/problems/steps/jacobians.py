"""Derivatives of the rate inside a step: by the state, and by time."""

from __future__ import annotations

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import forward_tape, reads
from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import (
    Evaluate,
    JacobianColumns,
    Operation,
    Slice,
    WeightedSum,
    stride,
)
from axode.codegen.tape.tape import Port, Tape
from axode.problems.steps.rates import Dynamics


def jacobian(d: Dynamics, *, timed: bool = False) -> list[Operation]:
    """Derivatives by q and nu, and by t in a last column, at the present state, time and input.

    An input that is a formula or a function of the state is differentiated with the rate; one that
    is held stays.
    """
    tape, size, places = _laid_out(d, timed), d.n_q + d.n_nu + timed, stride(d.n_k)
    found: list[Operation] = [d.evaluate(tape, {}, "slopes")]
    inputs: list[Slice] = []
    if d.input is not None:
        moving = {"q": ("direction", 0), "nu": ("direction", d.n_q)}
        moving |= {"t": ("direction", size - 1)} if timed else {}
        along = d.evaluate(forward_tape(d.input, moving, {"direction": size}), {}, "u_change")
        found.append(JacobianColumns((along,), "direction", "u_change", "u_slopes", places))
        inputs = [("u_slopes", k * places) for k in range(d.n_u)]
    for i in range(d.n_k):
        row, one = (i * tape.outputs[0].shape[1] + k for k in (0, size))
        vectors = (("slopes", row), *(inputs if i >= d.n_q else ()))
        found.append(WeightedSum(("slopes", one), vectors, ("jacobian", i * places), size))
    return found


def _laid_out(d: Dynamics, timed: bool) -> Tape:
    """Derivatives of the rate by q, nu and t if asked for, then a one and those by u, row by row.

    The one and those by u are weights: of the row itself, and of derivatives of the input.
    """
    table, x = d.rate_jacobian, d.n_q + d.n_nu
    assert table is not None
    builder = TapeBuilder()
    arguments = [
        [builder.input(k, i) for i in range(port.size)] for k, port in enumerate(table.inputs)
    ]
    numbers = iter(builder.replay(table, arguments))
    one = builder.constant(1.0)
    results = []
    for *by_state, by_time in zip(*[numbers] * (x + d.n_u + 1), strict=True):
        results += [*by_state[:x], *([by_time] if timed else []), one, *by_state[x:]]
    port = Port("slopes", (d.n_k, len(results) // d.n_k))
    return Tape.build("slopes", table.inputs, (port,), builder, results)


def rate_by_time(d: Dynamics) -> Evaluate:
    """The last column of a Jacobian, as k_t, with what the slope of samples adds."""
    x, places, width = d.n_q + d.n_nu, stride(d.n_k), d.n_q + d.n_nu + 2 + d.n_u
    sizes = {"jacobian": d.n_k * places}
    if d.samples == "linear":
        sizes |= {"slopes": d.n_k * width, "u_slope": d.n_u}

    def column(jacobian: Vector, **v: Vector) -> dict[str, Vector]:
        found = [jacobian[i * places + x] for i in range(d.n_k)]
        for k, slope in enumerate(v.get("u_slope", [])):
            for i in range(d.n_q, d.n_k):
                found[i] += v["slopes"][i * width + x + 2 + k] * slope
        return {"k_t": found}

    return Evaluate(formula_tape("by_time", sizes, column), (*sizes, "k_t"))


def whole_state(d: Dynamics) -> Evaluate:
    """The state as one vector x."""
    tape = formula_tape(
        "whole", {"q": d.n_q, "nu": d.n_nu, "w": 2}, lambda q, nu, w: {"x": [*q, *nu, *w]}
    )
    return Evaluate(tape, ("q", "nu", "w", "x"))


def state_parts(d: Dynamics) -> Evaluate:
    """Coordinates and speeds of a whole state x_s, quaternions of length one.

    Lengths then have no effect, and a Jacobian without derivatives by them is exact.
    """

    def parts(x: Vector) -> dict[str, Vector]:
        q = list(x[: d.n_q])
        for four in d.quaternions:
            scale = 1.0 / sum((q[i] * q[i] for i in four[1:]), q[four[0]] * q[four[0]]).sqrt()
            for i in four:
                q[i] = q[i] * scale
        return {"q": q, "nu": x[d.n_q : d.n_q + d.n_nu]}

    return Evaluate(formula_tape("parts", {"x": d.n_k}, parts), ("x_s", "q_s", "nu_s"))


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
