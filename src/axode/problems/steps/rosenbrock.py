r"""A Rosenbrock method of order 5(4) for stiff equations: implicit steps without iterations.

Each stage solves a linear system with the exact Jacobian J of the rate f, inputs that depend on
the state included:

.. math:: \Bigl(\frac{1}{h\gamma} - J\Bigr) y_i = f\Bigl(x + \sum_j a_{ij} y_j,\; t + \alpha_i h
          \Bigr) + \sum_j \frac{c_{ij}}{h} y_j + \gamma_i h\,\frac{\partial f}{\partial t}

The coefficients are those of Rodas5P: G. Steinebach, "Construction of Rosenbrock-Wanner method
Rodas5P and numerical benchmarks within the Julia Differential Equations package", *BIT Numer.
Math.* 63, 27, 2023. It is L-stable and stiffly accurate; the form without products by J is that of
E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, section IV.7.
"""

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
    Program,
    Slice,
    Solve,
    WeightedSum,
    slices,
    stride,
)
from axode.codegen.tape.tape import Port, Tape
from axode.problems.steps.adaptive import (
    CONTROL,
    Gathering,
    RepeatedStep,
    adaptive_program,
    clip_step,
    control,
    count_steps,
    error_size,
)
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import accept_step


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


def _table(text: str) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row.split())) for row in text.split(";"))


# Weights of earlier stages in the state of a stage and on its right side, from the second stage on.
A = (
    (),
    *_table("""
3;
2.849394379747939 0.45842242204463923;
-6.954028509809101 2.489845061869568 -10.358996098473584;
2.8029986275628964 0.5072464736228206 -0.3988312541770524 -0.04721187230404641;
-7.502846399306121 2.561846144803919 -11.627539656261098 -0.18268767659942256
  0.030198172008377946;
-7.502846399306121 2.561846144803919 -11.627539656261098 -0.18268767659942256
  0.030198172008377946 1;
-7.502846399306121 2.561846144803919 -11.627539656261098 -0.18268767659942256
  0.030198172008377946 1 1
"""),
)
C = (
    (),
    *_table("""
-14.155112264123755;
-17.97296035885952 -2.859693295451294;
147.12150275711716 -1.41221402718213 71.68940251302358;
165.43517024871676 -0.4592823456491126 42.90938336958603 -5.961986721573306;
24.854864614690072 -3.0009227002832186 47.4931110020768 5.5814197821558125 -0.6610691825249471;
30.91273214028599 -3.1208243349937974 77.79954646070892 34.28646028294783 -19.097331116725623
  -28.087943162872662;
37.80277123390563 -3.2571969029072276 112.26918849496327 66.9347231244047 -40.06618937091002
  -54.66780262877968 -9.48861652309627
"""),
)
# Times of the stages, and weights of the rate's derivative by time.
NODES, TIME = _table("""
0 0.6358126895828704 0.4095798393397535 0.9769306725060716 0.4288403609558664 1 1 1;
0.21193756319429014 -0.42387512638858027 -0.3384627126235924 1.8046452872882734
  2.325825639765069 0 0 0
""")
GAMMA = TIME[0]
NEW = (*A[-1], 1.0)  # state at the end; without the last stage it is one of order 4
# Interpolant of order 4: weights of the stages beside a straight line, powers 0 to 2.
DENSE = _table("""
25.948786856663858 -2.5579724845846235 10.433815404888879 -2.3679251022685204 0.524948541321073
  1.1241088310450404 0.4272876194431874 -0.17202221070155493;
-9.91568850695171 -0.9689944594115154 3.0438037242978453 -24.495224566215796 20.176138334709044
  15.98066361424651 -6.789040303419874 -6.710236069923372;
11.419903575922262 2.8879645146136994 72.92137995996029 80.12511834622643 -52.072871366152654
  -59.78993625266729 -0.15582684282751913 4.883087185713722
""")
COUNT = len(NODES)
YS = tuple(f"y{i + 1}" for i in range(COUNT))


