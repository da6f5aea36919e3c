"""Tapes of a model, its inputs and its events, as operations on named buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.operations import Array
from axode.codegen.tape.program import Evaluate, MaskedCopy, Operation, ReadRow, While
from axode.codegen.tape.switching import Switches
from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import ON_TIME, SUM_ROUNDING
from axode.problems.steps.switch_search import find_break

if TYPE_CHECKING:
    from axode.problems.steps.moreau import ContactTapes

INSIDE = 1e-6  # of half a step: how far its ends are moved inwards to read held samples


@dataclass(frozen=True)
class Dynamics:
    """The tapes of one model and its inputs, and the sizes of what they work on.

    Attributes:
        rate: q, nu, u (t, p) to the rates of q, nu and w.
        rate_jacobian: The same to its derivatives by q, nu, u and t, for implicit steps.
        projection: q (t, p) to the nearest closed q, if anything can open.
        pivots: q (t, p) to numbers that vanish where a solve becomes singular, then pairs that
            vanish together where a wheel lies flat, if they can.
        leaning: How many such wheels there are.
        input: t, q, nu (p) to u; None if u is given.
        events: t, q, nu (p) to numbers whose zero crossings count.
        directions: Directions of those crossings: 1 rising, -1 falling, 0 both.
        samples: Whether u is read from a table, and how: "hold" or "linear".
        given: Further buffers the tapes read, such as p, with their sizes.
        numbers: Numbers of traced functions, by the buffers from which their tapes read them.
        inside: Part of half a step by which its ends are moved inwards to read held samples.
        stiffness: Whether explicit steps at the limit of stability are counted.
        log: Whether accepted steps are written to a table `log`: q and nu before, rates of stages,
            t before and the length.
        logged_stages: How many stages, from the first, have their rates in the log.
        interleaved: Whether the log holds each number of a group of runs side by side.
        grid: Whether steps end at the times of a grid, besides those of samples.
        quaternions: Places of each in q.
        switches: What switches by time alone: steps end at the times of a table `breaks`.
        inwards: Part of the time by which the ends of these steps are moved inwards.
        places: Where functions are between their switches, if these times are found step by step.
        jump: Generalized momentum as speeds, and energy, as functions of q, nu, t (p), if
            prescribed rates may jump.
        update: t, q, nu, due (p, gains) to nu after samples that are due, if a law takes some.
        periods: Times between samples [s], one for each number of `due`.
        quadrature: t, q, nu, u (p, gains) to the rate of a number `c` whose error adaptive explicit
            steps limit like that of the state, if there is one.
        contacts: What steps through contacts need besides.
    """

    n_q: int
    n_nu: int
    n_u: int
    rate: Tape
    rate_jacobian: Tape | None = None
    projection: Tape | None = None
    pivots: Tape | None = None
    input: Tape | None = None
    events: Tape | None = None
    directions: tuple[int, ...] = ()
    samples: str | None = None
    given: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, Array] = field(default_factory=dict)
    inside: float = INSIDE
    leaning: int = 0
    stiffness: bool = False
    log: bool = False
    logged_stages: int = 0
    interleaved: bool = False
    grid: bool = False
    quaternions: tuple[tuple[int, ...], ...] = ()
    switches: tuple[Switches, ...] = ()
    inwards: float = SUM_ROUNDING
    places: Tape | None = None
    jump: tuple[Tape, Tape] | None = None
    update: Tape | None = None
    periods: tuple[float, ...] = ()
    quadrature: Tape | None = None
    contacts: ContactTapes | None = None

    @property
    def n_k(self) -> int:
        """Length of a rate: q, nu and the two works."""
        return self.n_q + self.n_nu + 2

    @property
    def restarts(self) -> bool:
        """True if the rate may differ on the two sides of the end of a step."""
        return self.samples == "hold" or bool(self.switches)

    @property
    def breaks_key(self) -> tuple[bool, bool, str | None, tuple[float, ...]]:
        """Names what breaks add to a program."""
        update = None if self.update is None else self.update.digest
        return bool(self.switches), self.jump is not None, update, self.periods

    @property
    def interleaved_tables(self) -> frozenset[str]:
        """Tables that hold each number of a group of runs side by side."""
        return frozenset({"log"}) if self.interleaved else frozenset()

    @property
    def log_width(self) -> int:
        """Numbers per logged step."""
        states = (1 + self.logged_stages) * (self.n_q + self.n_nu)
        return states + 2 + sum(self.logged_breaks.values())

    @property
    def logged_breaks(self) -> dict[str, int]:
        """Buffers of a logged step that hold what happens where it ends, and their sizes."""
        jumped = {} if self.jump is None else {"jumped": 1}
        return jumped | ({"samples_due": len(self.periods)} if self.periods else {})

    @property
    def n_events(self) -> int:
        """Number of event functions."""
        return 0 if self.events is None else self.events.outputs[0].size

    @property
    def n_pivots(self) -> int:
        """Number of pivots, and of numbers of leaning wheels."""
        return 0 if self.pivots is None else self.pivots.outputs[0].size

    def evaluate(self, tape: Tape, names: dict[str, str], output: str) -> Evaluate:
        """Evaluate a tape on the buffers that hold its arguments."""
        inputs = tuple(names.get(port.name, port.name) for port in tape.inputs)
        return Evaluate(tape, (*inputs, output))

    def rate_at(self, q: str, nu: str, t: str, k: str, begin: str = "t") -> list[Operation]:
        """Find the input and the rate at a state of the step from `begin`, by h_s."""
        inside = "t_inside" if self.switches else t
        names = {"q": q, "nu": nu, "t": inside}
        return [
            *self.time_inside(t, begin),
            *self._input(q, nu, t, inside, begin),
            self.evaluate(self.rate, names, k),
        ]

    def input_at(self, q: str, nu: str, t: str, begin: str = "t") -> list[Operation]:
        """Find the input at a state of the step from `begin`, by h_s, if it is not given."""
        inside = "t_inside" if self.switches else t
        return [*self.time_inside(t, begin), *self._input(q, nu, t, inside, begin)]

    def _input(self, q: str, nu: str, t: str, inside: str, begin: str = "t") -> list[Operation]:
        if self.samples is not None:
            return self._sampled(t, begin)
        if self.input is None:
            return []
        return [self.evaluate(self.input, {"q": q, "nu": nu, "t": inside}, "u")]

    def quadrature_at(self, q: str, nu: str, t: str, c: str) -> list[Operation]:
        """Find the rate of the quadrature at a state whose input has been found."""
        if self.quadrature is None:
            return []
        inside = "t_inside" if self.switches else t
        return [self.evaluate(self.quadrature, {"q": q, "nu": nu, "t": inside}, c)]

    def time_inside(self, t: str, begin: str = "t") -> list[Operation]:
        """Move a time at an end of the step from `begin` inwards, if something may switch there.

        It goes to the buffer `t_inside`.
        """
        if not self.switches:
            return []
        tape = formula_tape(
            "inside",
            {"t_stage": 1, "t": 1, "h": 1},
            lambda t_stage, t, h: {"t": [inside_step(t_stage[0], t[0], h[0], self.inwards)]},
        )
        return [Evaluate(tape, (t, begin, "h_s", "t_inside"))]

    def _sampled(self, t: str, begin: str) -> list[Operation]:
        """Read the input at a time from its table, held or interpolated."""
        place = formula_tape(
            "place",
            {"t_stage": 1, "t": 1, "h": 1, "start": 1, "period": 1},
            lambda t_stage, t, h, start, period: sample_place(
                t_stage[0],
                t[0] + 0.5 * h[0],
                start[0],
                period[0],
                self.inside if self.samples == "hold" else 0.0,
            ),
        )
        buffers = (t, begin, "h_s", "sample_start", "sample_period", "row", "next_row", "between")
        operations: list[Operation] = [Evaluate(place, buffers)]
        if self.samples == "hold":
            return [*operations, ReadRow("samples", "row", "u")]
        operations += [
            ReadRow("samples", "row", "u_before"),
            ReadRow("samples", "next_row", "u_after"),
        ]
        blend = formula_tape(
            "blend",
            {"part": 1, "a": self.n_u, "b": self.n_u},
            lambda part, a, b: {"u": [x + part[0] * (y - x) for x, y in zip(a, b, strict=True)]},
        )
        return [*operations, Evaluate(blend, ("between", "u_before", "u_after", "u"))]

    def closed(self) -> list[Operation]:
        """Bring the new coordinates back onto the holonomic constraints, and switch at breaks."""
        made: list[Operation] = []
        if self.projection is not None:
            made.append(self.evaluate(self.projection, {"q": "q_n", "t": "t_n"}, "q_n"))
        return [*made, *self._switch()]

    def next_break(self, length: Evaluate) -> list[Operation]:
        """Find when the next break is, and whether speeds jump there.

        Args:
            length: Finds the length `h_s` of the step where nothing switches.
        """
        if not self.switches:
            return []
        if self.reads_breaks:
            return [ReadRow("breaks", "segment", "break")]
        if self.places is None:
            return [
                Evaluate(formula_tape("next_sample", {"t": 1}, self._next_sample), ("t", "break"))
            ]
        return [length, *find_break(self.places, self.inwards, jumps=self.jump is not None)]

    @property
    def reads_breaks(self) -> bool:
        """Return whether times of breaks are read from a table; those of samples alone are not."""
        only_samples = bool(self.periods) and len(self.switches) == 1
        return bool(self.switches) and self.places is None and not only_samples

    def _next_sample(self, t: Vector) -> dict[str, Vector]:
        """Find the next sample that a law takes, where nothing else switches."""
        after = self._beyond(t)
        times = [x * ((after / x).floor() + 1.0) for x in self.periods]
        return {"break": [reduce(Formula.least, times), t[0].like(0.0)]}

    def _switch(self) -> list[Operation]:
        """Count a break at which the step ends, and let speeds jump there."""
        if not self.switches:
            return []

        def count(segment: Vector, t: Vector, stop: Vector) -> dict[str, Vector]:
            there = t[0].equals(stop[0])
            jumps = [there & stop[1]]
            return {"segment": [segment[0] + there], "jumps": jumps, "jumped": jumps}

        tape = formula_tape("switch", {"segment": 1, "t": 1, "stop": 2}, count)
        buffers = ("segment", "t_n", "break", "segment_n", "jumps", "jumped")
        made: list[Operation] = [Evaluate(tape, buffers)]
        if self.jump is not None:
            made.append(While("jumps", tuple(self._jump(self.jump[1]))))
        return made if self.update is None else [*made, *self._take_samples(self.update)]

    @property
    def sampled_state(self) -> dict[str, str]:
        """Buffers of the state of which a law takes samples."""
        return {"q": "q_n", "nu": "nu_n", "t": "t_due", "due": "samples_due"}

    @property
    def time_beyond(self) -> Tape:
        """Time after a break."""
        return formula_tape("beyond", {"t": 1}, lambda t: {"t": [self._beyond(t)]})

    def _beyond(self, t: Vector) -> Formula:
        """Time after a break that rounds to this one."""
        return t[0] + self.inwards * abs(t[0]).most(self.inwards)

    def _take_samples(self, update: Tape) -> list[Operation]:
        """Take the samples of a law that a step comes to: it ends at the first of them.

        They are counted at both ends, so that rounding of times neither loses nor repeats one.
        """

        def find(t: Vector, end: Vector) -> dict[str, Vector]:
            before, after = self._beyond(t), self._beyond(end)
            due = [(before / x).floor() < (after / x).floor() for x in self.periods]
            return {"due": due, "sampling": [reduce(Formula.__or__, due)], "t": [after]}

        done = formula_tape("sampled", {"due": 1}, lambda due: {"sampling": [0.0 * due[0]]})
        body = (
            self.evaluate(update, self.sampled_state, "nu_n"),
            Evaluate(done, ("sampling", "sampling")),
        )
        found = formula_tape("due_samples", {"t": 1, "end": 1}, find)
        return [
            Evaluate(found, ("t", "t_n", "samples_due", "sampling", "t_due")),
            While("sampling", body),
        ]

    def _jump(self, energy: Tape) -> list[Operation]:
        """Let the speeds jump so that the momentum stays, by the work of what is prescribed."""

        def work(jumps: Vector, w: Vector, before: Vector, after: Vector) -> dict[str, Vector]:
            added = jumps[0].then(after[0] - before[0], 0.0)
            return {"w": [w[0] + added, w[1]], "jumps": [0.0 * jumps[0]]}

        sizes = {"jumps": 1} | dict.fromkeys(("w", "before", "after"), 2)
        worked = Evaluate(
            formula_tape("jump_work", sizes, work),
            ("jumps", "w_n", "e_before", "e_after", "w_n", "jumps"),
        )
        here = {"q": "q_n", "nu": "nu_n"}
        *kept, jumped = self.jump_of_speeds("nu_n", "h_s", "jumps", "nu_j")
        return [
            *kept,
            self.evaluate(energy, {**here, "t": "t_before"}, "e_before"),
            jumped,
            self.evaluate(energy, {**here, "nu": "nu_j", "t": "t_after"}, "e_after"),
            worked,
            MaskedCopy("jumped", "nu_j", "nu_n"),
        ]

    def jump_of_speeds(self, nu: str, h: str, jumps: str, made: str) -> list[Evaluate]:
        """Find the speeds after a jump of prescribed rates at the end of a step, if there is one.

        Args:
            nu, h: Buffers of the speeds before it and of the length of the step.
            jumps: That of the flag.
            made: That of the speeds after it.
        """

        def sides(t: Vector, h: Vector) -> dict[str, Vector]:
            size = self.inwards * abs(t[0]).most(abs(h[0])).most(self.inwards)
            off = (h[0] < 0.0).then(-size, size)
            return {"before": [t[0] - off], "after": [t[0] + off]}

        def jump(jumps: Vector, nu: Vector, before: Vector, after: Vector) -> dict[str, Vector]:
            pairs = zip(before, after, strict=True)
            added = [jumps[0].then(a - b, 0.0) for a, b in pairs]
            return {"nu": [x + y for x, y in zip(nu, added, strict=True)]}

        assert self.jump is not None
        sizes = {"jumps": 1} | dict.fromkeys(("nu", "before", "after"), self.n_nu)
        momentum, here = self.jump[0], {"q": "q_n", "nu": nu}
        times = Evaluate(
            formula_tape("sides", {"t": 1, "h": 1}, sides), ("t_n", h, "t_before", "t_after")
        )
        return [
            times,
            self.evaluate(momentum, {**here, "t": "t_before"}, "p_before"),
            self.evaluate(momentum, {**here, "t": "t_after"}, "p_after"),
            Evaluate(formula_tape("jump", sizes, jump), (jumps, nu, "p_before", "p_after", made)),
        ]

    def watched(self, q: str, nu: str, t: str, suffix: str = "") -> list[Operation]:
        """Evaluate event functions and pivots at a state."""
        names = {"q": q, "nu": nu, "t": t}
        operations: list[Operation] = []
        if self.events is not None:
            operations.append(self.evaluate(self.events, names, f"g{suffix}"))
        if self.pivots is not None:
            operations.append(self.evaluate(self.pivots, names, f"pivots{suffix}"))
        return operations

    def split(self, x: Sequence[Formula]) -> dict[str, list[Formula]]:
        """Split a rate or state vector into its three parts."""
        n = self.n_q + self.n_nu
        return {"q": list(x[: self.n_q]), "nu": list(x[self.n_q : n]), "w": list(x[n:])}

    # buffers ----------------------------------------------------------------------------------

    def state(self) -> dict[str, int]:
        """Buffers that every run keeps from call to call.

        `index` counts saved rows, `h_s` is the step that was tried, `seen` says that its crossings
        have been located, `crossed` which they are, `near` how small a pivot gets in it, `flat`
        how nearly a wheel lies flat in it, `logged` counts rows of the log, `segment` breaks that
        are past.
        """
        state = {
            "q": self.n_q,
            "nu": self.n_nu,
            "w": 2,
            "t": 1,
            "status": 1,
            "index": 1,
            "h_s": 1,
            "seen": 1,
        }
        if self.events is not None:
            state["crossed"] = self.n_events
        if self.pivots is not None:
            state["near"] = 1
        if self.leaning:
            state["flat"] = 1
        if self.stiffness:
            state |= {"stiff": 1, "calm": 1}
        if self.log:
            state["logged"] = 1
        if self.switches:
            state["segment"] = 1
        if self.quadrature is not None:
            state["c"] = 1
        return state

    def givens(self) -> dict[str, int]:
        """Buffers that the steps only read."""
        given = self.given | {name: len(array) for name, array in self.numbers.items()}
        if self.samples is not None:
            given |= {"sample_start": 1, "sample_period": 1, "sample_count": 1}
        elif self.input is None:
            given["u"] = self.n_u
        if self.pivots is not None:
            given["least_pivot"] = 1
        if self.stiffness:
            given |= {"stiff_limit": 1, "stiff_slope": 1}
        if self.grid:
            given |= {"grid_start": 1, "grid_period": 1, "grid_count": 1}
        return given

    def tables(self) -> dict[str, int]:
        """Tables, by the width of their rows."""
        tables = {"out": self.n_k} | ({"breaks": 2} if self.reads_breaks else {})
        if self.log:
            tables["log"] = self.log_width
        return tables | {"samples": self.n_u} if self.samples is not None else tables


def inside_step(t: Formula, start: Formula, length: Formula, inwards: float) -> Formula:
    """Move a time at an end of a step inwards by a part of the time."""
    end = start + length
    off = inwards * abs(start).most(abs(end))
    low, high = start.least(end) + off, start.most(end) - off
    return t.least(high).most(low.least(high))


def sample_place(
    t: Formula, middle: Formula, start: Formula, period: Formula, inside: float
) -> dict[str, Vector]:
    """Find the row of a table that belongs to a time.

    A held sample is read a little inside the step: at its ends two samples meet, and the one that
    holds during the step is meant.
    """
    moved = t + inside * (middle - t) if inside else t
    count = (moved - start) / period
    row = count.floor().most(0.0)
    return {"row": [row], "next": [row + 1.0], "part": [(count - row).most(0.0).least(1.0)]}


def to_next_sample(
    t: Formula, direction: Formula, start: Formula, period: Formula, count: Formula
) -> Formula:
    """Find the time until the next sample, in the direction of the run; 1e300 if none is left."""
    place = (t - start) / period
    along = direction * place
    left = ((along + ON_TIME).floor() + 1.0 - along) * period
    inside = (place > -1.0) & (place < count)
    first = (direction > 0.0).then(0.0, 1.0 - count)
    return inside.then(left, (along < first).then((first - along) * period, 1e300))
