"""One step of a run and what it adds to a cost, as evaluations that can be differentiated.

The steps are those of `problems.steps.explicit`, each buffer written once. The length of a step is
an argument: whatever chose it, its derivatives are those of the step that was computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, ReadRow
from axode.codegen.tape.reversal import needed_evaluations, part_of_tape
from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import SEVEN_DIGITS
from axode.problems.steps.explicit import increment
from axode.problems.steps.rates import Dynamics, inside_step, sample_place
from axode.problems.steps.tableaus import DOPRI5, RK4, ButcherTableau

TABLEAUS = {
    method.name: method for method in (RK4, DOPRI5)
}  # methods whose steps can be differentiated


@dataclass(frozen=True)
class CostTapes:
    """What a cost is made of.

    Attributes:
        running: t, q, nu (p, u) to the rate of the cost; None if there is none.
        match: t, q, nu, y (p) to the cost of one measured instant; None if there is none.
    """

    running: Tape | None = None
    match: Tape | None = None

    @property
    def measured(self) -> int:
        """Numbers per measured instant."""
        if self.match is None:
            return 0
        return next(port.size for port in self.match.inputs if port.name == "y")

    @property
    def key(self) -> tuple[str | None, ...]:
        """Names the tapes uniquely."""
        return tuple(None if tape is None else tape.digest for tape in (self.running, self.match))


@dataclass(frozen=True)
class StepOfCost:
    """A step from q, nu at t by h to q_n, nu_n, which adds dc to the cost.

    Attributes:
        method: What the step is made of.
        d: Tapes of model and input.
        cost: Tapes of the cost.
        adjoints: Gradients of the rate and of the projection that were derived from equations, by
            the names "rate" and "projection", where there are.
    """

    method: ButcherTableau
    d: Dynamics
    cost: CostTapes = CostTapes()
    adjoints: Mapping[str, Tape] = field(default_factory=dict)

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """Stages that the end of the step depends on; the last one may only begin the next step."""
        return tuple(range(self.method.used_stages))

    @property
    def logged(self) -> dict[str, int]:
        """What the log holds of a step, in order: buffers and their sizes."""
        d = self.d
        rates = {f"k_{i}": d.n_q + d.n_nu for i in range(d.logged_stages)}
        return {"q": d.n_q, "nu": d.n_nu, **rates, "t": 1, "h": 1, **d.logged_breaks}

    def needed(self, wanted: Collection[str]) -> list[Evaluate]:
        """Evaluations on which some buffers depend, without those whose results are logged."""
        known = set(self.logged)
        made = [e for e in self.evaluations if not known & set(e.buffers[len(e.tape.inputs) :])]
        return needed_evaluations(made, wanted)

    @cached_property
    def nodes(self) -> tuple[Fraction, ...]:
        """Different times of stages, as parts of the step."""
        return tuple(dict.fromkeys(self.method.nodes[i] for i in self.stages))

    @cached_property
    def _rate(self) -> Tape:
        """Rates of q and nu; the work that is done does not count."""
        return part_of_tape(self.d.rate, range(self.d.n_q + self.d.n_nu))

    @cached_property
    def known_adjoints(self) -> dict[str, Tape]:
        """Gradients that were derived from equations, by the digests of what they belong to."""
        tapes = {"rate": self._rate, "projection": self.d.projection}
        return {
            tape.digest: self.adjoints[name]
            for name, tape in tapes.items()
            if tape is not None and name in self.adjoints
        }

    # samples ------------------------------------------------------------------------------------

    @property
    def sampled(self) -> dict[str, str]:
        """Buffers that hold samples of the input, with those of their rows."""
        if self.d.samples is None:
            return {}
        places = range(len(self.nodes))
        if self.d.samples == "hold":
            return {f"u_{k}": f"row_{k}" for k in places}
        return {f"u_before_{k}": f"row_{k}" for k in places} | {
            f"u_after_{k}": f"next_row_{k}" for k in places
        }

    def reading(self) -> list[Operation]:
        """Read what tables hold for the step t, h: samples of the input, measured numbers."""
        made: list[Operation] = []
        d = self.d
        if d.samples is not None:
            inside = d.inside if d.samples == "hold" else 0.0
            for k, node in enumerate(self.nodes):
                place = formula_tape(
                    "place",
                    {"t": 1, "h": 1, "start": 1, "period": 1},
                    lambda t, h, start, period, c=float(node): sample_place(
                        t[0] + c * h[0], t[0] + 0.5 * h[0], start[0], period[0], inside
                    ),
                )
                found = (f"row_{k}", f"next_row_{k}", f"part_{k}")
                made.append(Evaluate(place, ("t", "h", "sample_start", "sample_period", *found)))
            made += [ReadRow("samples", row, buffer) for buffer, row in self.sampled.items()]
        if self.cost.match is not None:
            due = formula_tape("due", dict.fromkeys(("t", "start", "period", "count"), 1), _due)
            grid = ("grid_start", "grid_period", "grid_count")
            made.append(Evaluate(due, ("t", *grid, "match_row", "due")))
            made.append(ReadRow("match", "match_row", "y"))
        return made

    # the step -----------------------------------------------------------------------------------

    @cached_property
    def evaluations(self) -> list[Evaluate]:
        """Evaluations from q, nu, t, h to q_n, nu_n, dc; every buffer is written once."""
        d, made = self.d, [self._times()]
        made += [self._blend(k) for k in range(len(self.nodes)) if d.samples == "linear"]
        ks = [f"k_{i}" for i in self.stages]
        for i in self.stages:
            made += self._stage(i, ks)
        weights = [self.method.weights[i] for i in self.stages]
        opens = d.projection is not None
        kept = "nu_n" if d.update is None else "nu_kept"  # before samples are taken
        ends = ("q_open" if opens else "q_n", kept if d.jump is None else "nu_held")
        made.append(self._moved("step", weights, ks, ends))
        if d.projection is not None:
            made.append(d.evaluate(d.projection, {"q": "q_open", "t": "t_n"}, "q_n"))
        if d.jump is not None:
            made += d.jump_of_speeds("nu_held", "h", "jumped", kept)
        if d.update is not None:
            made.append(Evaluate(d.time_beyond, ("t_n", "t_due")))
            made.append(d.evaluate(d.update, {**d.sampled_state, "nu": kept}, "nu_n"))
        return [*made, *self._cost(weights)]

    def _times(self) -> Evaluate:
        """Times of the nodes, inside the step if something may switch there, and of its end."""
        d = self.d

        def times(t: Vector, h: Vector) -> dict[str, Vector]:
            made = [t[0] + float(c) * h[0] for c in self.nodes]
            if d.switches:
                made = [inside_step(x, t[0], h[0], d.inwards) for x in made]
            return {f"t_{k}": [x] for k, x in enumerate((*made, t[0] + 1.0 * h[0]))}

        tape = formula_tape("times", {"t": 1, "h": 1}, times)
        return Evaluate(tape, ("t", "h", *(f"t_{k}" for k in range(len(self.nodes))), "t_n"))

    def _blend(self, k: int) -> Evaluate:
        """Input between two samples; it changes with the length of the step."""
        n, node = self.d.n_u, float(self.nodes[k])

        def blend(
            t: Vector, h: Vector, start: Vector, period: Vector, row: Vector, a: Vector, b: Vector
        ) -> dict[str, Vector]:
            count = (t[0] + node * h[0] - start[0]) / period[0]
            part = (count - row[0]).most(0.0).least(1.0)
            return {"u": [x + part * (y - x) for x, y in zip(a, b, strict=True)]}

        sizes = dict.fromkeys(("t", "h", "start", "period", "row"), 1) | {"a": n, "b": n}
        given = ("t", "h", "sample_start", "sample_period", f"row_{k}")
        tape = formula_tape("blend", sizes, blend)
        return Evaluate(tape, (*given, f"u_before_{k}", f"u_after_{k}", f"u_{k}"))

    def _stage(self, i: int, ks: Sequence[str]) -> list[Evaluate]:
        """State, input, rate and running cost of a stage."""
        d, names, made = self.d, self._names(i), []
        if i:
            row = self.method.stages[i]
            made.append(self._moved(f"stage{i}", row, ks[: len(row)], (names["q"], names["nu"])))
        if d.input is not None:
            made.append(d.evaluate(d.input, names, names["u"]))
        made.append(d.evaluate(self._rate, names, f"k_{i}"))
        if self.cost.running is not None and self.method.weights[i]:
            made.append(d.evaluate(self.cost.running, names, f"r_{i}"))
        return made

    def _names(self, i: int) -> dict[str, str]:
        """Buffers of a stage."""
        node = self.nodes.index(self.method.nodes[i])
        u = "u"
        if self.d.input is not None:
            u = f"u_stage_{i}"
        elif self.d.samples is not None:
            u = f"u_{node}"
        state = {"q": f"q_{i}", "nu": f"nu_{i}"} if i else {"q": "q", "nu": "nu"}
        return {**state, "t": f"t_{node}", "u": u}

    def _moved(
        self, name: str, weights: Sequence[Fraction], ks: Sequence[str], made: tuple[str, str]
    ) -> Evaluate:
        """q and nu moved along rates."""
        d = self.d
        used = [j for j, weight in enumerate(weights) if weight]

        def move(q: Vector, nu: Vector, h: Vector, **rates: Vector) -> dict[str, Vector]:
            x = [
                y + increment(h[0], [weights[j] for j in used], [k[e] for k in rates.values()])
                for e, y in enumerate([*q, *nu])
            ]
            return {"q": x[: d.n_q], "nu": x[d.n_q :]}

        sizes = {"q": d.n_q, "nu": d.n_nu, "h": 1}
        sizes |= {f"k{j}": d.n_q + d.n_nu for j in used}
        rates = [ks[j] for j in used]
        return Evaluate(formula_tape(name, sizes, move), ("q", "nu", "h", *rates, *made))

    def _cost(self, weights: Sequence[Fraction]) -> list[Evaluate]:
        """What the step adds to the cost: its running part, and that of an instant measured."""
        d, made = self.d, []
        parts: dict[str, str] = {"h": "h"}
        used = [i for i in self.stages if weights[i]] if self.cost.running is not None else []
        parts |= {f"r{i}": f"r_{i}" for i in used}
        if self.cost.match is not None:
            made.append(d.evaluate(self.cost.match, {}, "missed"))
            parts |= {"due": "due", "missed": "missed"}

        def added(h: Vector, **v: Vector) -> dict[str, Vector]:
            total = 0.0 * h[0]
            if used:
                rates = [v[f"r{i}"][0] for i in used]
                total = total + increment(h[0], [weights[i] for i in used], rates)
            if "due" in v:
                total = total + v["due"][0].then(v["missed"][0], 0.0)
            return {"dc": [total]}

        tape = formula_tape("cost", dict.fromkeys(parts, 1), added)
        return [*made, Evaluate(tape, (*parts.values(), "dc"))]


def _due(t: Vector, start: Vector, period: Vector, count: Vector) -> dict[str, Vector]:
    """Row of the instant at which a step begins, and whether there is one."""
    place = (t[0] - start[0]) / period[0]
    row = (place + 0.5).floor()
    inside = (row >= 0.0) & (row < count[0]) & (abs(place - row) < SEVEN_DIGITS)
    return {"row": [row], "due": [inside]}


def add_up(vectors: Sequence[Vector], size: int, zero: Formula) -> Vector:
    """Sum of vectors of equal size, zero if there are none."""
    return [sum((v[i] for v in vectors), zero) for i in range(size)]
