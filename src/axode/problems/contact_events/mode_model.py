r"""A model in given modes of its contacts: the modes are parameters, and nothing is compiled again.

Closed and sticking rows keep their speeds, sliding ones rub along their speed:

.. math:: \dot v_r + 2\alpha v_r + \alpha^2 g_r = 0, \qquad
          \lambda_r = -c\, e_r \lambda_n, \quad e = v / |v|,             \tag{L3}

with gaps g of closed rows, for whose drift a small :math:`\alpha` makes up. Where slip begins and
ends its direction e is kept. Rows may follow from others; then they share forces as near to a given
share as can be, or as equal springs do (see `shares` and `problems.contacts.complementarity`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.tape import Port, Tape
from axode.errors import NotApplicable
from axode.mechanism.elements.wheels import ContactTable
from axode.model.conditions import MOMENTUM
from axode.model.function_source import (
    CONTACT_ROWS,
    JACOBIAN,
    AbstractLibrary,
    DerivedLibrary,
    Entry,
)
from axode.model.metadata import Facts
from axode.model.model import Model
from axode.model.model_parts import facts_of, library_of, memory_of, model_on_cpu
from axode.numerics.tolerances import ROUNDING

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
WATCHED = "contact_watch"  # function whose zero crossings end the modes
MADE = ("state_rate", "forward_dynamics", "contact_forces", WATCHED)
REPEATS = 8  # proximal steps
STIFF = ROUNDING  # of the diagonal of G: springs of rows of which none follows from others
RETURN = 10.0  # [1/s] how fast gaps and speeds of closed rows return to zero
GRAZING = 1e-15  # [m] below the ground at which a contact has closed
FAST = 50.0  # times the slowest slip: from there on slip that begins may turn
BACK = ROUNDING  # [m/s] of slip that begins in the wrong direction
TURNING, STARTING, STRAIGHT = 2.0, 1.0, 0.0  # how a group slips
OWN = ("active", "direction", "coefficient", "slip", "share")  # of rows; direction of open: depth
SHARED = ("rest", "slowest", "springs")


class ModeValues:
    """Numbers of the modes, which are the last parameters of a `ModeModel`."""

    def __init__(self, table: ContactTable) -> None:
        m = len(table.rows)
        self.active, self.direction, self.coefficient, self.slip, self.share = (
            np.zeros(m) for _ in OWN
        )
        self.rest, self.slowest, self.springs = 0.0, 0.0, STIFF

    @property
    def vector(self) -> Array:
        """All of them."""
        own = (self.active, self.direction, self.coefficient, self.slip, self.share)
        return np.concatenate([*own, [self.rest, self.slowest, self.springs]])


class ModeModel(Model):
    """A model whose contacts stay in modes that are parameters.

    Attributes:
        base: The model without contact forces.
        table: Its contact rows.
    """

    def __init__(self, base: Model) -> None:
        self.base, facts = base, facts_of(base)
        self.table = table = facts.contact_table
        count = len(OWN) * len(table.rows) + len(SHARED)
        own = () if facts.fixed else facts.parameters
        owners = zip(table.normals, table.normal_contacts, strict=True)
        wide = replace(
            facts,
            parameters=(*own, *((f"contact_mode_{k}", 0.0) for k in range(count))),
            fixed=False,
            contact_table=ContactTable(),
            contacts=tuple(table.names[k] for r, k in owners if table.rows[r].endswith(".touch")),
            unknown_forces=(),
            rows=(),  # their forces are not those of the free mechanism
            row_units=(),
        )
        super().__init__(wide, ModeLibrary(library_of(base), facts, wide.contacts))

    @property
    def has_equations(self) -> bool:
        return self.base.has_equations

    @property
    def equations(self) -> Equations:
        return self.base.equations

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.base,)


def mode_model(model: Model) -> ModeModel:
    """Return the model in modes, made once."""
    kept = memory_of(model)
    if "modes" not in kept:
        kept["modes"] = ModeModel(model_on_cpu(model))
    made: ModeModel = kept["modes"]
    return made


class ModeLibrary(DerivedLibrary):
    """Functions of a model with contact forces, in modes that stand at the end of p."""

    def __init__(self, base: AbstractLibrary, facts: Facts, contacts: Sequence[str]) -> None:
        super().__init__(base)
        self._facts, self._contacts = facts, tuple(contacts)

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self._base.names() if name not in (JACOBIAN, CONTACT_ROWS))

    def changed(self, name: str) -> Tape:
        """Make a function of the modes, or add them to the parameters of another."""
        if name in MADE:
            return self._made.tape(name)
        if name == JACOBIAN or "_by_" in name:
            raise NotApplicable(f"'{self._facts.name}': {name} knows no contacts")
        tape = self._base.tape(name)
        if all(port.name != "p" for port in tape.inputs):
            return tape
        p = Port("p", (self._made.sizes["p"],))
        return replace(tape, inputs=tuple(p if port.name == "p" else port for port in tape.inputs))

    @cached_property
    def _made(self) -> _Modes:
        return _Modes(self._base, self._facts, self._contacts)

    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Entry:
        raise NotApplicable(f"'{self._facts.name}': hybrid dynamics know no contacts")

    def on_target(self, target: str) -> ModeLibrary:
        return ModeLibrary(self._base.on_target(target), self._facts, self._contacts)


class _Modes:
    """The functions that depend on the modes, as operations on one builder."""

    def __init__(self, base: AbstractLibrary, facts: Facts, contacts: Sequence[str]) -> None:
        self.facts, self.table, self.contacts = facts, facts.contact_table, contacts
        needed = ("state_rate", "mass_matrix", CONTACT_ROWS, *((MOMENTUM,) if facts.driven else ()))
        tapes = {name: base.tape(name) for name in needed}
        own = 0 if facts.fixed else len(facts.parameters)
        m = len(self.table.rows)
        sizes = {port.name: port.size for tape in tapes.values() for port in tape.inputs}
        self.sizes: dict[str, int] = {
            name: sizes[name] for name in ("q", "nu", "u", "t") if name in sizes
        }
        self.sizes["p"] = own + len(OWN) * m + len(SHARED)
        self.builder = TapeBuilder()
        self.given: dict[str, list[int]] = {
            name: [self.builder.input(k, i) for i in range(size)]
            for k, (name, size) in enumerate(self.sizes.items())
        }
        modes = self._formulas(self.given["p"][own:])
        parts = [modes[k * m : (k + 1) * m] for k in range(len(OWN))]
        self.active, self.direction, self.coefficient, self.slip, self.share = parts
        self.rest, self.slowest, self.springs = modes[-len(SHARED) :]
        made = {
            name: self._formulas(self.builder.replay(tape, self._arguments(tape)))
            for name, tape in tapes.items()
        }
        n = self.n = len(facts.independent)
        ends = np.cumsum(self.table.sizes(n))
        split = [
            made[CONTACT_ROWS][end - size : end]
            for end, size in zip(ends.tolist(), self.table.sizes(n), strict=True)
        ]
        self.gap, J, self.drift, self.bias, self.limits, _, _ = split
        self.J = [J[r * n : (r + 1) * n] for r in range(m)]
        nu = self._formulas(self.given["nu"])[:n]
        self.zero = self.rest.like(0.0)
        self.v = [_dot(row, nu, self.zero) + d for row, d in zip(self.J, self.drift, strict=True)]
        self.rate = made["state_rate"]
        n_q = len(facts.coordinates)
        self.free = self.rate[n_q : n_q + n]
        M = [made["mass_matrix"][i * n : (i + 1) * n] for i in range(n)]
        if facts.driven:  # momentum at speeds of zero
            moved = [a - b for a, b in zip(made[MOMENTUM][:n], nu, strict=True)]
            self.carried = [_dot(row, moved, self.zero) for row in M]
        else:
            self.carried = [self.zero] * n
        self._eliminate(M)
        self._solve()

    def _formulas(self, numbers: Sequence[int]) -> Vector:
        return [Formula(self.builder, number) for number in numbers]

    def _arguments(self, tape: Tape) -> list[list[int]]:
        return [self.given[port.name][: port.size] for port in tape.inputs]

    def _eliminate(self, M: list[Vector]) -> None:
        """Find X = M^-1 J^T and G = J X, by M = L D L^T."""
        n, zero = self.n, self.zero
        L = [[zero] * n for _ in range(n)]
        D: Vector = []
        for j in range(n):
            weighted = [L[j][k] * D[k] for k in range(j)]
            D.append(M[j][j] - _dot(L[j][:j], weighted, zero))
            for i in range(j + 1, n):
                L[i][j] = (M[i][j] - _dot(L[i][:j], weighted, zero)) / D[j]
        self.X: list[Vector] = []  # by row of J
        for row in self.J:
            x = list(row)
            for i in range(n):
                x[i] = x[i] - _dot(L[i][:i], x[:i], zero)
            x = [a / d for a, d in zip(x, D, strict=True)]
            for i in reversed(range(n)):
                x[i] = x[i] - _dot([L[k][i] for k in range(i + 1, n)], x[i + 1 :], zero)
            self.X.append(x)
        self.G = [[_dot(row, x, zero) for x in self.X] for row in self.J]  # (L1)

    def _solve(self) -> None:
        """Find the forces of all rows in the modes."""
        table, m, zero = self.table, len(self.table.rows), self.zero
        gaps = dict(zip(table.normals, self.gap, strict=True))
        wanted = []
        for r in range(m):
            a = _dot(self.J[r], self.free, zero) + self.bias[r]
            back = 2.0 * RETURN * self.v[r] if r in gaps else RETURN * self.v[r]
            wanted.append(a + back + (RETURN**2 * gaps[r] if r in gaps else zero))
        A = [
            [self.active[r] * self.G[r][s] if r != s else zero for s in range(m)] for r in range(m)
        ]
        stiffness = [self.G[r][r] for r in range(m)]
        for group in table.rubbing:  # one per disk, as a row of it may move with nothing
            largest = stiffness[group.rows[0]].most(stiffness[group.rows[-1]])
            for r in group.rows:
                stiffness[r] = largest
        springs = [self.springs * stiff for stiff in stiffness]
        for r in range(m):
            on = self.active[r]
            A[r][r] = on * (self.G[r][r] + springs[r]) + (1.0 - on)
        constant = [-self.active[r] * wanted[r] for r in range(m)]
        self.slides = [zero] * m
        for group in table.rubbing:
            speeds = [self.v[r] for r in group.rows]
            size = _dot(speeds, speeds, zero).sqrt()
            for r, v in zip(group.rows, speeds, strict=True):
                turns = self.slip[r] > 1.5
                e = turns.then(v / turns.then(size, 1.0), self.direction[r])
                pull = (1.0 - self.active[r]) * self.coefficient[r] * e
                self.slides[r] = e
                if group.normal < 0:
                    constant[r] = constant[r] - pull
                else:
                    A[r][group.normal] = A[r][group.normal] + pull
        lower, upper = _factor(A)
        force = self.share
        for _ in range(REPEATS + 1):
            more = [b + self.active[r] * springs[r] * force[r] for r, b in enumerate(constant)]
            force = _solved(lower, upper, more)  # (L4)
        self.force = force

    def tape(self, name: str) -> Tape:
        """Tape of one of these functions."""
        made = {
            "state_rate": self._state_rate,
            "forward_dynamics": lambda: self._accelerations,
            "contact_forces": self._contact_forces,
            WATCHED: self._watched,
        }[name]()
        shape = (len(made) // 3, 3) if name == "contact_forces" else (len(made),)
        ports = tuple(Port(n, (size,)) for n, size in self.sizes.items())
        results = [formula.number for formula in made]
        return Tape.build(name, ports, (Port(name, shape),), self.builder, results)

    def _moving(self, x: Formula) -> Formula:
        return (self.rest > 0.5).then(0.0, x)

    @cached_property
    def _pulled(self) -> Vector:
        """Accelerations that the contact forces add."""
        return [_dot([x[i] for x in self.X], self.force, self.zero) for i in range(self.n)]

    @cached_property
    def _accelerations(self) -> Vector:
        return [self._moving(a + b) for a, b in zip(self.free, self._pulled, strict=True)]

    def _state_rate(self) -> Vector:
        """Rates of q and nu, the power supplied and the power lost, that of friction too."""
        n_q = len(self.facts.coordinates)
        supplied, lost = self.rate[-2:]
        supplied = supplied - _dot(self.force, self.drift, self.zero)
        supplied = supplied + _dot(self.carried, self._pulled, self.zero)
        lost = lost - _dot(self.force, self.v, self.zero)  # (L7)
        q_dot = self.rate[:n_q]
        works = (supplied, lost)
        return [*map(self._moving, q_dot), *self._accelerations, *map(self._moving, works)]

    def _contact_forces(self) -> Vector:
        """Longitudinal, lateral and normal force of the ground on every contact."""
        rows = {name: r for r, name in enumerate(self.table.rows)}
        made: Vector = []
        for contact in self.contacts:
            for part in ("longitudinal", "lateral", "touch"):
                row = rows.get(f"{contact}.{part}")
                made.append(self.zero if row is None else self.force[row])
        return made

    def _watched(self) -> Vector:
        """Numbers that fall through zero where a mode ends: of normal rows, then of groups. (L5)"""
        made: Vector = []
        for row, gap in zip(self.table.normals, self.gap, strict=True):
            above = gap + (self.direction[row] + GRAZING)
            made.append((self.active[row] > 0.5).then(self.force[row], above))
        for group in self.table.rubbing:
            first, zero = group.rows[0], self.zero
            force = [self.force[r] for r in group.rows]
            limit = self.limits[first]
            if group.normal >= 0:
                limit = limit * self.force[group.normal]
            margin = limit - _dot(force, force, zero).sqrt()
            v = [self.v[r] for r in group.rows]
            along = _dot(v, [self.direction[r] for r in group.rows], zero)
            speed = _dot(v, v, zero).sqrt() - self.slowest
            slip, slides = self.slip[first], self.coefficient[first] > 0.0
            ends = along
            if len(v) > 1:
                begins = (FAST * self.slowest - along).least(along + BACK)
                ends = (slip > 1.5).then(speed, (slip > 0.5).then(begins, ends))
            made.append((self.active[first] > 0.5).then(margin, slides.then(ends, 1.0)))
        return made


def _dot(a: Sequence[Formula], b: Sequence[Formula], zero: Formula) -> Formula:
    """Sum of products, those with the constant zero left out."""
    total = zero
    for x, y in zip(a, b, strict=True):
        if not (x.is_zero() or y.is_zero()):
            total = total + x * y
    return total


def _factor(A: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    """L and U of a matrix, without pivots."""
    m = len(A)
    U = [list(row) for row in A]
    L = [list(row) for row in A]
    for k in range(m):
        for i in range(k + 1, m):
            if U[i][k].is_zero():
                L[i][k] = U[i][k]
                continue
            L[i][k] = factor = U[i][k] / U[k][k]
            for j in range(k + 1, m):
                if not U[k][j].is_zero():
                    U[i][j] = U[i][j] - factor * U[k][j]
    return L, U


def _solved(L: list[Vector], U: list[Vector], b: Sequence[Formula]) -> Vector:
    x = list(b)
    m = len(x)
    for i in range(m):
        for k in range(i):
            if not L[i][k].is_zero():
                x[i] = x[i] - L[i][k] * x[k]
    for i in reversed(range(m)):
        for k in range(i + 1, m):
            if not U[i][k].is_zero():
                x[i] = x[i] - U[i][k] * x[k]
        x[i] = x[i] / U[i][i]
    return x


def joined_watches(first: Tape | None, watched: Tape, plan: Tape | None) -> Tape:
    """Join the user's events and the watched functions, with inputs computed by their tape."""
    builder = TapeBuilder()
    tapes = [tape for tape in (first, watched) if tape is not None]
    sizes: dict[str, int] = {}
    for tape in (*tapes, *(() if plan is None else (plan,))):
        for port in tape.inputs:
            if port.name != "u" or plan is None:
                sizes.setdefault(port.name, port.size)
    given = {
        name: [builder.input(k, i) for i in range(size)]
        for k, (name, size) in enumerate(sizes.items())
    }
    if plan is not None:
        given["u"] = builder.replay(plan, [given[port.name] for port in plan.inputs])
    results = [
        number
        for tape in tapes
        for number in builder.replay(tape, [given[port.name] for port in tape.inputs])
    ]
    ports = tuple(Port(name, (size,)) for name, size in sizes.items())
    return Tape.build("events", ports, (Port("events", (len(results),)),), builder, results)
