r"""Velocity constraints that integrate to sums of coordinates.

A sum of coordinates keeps its value if its factors, constants of the parameters, annihilate every
rate that motion can have,

.. math:: c(p)^T N(q)\, \Theta(q) = 0 \quad \text{for all } q .                       \tag{C14}

The entries of N Theta are exact fractions here; each monomial in sines, cosines and coordinates
gives an equation for c, over the fractions of polynomials in the parameters. What follows from the
constraints on positions alone is left out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.numerics.rank import null_space, rank
from axode.numerics.tolerances import NEGLIGIBLE, RANK
from axode.printing.exact import ExactTape, Generator, Poly, TooLong
from axode.printing.parts import unit_quaternions
from axode.symbolic.algebra.spatial import SX

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

P = 4  # argument of the tape that holds the parameters
Array = npt.NDArray[np.float64]


def integrals_of(equations: Equations) -> SX:
    """Sums of coordinates that keep their value though rows ask for speeds alone, in a column."""
    from axode.codegen.tape.tape import Tape

    e = equations
    angles, rates = _angles_and_rates(e)
    fields = ca.densify(
        ca.horzcat(ca.jacobian(rates, e.nu), ca.substitute(rates, e.nu, SX.zeros(e.nu.shape)))
    )
    involved = _involved(e, fields)
    if not involved:
        return SX.zeros(0, 1)
    some = fields[involved, :]
    tape = Tape.from_casadi(ca.Function("rates", [e.q, e.nu, e.u, e.t, e.p], [some]))
    try:
        exact = ExactTape(tape, unit_quaternions(e))
        basis = _null_space(exact, *some.shape) if exact.exact else []
        sums = [
            sum(
                (_symbols(exact, e, c) * angles[k] for k, c in zip(involved, row, strict=True)),
                SX(0),
            )
            for row in basis
        ]
    except (TooLong, ModuleNotFoundError):
        return SX.zeros(0, 1)
    return _on_rolling_rows(e, sums)


def _angles_and_rates(e: Equations) -> tuple[SX, SX]:
    """Coordinates, half angles of free bodies that turn about one axis, and the rates of all.

    Coordinates that never move are where they are at home.
    """
    system, still = e.system, _still(e)
    angles, rates = [e.q], [e.q_dot]
    for connection in system.mechanism.connections:
        if not connection.joint.has_quaternion:
            continue
        w, *axes = (e.coordinates.index(name) for name in connection.coordinates[:4])
        turning = [k for k in axes if k not in still]
        if len(turning) == 1:
            angles.append(ca.atan2(e.q[turning[0]], e.q[w]))
            speed = connection.speeds[axes.index(turning[0])]
            rates.append(e.v[e.speeds.index(speed)] / 2)
    column = ca.vertcat(*rates)
    if still:
        column = ca.substitute(column, e.q[still], ca.DM(system.home[still]))
    return ca.vertcat(*angles), ca.densify(column)


def _still(e: Equations) -> list[int]:
    """Coordinates that have no rate wherever the others are while these are at home."""
    still = list(range(len(e.coordinates)))
    scatter = 0.0
    while True:
        moved = np.abs(_at_random(e, ca.jacobian(e.q_dot, e.nu), still, scatter)).max(
            axis=1, initial=0.0
        )
        kept = [k for k in still if moved[k] < NEGLIGIBLE]
        if kept == still and scatter:
            return still
        still, scatter = kept, 0.3


def _at_random(e: Equations, fields: SX, still: list[int], scatter: float) -> Array:
    """Values of a matrix at random coordinates about home but for some, beside each other."""
    function = ca.Function("fields", [e.q, e.t, e.p], [fields])
    generator = np.random.default_rng(0)
    found = []
    for _ in range(fields.shape[0] + 2):
        q = e.system.home + scatter * generator.uniform(-1, 1, len(e.coordinates))
        q[still] = e.system.home[still]
        for _, places in unit_quaternions(e):
            q[list(places)] /= np.linalg.norm(q[list(places)])
        found.append(function(q, 0.0, e.system.defaults).full())
    return np.hstack(found)


def _involved(e: Equations, fields: SX) -> list[int]:
    """Rows that have a share in some sum that vanishes, by numbers."""
    rates = _at_random(e, fields, [], 0.3)
    shares = np.abs(null_space(rates.T, RANK)).max(axis=1, initial=0.0)
    moves = np.abs(rates).max(axis=1) > NEGLIGIBLE
    return [int(k) for k in np.flatnonzero((shares > NEGLIGIBLE) & moves)]


def _null_space(exact: ExactTape, rows: int, columns: int) -> list[list[Poly]]:
    """Polynomials c in the parameters, without common factors, with c^T results = 0."""
    from sympy import QQ
    from sympy.polys.matrices import DomainMatrix

    constant = [k for k in range(len(exact.atoms)) if _is_constant(exact, k)]
    names = [exact.ring.symbols[k] for k in constant] or [exact.ring.symbols[0]]
    field = QQ.frac_field(*names)
    equations: list[list[Any]] = []
    for j in range(columns):
        column = [exact.results[i * columns + j] for i in range(rows)]
        below = exact.one
        for value in column:
            below = below * exact.cofactors(below, value.below)[2]
        found: dict[tuple[int, ...], list[Any]] = {}
        for i, value in enumerate(column):
            whole = exact.reduce(value.above * below.exquo(value.below))
            for monomial, number in whole.terms():
                factor = field.convert_from(number, exact.ring.domain)
                for k, name in zip(constant, names, strict=False):
                    factor *= field.from_sympy(name) ** monomial[k]
                rest = tuple(0 if k in constant else x for k, x in enumerate(monomial))
                entry = found.setdefault(rest, [field.zero] * rows)
                entry[i] += factor
        equations += found.values()
    whole_matrix = DomainMatrix(equations, (len(equations), rows), field)
    basis = whole_matrix.nullspace().to_list()
    last_first = DomainMatrix([row[::-1] for row in basis], (len(basis), rows), field).rref()[0]
    return [_cleared(exact, row[::-1], constant, field) for row in last_first.to_list()[::-1]]


def _cleared(exact: ExactTape, row: list[Any], constant: list[int], field: Any) -> list[Poly]:
    """Fractions of parameters as polynomials with integers, multiplied by what all are over."""
    below = field.field.ring.one
    for x in row:
        below = below.lcm(x.denom)
    whole = [x.numer * below.exquo(x.denom) for x in row]
    numbers = [number for poly in whole for number in poly.coeffs()]
    scale = Fraction(
        math.lcm(*(int(x.denominator) for x in numbers)),
        math.gcd(*(int(x.numerator) for x in numbers)),
    )
    if next(poly for poly in whole if poly).LC < 0:
        scale = -scale
    found = []
    for poly in whole:
        made = exact.ring.zero
        for monomial, number in poly.terms():
            powers = [0] * exact.ring.ngens
            for k, power in zip(constant, monomial, strict=False):
                powers[k] = power
            made[tuple(powers)] = number * exact.ring.domain(scale.numerator, scale.denominator)
        found.append(made)
    return found


def _is_constant(exact: ExactTape, k: int) -> bool:
    """Return whether a generator is of the parameters alone."""
    atom = exact.atoms[k]
    if atom.label == "input":
        return atom.place[0] == P
    inner = {g for g, _ in atom.angle} | {
        g
        for pair in atom.arguments
        for poly in pair
        for monomial in poly.itermonoms()
        for g, e in enumerate(monomial)
        if e
    }
    return all(_is_constant(exact, g) for g in inner)


def _symbols(exact: ExactTape, e: Equations, poly: Poly) -> SX:
    """A polynomial in the parameters as an expression."""
    total = SX(0)
    for monomial, number in poly.terms():
        term = SX(float(number))
        for k, power in enumerate(monomial):
            if power:
                term *= _atom(exact.atoms[k], e) ** power
        total += term
    return total


def _atom(atom: Generator, e: Equations) -> SX:
    match atom.label:
        case "input":
            return e.p[atom.place[1]]
        case "root":
            return SX(math.sqrt(atom.number))
        case "pi":
            return SX(math.pi)
    raise TooLong


def _on_rolling_rows(e: Equations, sums: list[SX]) -> SX:
    """Return those of the sums that constraints on positions leave free, one of each they tie."""
    system = e.system
    column = ca.vertcat(SX.zeros(0, 1), *sums)
    moved = ca.densify(ca.jacobian(column, e.q) @ system.tree.N @ system.tangents.Theta)
    function = ca.Function("moved", [e.q, e.t, e.p], [moved])
    rates = np.hstack([function(q, 0.0, system.defaults).full() for q in system.samples])
    kept: list[int] = []
    for k in range(len(sums)):
        if rank(rates[[*kept, k]], RANK, floor=1.0) > len(kept):
            kept.append(k)
    return column[kept]
