"""The steps of three derivations: orthogonal complement, first kind, virtual work."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import casadi as ca
import numpy as np

from axode.printing.derivation.sheet import (
    Array,
    DerivationStep,
    Names,
    Sheet,
    WrittenFormula,
    column,
    plain,
)
from axode.printing.latex_names import verbatim
from axode.symbolic.algebra.spatial import SX, skew, symbolic_vector
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.formulations.explicit_complement import ComplementFormulation
from axode.symbolic.formulations.lagrange import (
    LagrangeFormulation,
    kinetic_energy,
    potential_energy,
)
from axode.symbolic.formulations.virtual_work import VirtualWorkFormulation, inertia_force
from axode.symbolic.tree.inertia import body_tensor

TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
MOST_BODIES = 4  # whose matrices are shown
MOST_DROPPED = 6  # rows that are named
THETA = r"\boldsymbol{\Theta}"
Facts = Iterable[tuple[str, str]]


@cache
def _words() -> dict[str, Any]:
    file = resources.files("axode.printing.derivation").joinpath("steps.toml")
    return tomllib.loads(file.read_text("utf-8"))


def step(
    key: str,
    sheet: Sheet,
    blocks: Iterable[WrittenFormula] = (),
    facts: Facts = (),
    tags: Iterable[str] = (),
) -> DerivationStep:
    """Join the text of a step with its matrices and numbers."""
    words = _words()[key]
    law = words.get("law", "")
    if sheet.system.rheonomic:
        law = words.get("moved", law)
    tags = (*words.get("tags", ()), *tags)
    code = words.get("code", "").strip()
    return DerivationStep(
        words["title"], words["prose"], law, tags, tuple(blocks), tuple(facts), code
    )


# what all share -----------------------------------------------------------------------------------


def _coordinates(sheet: Sheet) -> DerivationStep:
    e, names = sheet.equations, sheet.names
    line = rf"\mathbf{{q}} &= {column(names.q)}, \qquad \mathbf{{v}} = {column(names.nu)}"
    if names.u:
        line += rf", \qquad \mathbf{{u}} = {column(names.u)}"
    texts = [
        f"{word} = ({', '.join(group)})"
        for word, group in (("q", e.coordinates), ("v", e.speeds), ("u", e.inputs))
    ]
    rates = sheet.block("q_dot", r"\dot{\mathbf{q}}", sheet.system.tree.q_dot, e.coordinates)
    sizes = f"{len(sheet.system.mechanism.bodies)}, {len(e.coordinates)}, {len(e.speeds)}"
    facts = [("bodies, coordinates, joint speeds", sizes)]
    return step("coordinates", sheet, [WrittenFormula((line,), tuple(texts)), rates], facts)


def _constraints(sheet: Sheet) -> Iterator[DerivationStep]:
    """Rows, rank, choice of speeds and null space; or that there are none."""
    e, system = sheet.equations, sheet.system
    if system.is_tree:
        yield step("free", sheet)
        return
    kinds = {row.kind: None for row in system.rows}
    tags = [tag for kind, tag in (("loop", "C2"), ("rolling", "C5")) if kind in kinds]
    blocks = [sheet.block("A", r"\mathbf{A}", e.A, e.rows, e.speeds)]
    if system.rheonomic:
        blocks.append(sheet.block("b", r"\mathbf{b}", system.b, e.rows))
    yield step("constraints", sheet, blocks, [("rows", ", ".join(e.rows))], tags)
    yield step("rank", sheet, (), _rank(sheet))
    dependent = [j for j in range(len(e.speeds)) if j not in set(system.independent)]
    A_d, names = ca.densify(e.A)[:, dependent], [e.speeds[j] for j in dependent]
    nu = WrittenFormula((rf"\boldsymbol{{\nu}} &= {column(sheet.reduced_names.nu)}",), ())
    value = sheet.numbers(A_d)
    facts = [
        ("independent", ", ".join(e.independent)),
        (r"determinant of $\mathbf{A}_d$", f"{np.linalg.det(value):.4g}"),
        (r"condition of $\mathbf{A}_d$", f"{np.linalg.cond(value):.3g}"),
    ]
    blocks = [nu, sheet.block("A_d", r"{\mathbf{A}_d}", A_d, e.rows, names)]
    yield step("independent", sheet, blocks, facts)
    blocks = [sheet.block("Theta", THETA, e.Theta, e.speeds, e.independent, needed=True)]
    if system.rheonomic:
        s = system.complement.speeds(SX.zeros(len(e.independent)))
        blocks.append(sheet.block("s", r"\mathbf{s}", s, e.speeds))
    facts = [
        (r"size and rank of $\boldsymbol{\Theta}$", _size(sheet.numbers(e.Theta))),
        (r"$\mathbf{A}\, \boldsymbol{\Theta} = \mathbf{0}$", sheet.zero(e.A @ e.Theta)),
    ]
    yield step("null_space", sheet, blocks, facts)


def _rank(sheet: Sheet) -> Facts:
    system, mobility = sheet.system, sheet.equations.mobility
    rows = np.array(system.all_rows_function(sheet.q, 0.0, system.defaults))
    r, (count, m), n = rank_of(rows), rows.shape, len(system.independent)
    entries = dict(mobility.entries())
    yield "all rows", f"{count} by {m}, rank {r} at the state"
    if mobility.dropped:
        more = len(mobility.dropped) - MOST_DROPPED
        named = "; ".join(mobility.dropped[:MOST_DROPPED])
        yield "left out", named + (f"; and {more} more" if more > 0 else "")
    yield "rows kept", f"{len(system.kept)}, of full rank"
    yield "mobility", f"n = {m} - {r} = {m - r}" + ("" if m - r == n else f", elsewhere {n}")
    yield "configurations", entries["configuration"]
    for text in mobility.integrals:
        yield "integral of rolling", text
    yield "kind", entries["kind"]


def _inertia(key: str, sheet: Sheet) -> DerivationStep:
    e = sheet.equations
    least = float(np.linalg.eigvalsh(sheet.numbers(e.I)).min())
    block = sheet.block("I", r"\mathbf{I}", e.I, e.independent, e.independent, symmetric=True)
    return step(key, sheet, [block], [("smallest eigenvalue", f"{least:.4g}")])


def _bias(sheet: Sheet) -> WrittenFormula:
    e = sheet.equations
    return sheet.block("C nu", r"(\mathbf{C}\boldsymbol{\nu})", e.bias, e.independent)


def _end(sheet: Sheet, nu_dot: Array) -> list[DerivationStep]:
    """Forces, and equations of motion with the accelerations at the state."""
    e = sheet.equations
    forces = [
        sheet.block(word, rf"\boldsymbol{{\{word}}}", value, e.independent)
        for word, value in (("tau", e.tau), ("gamma", e.gamma), ("delta", e.delta))
    ]
    tex = rf"\dot{{\boldsymbol{{\nu}}}} &\approx {column([f'{x:.6g}' for x in nu_dot])}"
    texts = [f"nu_dot[{n}] = {x:.6g}" for n, x in zip(e.independent, nu_dot, strict=True)]
    return [
        step("forces", sheet, forces),
        step("motion", sheet, [WrittenFormula((tex,), tuple(texts))]),
    ]


def _size(value: Array) -> str:
    return f"{value.shape[0]} by {value.shape[1]}, rank {rank_of(value)}"


def _not_shown(sheet: Sheet) -> Facts:
    rest = [body.name for body in sheet.system.mechanism.bodies[MOST_BODIES:]]
    named = ", ".join(rest[:MOST_BODIES]) + (", ..." if len(rest) > MOST_BODIES else "")
    return [("not shown", f"{len(rest)} more bodies: {named}")] if rest else []


# the natural orthogonal complement ----------------------------------------------------------------


def by_complement(sheet: Sheet, nu_dot: Array) -> list[DerivationStep]:
    """Twists, their complement, Newton's and Euler's equations, and the projection."""
    e, system, by = sheet.equations, sheet.system, ComplementFormulation(sheet.system)
    along, n = system.tree.time_derivative, e.independent
    rate = along(ca.densify(e.A)) @ e.Theta + e.A @ along(e.Theta)
    skew = along(ca.densify(by.inertia())) - 2 * by.coriolis()
    rate_law = r"$\frac{d}{dt} (\mathbf{A}\, \boldsymbol{\Theta}) = \mathbf{0}$"
    rate_facts = [] if system.is_tree else [(rate_law, sheet.zero(rate))]
    return [
        _coordinates(sheet),
        step(
            "twists",
            sheet,
            _bodies(
                sheet, "U", r"\mathbf{U}", e.U, e.speeds, _in_own_axes(sheet, SX.eye(len(e.speeds)))
            ),
            _not_shown(sheet),
        ),
        *_constraints(sheet),
        step(
            "complement",
            sheet,
            _bodies(sheet, "T", r"\mathbf{T}", e.twist_map, n, _in_own_axes(sheet, e.Theta)),
            [*_orthogonal(sheet), *_not_shown(sheet)],
        ),
        step(
            "rate",
            sheet,
            _bodies(sheet, "T_dot", r"\dot{\mathbf{T}}", by.T_dot, n, _rates_in_own_axes(sheet)),
            [*rate_facts, *_not_shown(sheet)],
        ),
        step("newton_euler", sheet, _tensors(sheet), _masses(sheet)),
        _inertia("inertia", sheet),
        step(
            "coriolis",
            sheet,
            [sheet.block("C", r"\mathbf{C}", e.C, n, n), _bias(sheet)],
            [(r"symmetric part of $\dot{\mathbf{I}} - 2\, \mathbf{C}$", sheet.zero(skew + skew.T))],
        ),
        *_end(sheet, nu_dot),
    ]


def _bodies(
    sheet: Sheet, word: str, tex: str, matrix: SX, columns: Names, own: dict[str, SX]
) -> list[WrittenFormula]:
    """Six rows of each of the first bodies, in the axes of the world or in its own."""
    blocks = []
    for k, body in enumerate(sheet.system.mechanism.bodies[:MOST_BODIES]):
        rows = [f"{body.name}.{axis}" for axis in TWIST]
        symbol = rf"{{{tex}_{{{verbatim(body.name)}}}}}"
        other = (f"the axes of {body.name}", own[body.name]) if body.name in own else None
        part = matrix[6 * k : 6 * k + 6, :]
        blocks.append(sheet.block(f"{word}({body.name})", symbol, part, rows, columns, other=other))
    return blocks


def _in_own_axes(sheet: Sheet, motions: SX) -> dict[str, SX]:
    """Twists at the mass centre for unit motions, in the axes of each body."""
    tree, found = sheet.system.tree, {}
    by = VirtualWorkFormulation(sheet.system)
    for (body, *_), virtual in by.virtual_bodies(motions):
        arm = skew(symbolic_vector(body.com, tree.values))
        found[body.name] = ca.vertcat(virtual.w, virtual.v - arm @ virtual.w)
    return found


def _rates_in_own_axes(sheet: Sheet) -> dict[str, SX]:
    """Rates of the twists for unit independent speeds, resolved in the axes of each body."""
    tree, found = sheet.system.tree, {}
    twists = _in_own_axes(sheet, tree.v)
    for name, T in _in_own_axes(sheet, sheet.equations.Theta).items():
        turning = skew(twists[name][:3])
        found[name] = tree.time_derivative(ca.densify(T)) + ca.diagcat(turning, turning) @ T
    return found


def _orthogonal(sheet: Sheet) -> Facts:
    e = sheet.equations
    yield r"size and rank of $\mathbf{T}$", _size(sheet.numbers(e.twist_map))
    if sheet.system.rheonomic:
        return
    rows = e.twist_constraints.A
    yield r"size and rank of $\mathbf{A}_t$", _size(sheet.numbers(rows))
    yield r"$\mathbf{A}_t\, \mathbf{T} = \mathbf{0}$", sheet.zero(rows @ e.twist_map)


def _tensors(sheet: Sheet) -> list[WrittenFormula]:
    system = sheet.system
    return [
        sheet.block(
            f"I({body.name})",
            rf"{{\mathbf{{I}}_{{{verbatim(body.name)}}}}}",
            body_tensor(body, system.tree.values),
            "xyz",
            "xyz",
            symmetric=True,
        )
        for body in system.mechanism.bodies[:MOST_BODIES]
    ]


def _masses(sheet: Sheet) -> Facts:
    M, bodies = sheet.equations.M, sheet.system.mechanism.bodies
    masses = sheet.numbers(ca.diag(M)).ravel()[3 : 6 * len(bodies) : 6]
    shown = [f"{b.name} {m:.5g}" for b, m in zip(bodies, masses, strict=True)][: 2 * MOST_BODIES]
    yield "masses [kg]", ", ".join(shown) + (", ..." if len(bodies) > len(shown) else "")
    if rotors := M.shape[0] - 6 * len(bodies):
        yield "rotors of geared motors", f"{rotors}, with one row each"


# Lagrange's equations of the first kind -----------------------------------------------------------


def by_first_kind(sheet: Sheet, nu_dot: Array) -> list[DerivationStep]:
    """Energies, multipliers and their elimination."""
    e, system, by = sheet.equations, sheet.system, LagrangeFormulation(sheet.system)
    forces, v = system.forces, system.tree.v
    rest = by.tree_forces(SX.zeros(v.shape)) + forces.elastic + forces.dissipative
    still = ca.substitute(rest, v, SX.zeros(v.shape))  # without what is quadratic in the speeds
    energies = [
        sheet.block("E_kin", r"E_{\mathrm{kin}}", kinetic_energy(system)),
        sheet.block("E_pot", r"E_{\mathrm{pot}}", potential_energy(system)),
    ]
    inertia, gravity = by.tree_inertia, forces.elastic - still
    tree = [
        sheet.block("I~", r"\tilde{\mathbf{I}}", inertia, e.speeds, e.speeds, symmetric=True),
        sheet.block("h~", r"\tilde{\mathbf{h}}", rest - still, e.speeds),
        sheet.block("gamma~", r"\tilde{\boldsymbol{\gamma}}", gravity, e.speeds),
    ]
    first = [] if system.is_tree else [_first_kind(sheet)]
    rows, *others = _constraints(sheet)
    return [
        _coordinates(sheet),
        step("energies", sheet, energies),
        step("tree", sheet, tree),
        rows,
        *others[:1],
        *first,
        *others[1:],
        _inertia("eliminated", sheet),
        step("quadratic", sheet, [_bias(sheet)]),
        *_end(sheet, nu_dot),
    ]


def drift(sheet: Sheet) -> SX:
    """b_dot - A_dot v: what A v_dot must be."""
    along, system = sheet.system.tree.time_derivative, sheet.system
    A = ca.densify(system.A @ system.tree.v)
    return along(system.b) - along(A) if not system.is_tree else SX.zeros(0, 1)


def solve_first_kind(sheet: Sheet) -> tuple[Array, Array, Array]:
    """Return all accelerations and multipliers at the state, and the matrix of their equations."""
    system, by = sheet.system, LagrangeFormulation(sheet.system)
    A, m = sheet.numbers(system.A), len(sheet.equations.speeds)
    force = system.forces.B @ system.u - by.tree_forces(SX.zeros(m))
    right = np.concatenate([sheet.numbers(force).ravel(), sheet.numbers(drift(sheet)).ravel()])
    corner = np.zeros((A.shape[0], A.shape[0]))
    matrix = np.block([[sheet.numbers(by.tree_inertia), -A.T], [A, corner]])
    found = np.linalg.solve(matrix, right)
    return found[:m], found[m:], matrix


def _first_kind(sheet: Sheet) -> DerivationStep:
    e = sheet.equations
    v_dot, multipliers, matrix = solve_first_kind(sheet)
    expected = sheet.numbers(e.multipliers).ravel()
    apart = np.abs(multipliers - expected).max() / max(np.abs(expected).max(), 1e-12)
    symbol = r"\dot{\mathbf{b}} " * sheet.system.rheonomic + r"-\dot{\mathbf{A}}\, \mathbf{v}"
    symbol = f"({symbol})"
    blocks = [sheet.block(plain(symbol), symbol, drift(sheet), e.rows)]
    blocks += [
        sheet.vector("v_dot", r"\dot{\mathbf{v}}", v_dot, e.speeds),
        sheet.vector("lambda", r"\boldsymbol{\lambda}", multipliers, e.rows),
    ]
    facts = [
        ("unknowns", f"{len(v_dot)} accelerations and {len(multipliers)} multipliers"),
        ("condition of the equations", f"{np.linalg.cond(matrix):.3g}"),
        ("multipliers found by elimination", f"differ by {apart:.1e}, relative to the largest"),
    ]
    return step("first_kind", sheet, blocks, facts)


# virtual work -------------------------------------------------------------------------------------


def by_virtual_work(sheet: Sheet, nu_dot: Array) -> list[DerivationStep]:
    """Virtual velocities, accelerations, forces of inertia and their powers, body by body."""
    by = VirtualWorkFormulation(sheet.system)
    forces, *end = _end(sheet, nu_dot)
    return [
        _coordinates(sheet),
        *_constraints(sheet),
        _virtual_velocities(sheet, by),
        _accelerations(sheet, by),
        _inertia_forces(sheet, by, nu_dot),
        _inertia("virtual_inertia", sheet),
        step("virtual_bias", sheet, [_bias(sheet)]),
        forces,
        *end,
    ]


def _virtual_velocities(sheet: Sheet, by: VirtualWorkFormulation) -> DerivationStep:
    blocks = []
    for (body, *_), virtual in islice(by.virtual_bodies(by.Theta), MOST_BODIES):
        for word, tex, value in (
            ("w", r"\boldsymbol{\omega}", virtual.w),
            ("v", r"\mathbf{v}", virtual.v),
        ):
            symbol = rf"{{{tex}_{{{verbatim(body.name)}}}}}"
            rows = [f"{body.name}.{word}{axis}" for axis in "xyz"]
            columns = sheet.equations.independent
            blocks.append(sheet.block(f"{word}({body.name})", symbol, value, rows, columns))
    return step("virtual_velocities", sheet, blocks, _not_shown(sheet))


def _accelerations(sheet: Sheet, by: VirtualWorkFormulation) -> DerivationStep:
    still = by.accelerations(SX.zeros(len(sheet.equations.independent)))
    moving, blocks = by.accelerated(still), []
    for (body, link, _), _ in islice(by.virtual_bodies(by.Theta), MOST_BODIES):
        pose = sheet.system.tree.body_pose[body.name]
        own = moving[link].inside(pose.R, pose.p)
        for word, tex, value in (
            ("epsilon0", r"\boldsymbol{\varepsilon}", own.epsilon),
            ("a0", r"\mathbf{a}", own.a),
        ):
            symbol = rf"{{{tex}^0_{{{verbatim(body.name)}}}}}"
            blocks.append(sheet.block(f"{word}({body.name})", symbol, value, "xyz"))
    return step("accelerations", sheet, blocks, _not_shown(sheet))


def _inertia_forces(sheet: Sheet, by: VirtualWorkFormulation, nu_dot: Array) -> DerivationStep:
    e, blocks = sheet.equations, []
    v_dot = ca.substitute(by.accelerations(e.nu_dot), e.nu_dot, ca.DM(nu_dot))
    moving = by.accelerated(v_dot)
    for (body, link, own), _ in islice(by.virtual_bodies(by.Theta), MOST_BODIES):
        pose = sheet.system.tree.body_pose[body.name]
        both = inertia_force(own, moving[link].inside(pose.R, pose.p))
        for word, value in zip("FM", both, strict=True):
            symbol = rf"\mathbf{{{word}}}_{{{verbatim(body.name)}}}"
            found = sheet.numbers(value).ravel()
            blocks.append(sheet.vector(f"{word}({body.name})", symbol, found, "xyz"))
    powers = by.inertia_powers(v_dot, by.Theta) + by.tau() + by.gamma() + by.delta()
    facts = [("sum of all virtual powers", sheet.zero(powers, exactly=False)), *_not_shown(sheet)]
    return step("inertia_forces", sheet, blocks, facts)