def rodas5p_program(d: Dynamics, gathering: Gathering | None = None) -> Program:
    """Implicit steps as long as rtol and atol allow; see `adaptive_program`."""
    rate = d.rate_at("q", "nu", "t", "k1")
    slope = sample_slope(d) if d.samples == "linear" else []
    body: list[Operation] = [*clip_step(d), whole_state(d), *slope, *rate]
    system = StateSystem(d, depends_on_time(d))
    body += _jacobian(system)
    for number in range(COUNT):
        body += _stage(system, number)
    end = formula_tape("end", {"h": 1}, lambda h: {"weights": [1.0 + 0.0 * h[0]] * 2})
    made = ("t_n", "h_n", "accepted", "status", "q_n", "nu_n", "w_n")
    body += [
        Evaluate(end, ("h_s", "ends")),
        WeightedSum(
            ("ends", 0), slices("x_s", YS[-1]), ("x_n", 0), d.n_k
        ),  # the last stage is the error of a step
        Evaluate(_finish(d), ("x", "x_n", YS[-1], *CONTROL, *made)),
    ]

    def inside(part: str, made: str) -> list[Operation]:
        weights = Evaluate(_inside(), (part, "inside"))
        return [weights, WeightedSum(("inside", 0), slices("x", *YS), (made, 0), d.n_k)]

    body += [*d.closed(), *accept_step(d, inside=inside), count_steps()]

    return adaptive_program("rodas5p", d, RepeatedStep(body, inside), gathering)


def _jacobian(system: StateSystem) -> list[Operation]:
    """The Jacobian at the start of a step, and the system of every stage eliminated."""
    scale = formula_tape("scale", {"h": 1}, lambda h: {"scale": [1.0 / (GAMMA * h[0])]})
    return [
        *system.jacobian(),
        Evaluate(scale, ("h_s", "scale")),
        system.factor(),
        *([system.rate_by_time()] if system.timed else []),
    ]


def _stage(system: StateSystem, number: int) -> list[Operation]:
    """Find y of one stage."""
    d = system.d
    earlier, rate = YS[:number], "k1" if number == 0 else "k_s"
    operations: list[Operation] = []
    if number:
        time = formula_tape(
            f"stage{number + 1}",
            {"t": 1, "h": 1},
            lambda t, h: {
                "t_s": [t[0] + NODES[number] * h[0]],
                "weights": [1.0 + 0.0 * h[0], *(a + 0.0 * h[0] for a in A[number])],
            },
        )
        operations = [
            Evaluate(time, ("t", "h_s", "t_s", f"a{number}")),
            WeightedSum((f"a{number}", 0), slices("x", *earlier), ("x_s", 0), d.n_k),
            state_parts(d),
            *d.rate_at("q_s", "nu_s", "t_s", rate),
        ]
    timed = system.timed and TIME[number] != 0.0
    side = formula_tape(
        f"side{number + 1}",
        {"h": 1},
        lambda h: {
            "weights": [
                1.0 + 0.0 * h[0],
                *([TIME[number] * h[0]] if timed else []),
                *(c / h[0] for c in C[number]),
            ]
        },
    )
    known = (rate, "k_t", *earlier) if timed else (rate, *earlier)
    return [
        *operations,
        Evaluate(side, ("h_s", f"c{number}")),
        WeightedSum((f"c{number}", 0), slices(*known), (YS[number], 0), d.n_k),
        *system.solve(system.factor(), YS[number]),
    ]


def _finish(d: Dynamics) -> Tape:
    """Find the error, the next step size, whether the step is accepted, and the new state."""

    def finish(x: Vector, x_n: Vector, error: Vector, **v: Vector) -> dict[str, Vector]:
        n = d.n_q + d.n_nu
        size = error_size(x[:n], x_n[:n], error[:n], v["rtol"][0], v["atol"][0])
        return {**control(size, v), **d.split(x_n)}

    sizes = dict.fromkeys(("x", "x_n", "error"), d.n_k) | dict.fromkeys(CONTROL, 1)
    return formula_tape("finish", sizes, finish)


def _inside() -> Tape:
    """Weights of the start and of the stages at a part of the step."""

    def weights(part: Vector) -> dict[str, Vector]:
        s = part[0]
        made = [
            s * (new + (1.0 - s) * (a + s * (b + s * c)))
            for new, a, b, c in zip(NEW, *DENSE, strict=True)
        ]
        return {"weights": [1.0 + 0.0 * s, *made]}

    return formula_tape("inside", {"part": 1}, weights)
