r"""Steps through contacts that stick, slip, lift and land, without stopping at events.

A step of length h solves for the speeds at its end, with all forces in its middle,

.. math:: M (\nu_+ - \nu_-) = h f(q_m, \nu_m, t_m) + J^T \lambda, \qquad
          q_m = q + \tfrac h2 \dot q(q, \nu_-), \quad \nu_m = \tfrac12 (\nu_- + \nu_+),

f linearised in the speeds and in the coordinates of joints, so that dampers, servo loops and
springs of any strength are stable, and impulses by the laws of contact on the speeds
:math:`J \nu_+` [J. J. Moreau, "Unilateral contact and dry friction in finite freedom dynamics",
1988]. It ends at
:math:`q + h\,\dot q(q_m, \nu_m)`; if something strikes at the part theta of the step, its
impulse acts from there on. Rows turn with the machine: their speeds at the ends of a step are those
in its middle, :math:`J(q_m) \nu_\pm`, less and plus half of what :math:`\dot J \nu` adds in a
step. A contact may close as far as its gap allows until the step ends,
:math:`v_+ \ge -(g / h + \theta v_-) / (1 - \theta)`, so that it lands on the ground and not in it.

Impacts come back by Poisson's law: the impulse that stops them, times one plus the restitution, is
the least one of the step, or less where several contacts strike so that it would give energy. What
the forces of the same step take back is plastic.

What slides and is turned round by forces passes through rest, where static friction may hold it: it
has the static limit from the next step on, until it sticks, has become faster in several steps, or
is faster than all static friction could stop in one. So friction never pushes.

Speeds that are rounding of the terms they are the sum of are zero, and a machine at rest keeps the
bits of its coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

from axode.codegen.tape.derivatives import changes_along, reads
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, MaskedCopy, Operation, Program, While
from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import NEGLIGIBLE, POLISHED
from axode.problems.contacts.compiled_laws import factored, solve_operations, substituted
from axode.problems.contacts.complementarity import RowLaws
from axode.problems.steps.adaptive import Gathering
from axode.problems.steps.explicit import equal_steps
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import RUNNING, UNSOLVED

TOUCHING = 1e-10  # [m or rad]: gaps below are closed, and deeper ones are corrected
SHARED = 1e-6  # of the diagonal: compliance of what lifts several contacts at once
HARD = 0.1  # of what forces change in a step: a speed that strikes and does not settle
GAINS = 1e-9  # of the work of one contact: energy that impacts must not give
LESS = 0.7  # of impulses that come back, where they gave energy
LESS_OR_SAME = 1.0 + 1e-9  # times the least impulse: what is not more than that
LATEST = 0.999  # part of a step before an impact
# buffers for the solver alone
PASSED = ("free", "approach", "least", "solving", "striking", "restitution", "holding", "theta")
STUCK, SLIPPING, TURNED = 1.0, 2.0, 3.0  # marks of rubbing groups; zero is none of them
FASTER = 4.0  # steps in which what turned round may become faster, each of which adds to its mark


class RowTable(RowLaws, Protocol):
    """Laws of rows, and how the parts of their numbers follow each other."""

    def sizes(self, dof: int) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class ContactTapes:
    """What steps through contacts need of a model besides its rate.

    Attributes:
        table: Laws of the rows.
        rows: Gap, Jacobian, drift, rate, limits, kinetic limits and restitution, as one vector.
        mass, forces, rates: Mass matrix; forces by their sign in M d(nu)/dt; rates of coordinates.
        potential: That of the forces that have a potential.
        momentum: Generalized momentum as speeds, if motions are prescribed.
    """

    table: RowTable
    rows: Tape
    mass: Tape
    forces: tuple[tuple[float, Tape], ...]
    rates: Tape
    potential: Tape
    momentum: Tape | None = None

    @property
    def tapes(self) -> tuple[Tape, ...]:
        """All tapes."""
        further = () if self.momentum is None else (self.momentum,)
        return self.rows, self.mass, self.rates, *(tape for _, tape in self.forces), *further


def moreau_program(d: Dynamics, gathering: Gathering | None = None) -> Program:
    """Make a program of n_steps steps through contacts; see `equal_steps`."""
    step = _Step(d)
    program = equal_steps(
        "steps", d, step.operations(), step.inside, (), gathering, step.keep_memory()
    )
    state = dict.fromkeys(("impulses", "contact_work"), step.m) | {"stuck": step.groups}
    return replace(program, state=program.state | state)


class _Step:
    """The operations of one step."""

    def __init__(self, d: Dynamics) -> None:
        assert d.contacts is not None
        self.d, self.tapes, self.table = d, d.contacts, d.contacts.table
        self.n, self.n_normals = d.n_nu, len(self.table.normals)
        self.m = self.table.sizes(self.n)[2]
        self.bodies = self.tapes.mass.outputs[0].shape[0]  # speeds; beyond is a law's memory
        self.groups = max(1, len(self.table.rubbing))
        tapes = [*self.tapes.tapes, d.rate, *([] if d.input is None else [d.input])]
        ports = {port.name: port.size for tape in tapes for port in tape.inputs}
        self.ports = {"q": d.n_q, "nu": d.n_nu, "t": 1, "u": d.n_u} | ports
        self.solve = solve_operations(self.table, self.m)

    def operations(self) -> list[Operation]:
        """From the state at the start of a step to that at its end."""
        d, m, n = self.d, self.m, self.n
        middle = formula_tape(
            "contacts_middle",
            self.ports | {"h": 1},
            lambda h, **v: {
                "q": self._moved(v["q"], self._replayed(self.tapes.rates, v), 0.5 * h[0]),
                "t": [v["t"][0] + 0.5 * h[0]],
            },
        )
        made: list[Operation] = [Evaluate(middle, (*self.ports, "h_s", "q_m", "t_m"))]
        if d.projection is not None:
            made.append(d.evaluate(d.projection, {"q": "q_m", "t": "t_m"}, "q_m"))
        made += d.input_at("q_m", "nu", "t_m")
        here = {"q": "q_m", "t": "t_m"}
        ports = tuple(here.get(name, name) for name in self.ports)
        outputs = {
            "base": n, "potential": n, "jump": n, "ahead": m, "terms": n, "W": n * m, "G": m * m,
            "free": m, "approach": m, "limits": m, "static": m, "before": m, "after": m,
            "driven": m, "gap": self.n_normals, "least": m, "restitution": self.n_normals,
            "theta": 1 + self.n_normals, "striking": 1, "solving": 1, "holding": self.groups,
        }  # fmt: skip
        system = formula_tape(
            "contacts_system",
            self.ports | {"h": 1, "stuck": self.groups, "status": 1},
            self._system,
        )
        made.append(Evaluate(system, (*ports, "h_s", "stuck", "status", *outputs)))
        start = formula_tape("contacts_keep", {"x": m}, lambda x: {"x": x})
        made.append(Evaluate(start, ("impulses", "impulses_o")))
        made.append(While("striking", self._strike()))
        total = formula_tape(
            "contacts_total",
            {"status": 1, "after": m},
            lambda status, after: {
                "free": after,
                "again": [status[0].equals(float(RUNNING))],
                "solved": [0.0 * status[0]],
                "known": [0.0 * status[0]],
            },
        )
        made += [
            Evaluate(total, ("status", "after", "free", "again", "solved", "known")),
            While("again", self._total()),
        ]
        known = {"h": 1, "q_o": d.n_q, "impulses": m, "work": m, "works": 2}
        known |= {name: size for name, size in outputs.items() if name not in PASSED}
        known |= {"stuck": self.groups, "solved": 1, "status": 1, "step": 1, "whole": 1}
        buffers = {"h": "h_s", "q_o": "q", "work": "contact_work", "works": "w"}
        finish = formula_tape("contacts_finish", self.ports | known, self._finish)
        results = ("q_n", "nu_n", "w_n", "step_n", "accepted", "status", "stuck_n", "work_n")
        read = tuple(buffers.get(name, name) for name in known)
        return [*made, Evaluate(finish, (*ports, *read, *results))]

    def keep_memory(self) -> list[Operation]:
        """Keep impulses, marks and work of an accepted step; restore those of another."""
        names = {"stuck": self.groups, "contact_work": self.m}
        undo = formula_tape("contacts_undo", {"commit": 1}, lambda commit: {"undo": [~commit[0]]})
        return [
            Evaluate(undo, ("commit", "undone")),
            MaskedCopy("undone", "impulses_o", "impulses"),
            *(MaskedCopy("commit", "work_n" if "work" in k else f"{k}_n", k) for k in names),
        ]

    def inside(self, part: str, made: str) -> list[Operation]:
        """Interpolate the state inside a step, between its ends."""
        d = self.d
        sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2}
        ends = {f"{name}_n": size for name, size in sizes.items()}

        def between(part: Vector, **v: Vector) -> dict[str, Vector]:
            old = [x for name in sizes for x in v[name]]
            new = [x for name in ends for x in v[name]]
            return {"x": [a + part[0] * (b - a) for a, b in zip(old, new, strict=True)]}

        tape = formula_tape("contacts_inside", {"part": 1} | sizes | ends, between)
        return [Evaluate(tape, (part, *(f"{name}_o" for name in sizes), *ends, made))]

    # the parts -------------------------------------------------------------------------------

    @staticmethod
    def _replayed(tape: Tape, v: Mapping[str, Vector]) -> Vector:
        """A tape of the model on values of another one."""
        builder = v["t"][0].builder
        given = [[x.number for x in v[port.name]] for port in tape.inputs]
        return [Formula(builder, number) for number in builder.replay(tape, given)]

    @staticmethod
    def _moved(x: Vector, rate: Vector, h: Formula) -> Vector:
        return [a + h * b for a, b in zip(x, rate, strict=True)]

    def _system(self, **v: Vector) -> dict[str, Vector]:
        """Everything that the impulses of a step depend on."""
        h, nu, m, n = v["h"][0], v["nu"], self.m, self.n
        zero, one = h.like(0.0), h.like(1.0)
        J, (gap, drift, rate, limits, kinetic, restitution) = self._rows(v)
        S, f, potential = self._inertia(v)
        order = list(reversed(range(n)))  # leaves first: nothing is filled in
        symmetric = all(S[i][j].number == S[j][i].number for i in range(n) for j in range(i))
        factors = factored([[S[i][j] for j in order] for i in order], symmetric)

        def solved(b: Vector) -> Vector:
            x = substituted(factors, [b[i] for i in order])
            return [x[n - 1 - i] for i in range(n)]

        pushed = [h * x for x in solved(f)]
        base = [a + b for a, b in zip(nu, pushed, strict=True)]
        W = [solved(row) for row in J]  # by rows of J
        G = [[zero] * m for _ in range(m)]
        for i in range(m):
            for j in range(m):
                G[i][j] = G[j][i] if symmetric and j < i else _dot(J[i], W[j], zero)
        w0 = [
            a + _dot(row, nu, zero) - 0.5 * h * b for a, b, row in zip(drift, rate, J, strict=True)
        ]
        w = [a + _dot(row, pushed, zero) + h * b for a, b, row in zip(w0, rate, J, strict=True)]
        # normal rows: which strike in this step, when the first one does, and how far others close
        strikes, times, theta = [], [], one
        gaps = []
        for k, i in enumerate(self.table.normals):
            now = gap[k] - 0.5 * h * w0[i]
            now = (now < TOUCHING).then(now.least(0.0), now)
            gaps.append(now)
            speed = 0.5 * (w0[i] + w[i])
            hits = (-w0[i] > HARD * abs(w[i] - w0[i])) & (now + h * speed <= 0.0)
            strikes.append(hits)
            when = (now / hits.then(-h * speed, 1.0)).most(0.0).least(LATEST)
            times.append(when)
            theta = hits.then(theta.least(when), theta)
        some = reduce(Formula.__or__, strikes, zero)
        theta = some.then(theta, 0.5)
        times = [hits.then(t, theta) for hits, t in zip(strikes, times, strict=True)]
        approach, returned = [zero] * m, []
        partly = list(w0)
        for k, i in enumerate(self.table.normals):
            free = (gaps[k] / h + theta * w0[i]) / (1.0 - theta)
            approach[i] = strikes[k].then(0.0, free.most(0.0))
            back = strikes[k] & (restitution[k] * -w0[i] > abs(w[i] - w0[i]))
            returned.append(back.then(restitution[k], 0.0))
            rows = [i, *(r for g in self.table.rubbing if g.normal == i for r in g.rows)]
            for r in rows:
                partly[r] = strikes[k].then(w0[r] + times[k] * (w[r] - w0[r]), partly[r])
        chosen, static, holding = list(limits), list(limits), []
        for k, group in enumerate(self.table.rubbing):
            mark = v["stuck"][k]
            size, terms = _length([w0[r] for r in group.rows]), zero
            for r in group.rows:
                terms = terms + sum((abs(a * b) for a, b in zip(J[r], nu, strict=True)), zero)
                terms = terms + abs(drift[r])
            holds = mark.equals(0.0).then(size <= NEGLIGIBLE * terms, mark.equals(STUCK))
            holding.append(holds)
            forced = _length([w[r] - w0[r] for r in group.rows])
            tried = holds | ((mark >= TURNED) & (~some | (size <= forced)))
            share = h if group.normal < 0 else one  # a force, or a part of an impulse
            for r in group.rows:
                static[r] = share * limits[r]
                chosen[r] = share * tried.then(limits[r], kinetic[r])
        running = v["status"][0].equals(float(RUNNING))
        return {
            "base": base,
            "potential": potential,
            "jump": [zero] * n,
            "ahead": [zero] * m,
            "terms": [abs(a) + abs(b) for a, b in zip(nu, pushed, strict=True)],
            "W": [x for row in W for x in row],
            "G": [x for row in G for x in row],
            "free": partly,
            "approach": approach,
            "limits": chosen,
            "static": static,
            "before": w0,
            "after": w,
            "driven": self._driven(v, J, drift),
            "gap": gaps,
            "least": [zero] * m,
            "restitution": returned,
            "theta": [theta, *times],
            "striking": [some & running],
            "solving": [some & running],
            "holding": holding or [zero],
        }

    def _rows(self, v: Mapping[str, Vector]) -> tuple[list[Vector], list[Vector]]:
        """The Jacobian by rows, and the other parts."""
        values, n = iter(self._replayed(self.tapes.rows, v)), self.bodies
        parts = [[next(values) for _ in range(k)] for k in self.table.sizes(n)]
        flat, none = parts.pop(1), [v["h"][0].like(0.0)] * (self.n - n)
        return [[*flat[i * n : (i + 1) * n], *none] for i in range(self.m)], parts

    def _driven(self, v: Mapping[str, Vector], J: list[Vector], drift: Vector) -> Vector:
        """Speeds of the rows at which impulses work on what is prescribed.

        An impulse changes the energy by its work on the momentum's speeds, M^-1 dT/dnu.
        """
        if self.tapes.momentum is None:
            return drift
        made = self._replayed(self.tapes.momentum, v)
        beside = [a - b for a, b in zip(made, v["nu"], strict=True)]
        zero = v["h"][0].like(0.0)
        return [a - _dot(row, beside, zero) for a, row in zip(drift, J, strict=True)]

    def _inertia(self, v: Mapping[str, Vector]) -> tuple[list[Vector], Vector, Vector]:
        """Mass matrix less slopes of the forces by speeds and joint coordinates; the forces.

        Those that have a potential come last, on their own.
        """
        n, d, h = self.n, self.d, v["h"][0]
        zero, one = h.like(0.0), h.like(1.0)
        flat, count = self._replayed(self.tapes.mass, v), self.bodies
        S = [[one if i == j else zero for j in range(n)] for i in range(n)]
        for i in range(count):
            S[i][:count] = flat[i * count : (i + 1) * count]
        force, potential = [zero] * count, [zero] * n
        for sign, tape in self.tapes.forces:
            own = [sign * x for x in self._replayed(tape, v)]
            force = [a + b for a, b in zip(force, own, strict=True)]
            if tape is self.tapes.potential:
                potential[:count] = own
        remembered = list(range(d.n_u - n + count, d.n_u))  # inputs that are rates of memory
        force += [v["u"][i] for i in remembered]
        for k in range(n):
            still: dict[str, Sequence[Formula | None]] = {
                name: [None] * size for name, size in self.ports.items()
            }
            along = still | {"nu": [one if i == k else None for i in range(n)]}
            if d.input is not None and reads(d.input, "nu"):
                along["u"] = self._changes(d.input, v, along)
            for sign, tape in self.tapes.forces:
                for i, change in enumerate(self._changes(tape, v, along)):
                    if change is not None:
                        S[i][k] = S[i][k] - (0.5 * sign * h) * change
            moving = self._changes(self.tapes.rates, v, along)
            places = [j for j, change in enumerate(moving) if change is not None]
            if len(places) == 1 and _is_one(moving[places[0]]):  # a joint, where springs act
                sprung = still | {"q": moving}
                for i, change in enumerate(self._changes(self.tapes.potential, v, sprung)):
                    if change is not None:
                        S[i][k] = S[i][k] - (0.25 * h * h) * change
            for i, place in enumerate(remembered, count):
                if (change := along["u"][place]) is not None:
                    S[i][k] = S[i][k] - 0.5 * h * change
        return S, force, potential

    @staticmethod
    def _changes(
        tape: Tape, v: Mapping[str, Vector], along: Mapping[str, Sequence[Formula | None]]
    ) -> list[Formula | None]:
        names = [port.name for port in tape.inputs]
        if not any(x is not None for name in names for x in along[name]):
            return [None] * tape.outputs[0].size
        return changes_along(tape, [v[name] for name in names], [along[name] for name in names])

    def _strike(self) -> tuple[Operation, ...]:
        """Solve for the impulses that stop what strikes, and let part of them come back."""
        m = self.m

        def back(**v: Vector) -> dict[str, Vector]:
            on, x, zero = v["striking"][0], list(v["impulses"]), v["striking"][0].like(0.0)
            on = on & v["solved"][0]
            made, n = list(v["least"]), self.n
            for i, e in zip(self.table.normals, v["restitution"], strict=True):
                x[i] = (1.0 + e) * x[i]
                made[i] = (on & (e > 0.0)).then(x[i], made[i])
            theta, *times = v["theta"]
            when = dict(zip(self.table.normals, times, strict=True))
            when |= {r: when.get(g.normal, theta) for g in self.table.rubbing for r in g.rows}
            weighted = [(0.5 - when[i]) * a for i, a in enumerate(x)]
            jump = [_dot(v["W"][k::n], weighted, zero) for k in range(n)]
            ahead = [_dot(v["G"][i * m : (i + 1) * m], weighted, zero) for i in range(m)]
            return {
                "least": made,
                "jump": [on.then(a, b) for a, b in zip(jump, v["jump"], strict=True)],
                "ahead": [on.then(a, b) for a, b in zip(ahead, v["ahead"], strict=True)],
                "striking": [zero],
            }

        sizes = {
            "striking": 1,
            "solved": 1,
            "impulses": m,
            "restitution": self.n_normals,
            "least": m,
        }
        sizes |= {"W": self.n * m, "jump": self.n, "theta": 1 + self.n_normals}
        sizes |= {"G": m * m, "ahead": m}
        tape = formula_tape("contacts_back", sizes, back)
        return (*self.solve, Evaluate(tape, (*sizes, "least", "jump", "ahead", "striking")))

    def _total(self) -> tuple[Operation, ...]:
        """Solve for all impulses of a step.

        Friction that would push what slides, because forces turn it round within the step, is left
        out of this step: it works against either half of it.
        """
        m = self.m

        def look(**v: Vector) -> dict[str, Vector]:
            on, x, zero = v["again"][0], v["impulses"], v["again"][0].like(0.0)
            end = [a + _dot(v["G"][i * m : (i + 1) * m], x, zero) for i, a in enumerate(v["after"])]
            limits, again = list(v["limits"]), zero
            for group, holds in zip(self.table.rubbing, v["holding"], strict=False):
                power = sum((x[r] * (v["before"][r] + end[r]) for r in group.rows), zero)
                pushes = on & ~holds & (power > 0.0)
                again = again | pushes
                for r in group.rows:
                    limits[r] = pushes.then(0.0, limits[r])
            solved, known = v["solved"][0], v["known"][0]
            least, returns = list(v["least"]), zero
            works = [0.5 * a * (b + c) for a, b, c in zip(x, v["before"], end, strict=True)]
            displaced = v["h_s"][0] * _dot(v["potential"], v["jump"], zero)
            gained = sum(works[1:], works[0]) - displaced
            terms = reduce(Formula.most, map(abs, works))
            largest = reduce(Formula.most, map(abs, x))
            gains = on & solved & (gained > GAINS * terms)
            for i in self.table.normals:
                given = gains & (least[i] > SHARED * largest) & (x[i] <= LESS_OR_SAME * least[i])
                returns = returns | given
                least[i] = given.then(LESS * least[i], least[i])
            again = again | returns
            back = on & ~solved & known  # to the impulses with that friction
            return {
                "least": least,
                "limits": limits,
                "again": [again & solved],
                "impulses": [back.then(a, b) for a, b in zip(v["last"], x, strict=True)],
                "solved": [solved | back],
                "known": [known | solved],
                "last": [(on & solved).then(b, a) for a, b in zip(v["last"], x, strict=True)],
            }

        sizes = {"again": 1, "solved": 1, "known": 1, "G": m * m, "holding": self.groups}
        sizes |= dict.fromkeys(("impulses", "last", "after", "before", "limits", "least"), m)
        sizes |= dict.fromkeys(("potential", "jump"), self.n) | {"h_s": 1}
        made = ("least", "limits", "again", "impulses", "solved", "known", "last")
        begin = formula_tape("contacts_again", {"again": 1}, lambda again: {"solving": again})
        return (
            Evaluate(begin, ("again", "solving")),
            *self.solve,
            Evaluate(formula_tape("contacts_look", sizes, look), (*sizes, *made)),
        )

    def _finish(self, **v: Vector) -> dict[str, Vector]:
        """The state at the end of a step, and the work in it."""
        h, m, n, x = v["h"][0], self.m, self.n, v["impulses"]
        zero = h.like(0.0)
        W = [v["W"][i * n : (i + 1) * n] for i in range(m)]
        nu, nu_n = v["nu"], list(v["base"])
        terms = list(v["terms"])
        for i in range(m):
            for k in range(n):
                nu_n[k] = nu_n[k] + W[i][k] * x[i]
                terms[k] = terms[k] + abs(W[i][k] * x[i])
        count = self.bodies
        largest = reduce(Formula.most, terms[:count])
        rests = reduce(Formula.most, map(abs, nu_n[:count])) <= POLISHED * largest
        for k in range(count):
            nu_n[k] = (rests | (abs(nu_n[k]) <= POLISHED * terms[k])).then(0.0, nu_n[k])
        G = [v["G"][i * m : (i + 1) * m] for i in range(m)]
        end = [a + _dot(row, x, zero) for a, row in zip(v["after"], G, strict=True)]
        works = [0.5 * a * (b + c) for a, b, c in zip(x, v["before"], end, strict=True)]
        early = v["jump"]  # of coordinates, by impulses that come before the middle or after it
        shift, sunk = self._raised(v, W, G, end)
        # no more than what was lost lifts contacts out of the ground
        lost = -sum(works[1:], works[0]) + h * _dot(v["potential"], early, zero)
        lift = -_dot(v["potential"], shift, zero)
        part = (lift > lost).then(lost.most(0.0) / (lift > 0.0).then(lift, 1.0), 1.0)
        shift = [part * a for a in shift]
        half = [0.5 * (a + b) for a, b in zip(nu, nu_n, strict=True)]
        beside = [a + b / h for a, b in zip(early, shift, strict=True)]
        speed = [a + b for a, b in zip(half, beside, strict=True)]
        moved = self._moved(v["q_o"], self._replayed(self.tapes.rates, {**v, "nu": speed}), h)
        moves = reduce(Formula.__or__, [~a.equals(0.0) for a in (*nu[:count], *nu_n[:count])])
        moves = moves | sunk
        given = {**v, "nu": half}
        if self.d.input is not None and reads(self.d.input, "nu"):
            given["u"] = self._replayed(self.d.input, given)  # as the speeds at the end made it
        powers = self._replayed(self.d.rate, given)[-2:]
        # what forces work where the coordinates are not in the middle of the speeds
        normals = self.table.normals
        pressed = sum((x[i] for i in normals), zero)
        displaced = h * _dot(v["potential"], beside, zero) / (pressed > 0.0).then(pressed, 1.0)
        for i in normals:
            works[i] = works[i] - displaced * x[i]
        gained = sum(works[1:], works[0])
        driven = sum((a * b for a, b in zip(x, v["driven"], strict=True)), zero)
        running, solved = v["status"][0].equals(float(RUNNING)), v["solved"][0]
        failed = running & ~solved
        return {
            "q": [moves.then(a, b) for a, b in zip(moved, v["q_o"], strict=True)],
            "nu": nu_n,
            "w": [v["works"][0] + h * powers[0] - driven, v["works"][1] + h * powers[1] - gained],
            "step": [v["step"][0] + v["whole"][0]],
            "accepted": [solved],
            "status": [failed.then(float(UNSOLVED), v["status"][0])],
            "stuck": self._marks(v, G, end) or [zero],
            "work": [a + b for a, b in zip(v["work"], works, strict=True)],
        }

    def _marks(self, v: Mapping[str, Vector], G: list[Vector], end: Vector) -> Vector:
        """Which groups stick, slip, or pass through rest."""
        before, x, groups = v["before"], v["impulses"], self.table.rubbing
        zero, one = v["h"][0].like(0.0), v["h"][0].like(1.0)
        scale = reduce(Formula.most, [abs(a) for a in (*v["after"], *before)])
        friction, marks = [zero] * self.m, []  # the most that can hold
        for group in groups:
            pressed = one if group.normal < 0 else x[group.normal].most(0.0)
            for r in group.rows:
                friction[r] = pressed * v["static"][r]
        for group, mark in zip(groups, v["stuck"], strict=False):
            rows = group.rows
            speed = _length([end[r] for r in rows])
            slips, rubs = speed > NEGLIGIBLE * scale, friction[rows[0]] > 0.0
            held = _length([_dot([abs(a) for a in G[r]], friction, zero) for r in rows])
            turns = sum((before[r] * end[r] for r in rows), zero) < 0.0
            was = _length([before[r] for r in rows])
            count = turns.then(TURNED, mark + (speed >= was))
            turned = (turns | (mark >= TURNED)) & (count <= TURNED + FASTER)
            turned = turned & rubs & slips & (speed <= held)
            on = rubs & (v["limits"][rows[0]] > 0.0)
            marks.append(turned.then(count, on.then(slips.then(SLIPPING, STUCK), 0.0)))
        return marks

    def _raised(
        self, v: Mapping[str, Vector], W: list[Vector], G: list[Vector], end: Vector
    ) -> tuple[Vector, Formula]:
        """Displacement out of the ground of closed contacts, and whether any is in it."""
        normals, h = self.table.normals, v["h"][0]
        zero, one = h.like(0.0), h.like(1.0)
        if not normals:
            return [zero] * self.n, zero
        A, b, sunk = [], [], zero
        for k, i in enumerate(normals):
            now = v["gap"][k] + h * (0.5 * (v["before"][i] + end[i]) + v["ahead"][i])
            slow = end[i] <= NEGLIGIBLE * abs(v["after"][i])
            deep = (v["impulses"][i] > 0.0) & slow & (now < -TOUCHING)
            sunk = sunk | deep
            b.append(deep.then(-now, 0.0))
            A.append([deep.then(G[i][j], one if i == j else zero) for j in normals])
            A[k][k] = A[k][k] * (1.0 + SHARED)
        raised = substituted(factored(A), b)
        shift = [
            reduce(Formula.__add__, (W[i][c] * y for i, y in zip(normals, raised, strict=True)))
            for c in range(self.n)
        ]
        return shift, sunk


def _is_one(x: Formula | None) -> bool:
    return x is not None and x.builder.value(x.number) == 1.0


def _dot(a: Vector, b: Vector, zero: Formula) -> Formula:
    return sum((x * y for x, y in zip(a, b, strict=True)), zero)


def _length(x: Vector) -> Formula:
    return abs(x[0]) if len(x) == 1 else sum((a * a for a in x[1:]), x[0] * x[0]).sqrt()
