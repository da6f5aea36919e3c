"""Derivatives of the rate inside a step, by the state and by time, and systems made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import forward_tape, reads
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.operations import Kind
from axode.codegen.tape.program import (
    Evaluate,
    FactorMatrix,
    JacobianColumns,
    Operation,
    Slice,
    Solve,
    WeightedSum,
    stride,
)
from axode.codegen.tape.tape import Port, Tape
from axode.problems.steps.rates import Dynamics


@dataclass(frozen=True)
class StateSystem:
    """The Jacobian of the rate at the start of a step, and systems (s 1 - J) z = r.

    The rate of a coordinate that is an independent speed is a row of J with a single one, so that
    its change follows from that of the speed, s dq = r + dnu. Such coordinates are eliminated from
    systems: half of a tree's unknowns. Nor do systems hold what no rate depends on, such as the
    place of a vehicle and the works, which follow from the others.

    Attributes:
        d: What moves.
        timed: Whether J has a last column, by time.
    """

    d: Dynamics
    timed: bool = False

    @cached_property
    def _followers(self) -> dict[int, int]:
        """Coordinates whose rates are independent speeds, by the place of the speed in a state."""
        table, found = self._table, dict[int, int]()
        width = table.outputs[0].size // self.d.n_k
        constants = {
            number: table.constants[table.operands[number, 0]]
            for number in np.unique(table.results).tolist()
            if table.kinds[number] == Kind.CONSTANT
        }
        for i in range(self.d.n_q):
            row = table.results[i * width : (i + 1) * width].tolist()
            entries = [(j, constants.get(number)) for j, number in enumerate(row)]
            entries = [(j, value) for j, value in entries if value != 0.0]
            if len(entries) == 1 and entries[0][1] == 1.0 and entries[0][0] >= self.d.n_q:
                found.setdefault(entries[0][0], i)
        return found

    @property
    def _table(self) -> Tape:
        assert self.d.rate_jacobian is not None
        return self.d.rate_jacobian

    @cached_property
    def _idle(self) -> set[int]:
        """Coordinates that neither the rate nor the input depends on."""
        table, law, d = self._table, self.d.input, self.d
        width = table.outputs[0].size // d.n_k
        places = np.reshape(table.results, (d.n_k, width))[:, : d.n_q]
        zero = np.flatnonzero(table.kinds == Kind.CONSTANT)
        zero = zero[table.constants[table.operands[zero, 0]] == 0.0]
        read = set[int]()
        if law is not None:
            names = [port.name for port in law.inputs]
            taken = law.operands[law.kinds == Kind.INPUT].tolist()
            read = {i for port, i, _ in taken if names[port] == "q"}
        return set(np.flatnonzero(np.isin(places, zero).all(axis=0)).tolist()) - read

    @cached_property
    def _kept(self) -> list[int]:
        """Places in a state of the unknowns of a system."""
        leaders, gone = list(self._followers), set(self._followers.values())
        rest = set(range(self.d.n_q + self.d.n_nu)) - set(leaders) - gone - self._idle
        return [*leaders, *sorted(rest)]

    @property
    def _columns(self) -> list[int]:
        """Places in a state of the columns of J, the eliminated ones last."""
        return [*self._kept, *self._followers.values()]

    @cached_property
    def rows(self) -> list[int]:
        """Places in a state of the rows of J, those that follow from the others last."""
        idle = sorted(self._idle - set(self._followers.values()))
        return [*self._kept, *idle, *range(self.d.n_q + self.d.n_nu, self.d.n_k)]

    @property
    def _size(self) -> int:
        """Columns of J, that by time included."""
        return len(self._columns) + self.timed

    @property
    def _places(self) -> int:
        """Places of a row of J."""
        return stride(len(self.rows) + len(self._followers))

    @property
    def width(self) -> int:
        """Numbers of a row of `slopes`."""
        return self._size + 1 + self.d.n_u

    def jacobian(self) -> list[Operation]:
        """Derivatives by q and nu, and by t if asked for, at the present state, time and input.

        An input that is a formula or a function of the state is differentiated with the rate; one
        that is held stays.
        """
        d, size, places = self.d, self._size, self._places
        found: list[Operation] = [d.evaluate(self._slopes(), {}, "slopes")]
        inputs: list[Slice] = []
        if d.input is not None:
            along = d.evaluate(self._input_along(d.input), {}, "u_change")
            found.append(JacobianColumns((along,), "direction", "u_change", "u_slopes", places))
            inputs = [("u_slopes", k * places) for k in range(d.n_u)]
        for row, i in enumerate(self.rows):
            first = row * self.width
            vectors = (("slopes", first), *(inputs if i >= d.n_q else ()))
            result = ("jacobian", row * places)
            found.append(WeightedSum(("slopes", first + size), vectors, result, size))
        return found

    def _slopes(self) -> Tape:
        """Derivatives of the rate by q, nu and t if asked for, then a one and those by u.

        Row by row. The one and those by u are weights: of the row itself, and of derivatives of
        the input.
        """
        d, table, x = self.d, self._table, self.d.n_q + self.d.n_nu
        builder = TapeBuilder()
        arguments = [
            [builder.input(k, i) for i in range(port.size)] for k, port in enumerate(table.inputs)
        ]
        numbers = np.reshape(builder.replay(table, arguments), (d.n_k, x + d.n_u + 1))
        one = builder.constant(1.0)
        results: list[int] = []
        for *by_state, by_time in numbers[self.rows].tolist():
            results += [by_state[j] for j in self._columns]
            results += [*([by_time] if self.timed else []), one, *by_state[x:]]
        port = Port("slopes", (len(self.rows), self.width))
        return Tape.build("slopes", table.inputs, (port,), builder, results)

    def _input_along(self, law: Tape) -> Tape:
        """Derivative of the input along a direction whose numbers are in the order of columns."""
        x = self.d.n_q + self.d.n_nu
        moving = {"q": ("direction", 0), "nu": ("direction", self.d.n_q)}
        moving |= {"t": ("direction", x)} if self.timed else {}
        along = forward_tape(law, moving, {"direction": x + self.timed})
        *others, direction = along.inputs
        builder = TapeBuilder()
        column = {j: k for k, j in enumerate(self._columns)} | {x: len(self._columns)}
        zero = builder.constant(0.0)
        arguments = [
            [builder.input(k, i) for i in range(port.size)] for k, port in enumerate(others)
        ]
        arguments.append(
            [
                builder.input(len(others), column[j]) if j in column else zero
                for j in range(direction.size)
            ]
        )
        results = builder.replay(along, arguments)
        ports = (*others, Port(direction.name, (self._size,)))
        return Tape.build(along.name, ports, along.outputs, builder, results)

    def factor(self, suffix: str = "", *, pair: bool = False) -> FactorMatrix:
        """Eliminate scale 1 - J, the buffer of the scale ending like those of the matrix."""
        names = (f"scale{suffix}", f"matrix{suffix}", f"order{suffix}")
        counts = len(self.rows), len(self._kept)
        return FactorMatrix("jacobian", *names, *counts, pair, len(self._followers))

    def solve(self, system: FactorMatrix, vector: str) -> list[Operation]:
        """Solve an eliminated system for all of a state, in place."""
        if not system.eliminated:
            return [Solve(system, vector)]
        n, leaders, gone = self.d.n_k, list(self._followers), list(self._followers.values())
        rows, kept = self.rows, len(self.rows)
        sorted_vector = f"sorted{'_pair' * system.pair}"

        def scaled(v: Vector, scale: Vector) -> list[Formula]:
            """Divide parts of a number by the scale."""
            if not system.pair:
                return [v[0] / scale[0]]
            size = scale[0] * scale[0] + scale[1] * scale[1]
            real, imaginary = scale[0] / size, scale[1] / size
            return [v[0] * real + v[1] * imaginary, v[1] * real - v[0] * imaginary]

        def sort(v: Vector, scale: Vector) -> dict[str, Vector]:
            parts = [v[first : first + n] for first in range(0, n * system.parts, n)]
            known = [scaled([part[i] for part in parts], scale) for i in gone]
            made = [
                [*(part[i] for i in rows), *(x[k] for x in known)] for k, part in enumerate(parts)
            ]
            return {"sorted": [x for part in made for x in part]}

        def restore(v: Vector, scale: Vector) -> dict[str, Vector]:
            parts = [v[first : first + n] for first in range(0, n * system.parts, n)]
            speeds = [scaled([part[e] for part in parts], scale) for e in range(len(leaders))]
            made = []
            for k, part in enumerate(parts):
                whole = dict(zip(rows, part, strict=False))
                for e, i in enumerate(gone):
                    whole[i] = part[kept + e] + speeds[e][k]
                made += [whole[i] for i in range(n)]
            return {"restored": made}

        sizes = {"v": n * system.parts, "scale": system.parts}
        return [
            Evaluate(formula_tape("sort", sizes, sort), (vector, system.scale, sorted_vector)),
            Solve(system, sorted_vector),
            Evaluate(
                formula_tape("restore", sizes, restore), (sorted_vector, system.scale, vector)
            ),
        ]

    def rate_by_time(self) -> Evaluate:
        """The last column of a Jacobian, as k_t, with what the slope of samples adds."""
        d, rows, width = self.d, self.rows, self.width
        x, places = len(self._columns), self._places
        sizes = {"jacobian": len(rows) * places}
        if d.samples == "linear":
            sizes |= {"slopes": len(rows) * width, "u_slope": d.n_u}

        def column(jacobian: Vector, **v: Vector) -> dict[str, Vector]:
            found = [0.0 * jacobian[0]] * d.n_k
            for row, i in enumerate(rows):
                found[i] = jacobian[row * places + x]
                for k, slope in enumerate(v.get("u_slope", []) if i >= d.n_q else []):
                    found[i] += v["slopes"][row * width + x + 2 + k] * slope
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
