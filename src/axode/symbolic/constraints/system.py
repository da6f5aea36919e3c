"""A mechanism in symbols: its tree, its rows, what they leave free and what acts on it.

This is what every formulation starts from. Tangents, the displacements that rows on positions leave
free, stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import casadi as ca
import numpy as np

from axode.errors import Fault, Immobile, InvalidIndependent, MechanismError, UnknownName, first_of
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import parameters_of, speed_meanings, tree_order
from axode.numerics.rank import least_norm, weakest_rows
from axode.numerics.tolerances import NEGLIGIBLE, SPANNING
from axode.symbolic.algebra.spatial import SX, RigidInertia
from axode.symbolic.constraints.assembly import Assembly
from axode.symbolic.constraints.closing import close_loops
from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.level import (
    LevelBase,
    level_bases,
    level_tree,
    with_quasi_velocities,
)
from axode.symbolic.constraints.loops import loop_rows, point_loops
from axode.symbolic.constraints.redundant_rows import (
    RankReport,
    analyse,
    choose_speeds,
    condition_of,
)
from axode.symbolic.tree.generalized_forces import AppliedForces, applied_forces
from axode.symbolic.tree.inertia import link_inertias, link_spreads, regrouped, without_spin
from axode.symbolic.tree.kinematics import Tree, build_tree
from axode.symbolic.tree.rows import (
    DEFINITION,
    Row,
    check_couplings,
    column_of,
    coupling_rows,
    matrix_of,
    prescribed_rows,
)
from axode.symbolic.wheels.contacts import axis_along_normal, contact_rows


@dataclass(frozen=True)
class System:
    """Symbols and structure of a mechanism, before any dynamics."""

    mechanism: Mechanism
    tree: Tree
    rows: tuple[Row, ...]
    report: RankReport
    samples: tuple[np.ndarray, ...]
    home: np.ndarray
    assembly: Assembly = field(repr=False)
    forces: AppliedForces
    independent: tuple[int, ...]
    defaults: np.ndarray
    parameter_names: tuple[str, ...]
    base: tuple[int, ...] | None = None  # speeds that solves are built on; chosen unless given
    level: tuple[LevelBase, ...] = ()  # floating bases that contacts keep from tilting
    reduce: bool = False  # whether these were looked for

    @property
    def free_tree(self) -> Tree:
        """The tree at any configuration: floating bases may tilt."""
        return self.assembly.tree

    @cached_property
    def free(self) -> System:
        """System on that tree, for what is differentiated by all coordinates."""
        if not self.level:
            return self
        tree = self.free_tree
        more = SX.zeros(tree.N.shape[0], self.tree.v.shape[0] - tree.v.shape[0])
        wider = replace(self.tree, links=tree.links, N=ca.horzcat(tree.N, more), _poses={})
        return replace(self, tree=wider, level=())

    @cached_property
    def nu(self) -> SX:
        """Symbols of the independent speeds."""
        names = [self.tree.speed_names[j] for j in self.independent]
        return ca.vertcat(SX.zeros(0), *[SX.sym(name) for name in names])

    @cached_property
    def nu_dot(self) -> SX:
        """Symbols of the independent accelerations."""
        names = [self.tree.speed_names[j] for j in self.independent]
        return ca.vertcat(SX.zeros(0), *[SX.sym(f"d({name})") for name in names])

    @cached_property
    def u(self) -> SX:
        """Symbols of the inputs."""
        names = self.forces.input_names
        return ca.vertcat(*[SX.sym(name) for name in names]) if names else SX.zeros(0)

    @cached_property
    def kept(self) -> list[Row]:
        """Rows that hold something of their own."""
        return [self.rows[r] for r in self.report.kept]

    @cached_property
    def A(self) -> SX:
        """Constraint matrix of the kept rows: A v = b."""
        return matrix_of(self.kept, self.tree.v.shape[0])

    @cached_property
    def definitions(self) -> list[Row]:
        """Rows that define quasi-velocities, in their order, the last of the speeds."""
        return [row for row in self.kept if row.kind == DEFINITION]

    @cached_property
    def W(self) -> SX:
        """Quasi-velocities from the joints' speeds: w = W v.  (N11)"""
        size = self.tree.v.shape[0] - len(self.definitions)
        return -matrix_of(self.definitions, self.tree.v.shape[0])[:, :size]

    @cached_property
    def all_rows_function(self) -> ca.Function:
        """A of all rows, dropped ones included, for numbers q, t and p."""
        A = ca.densify(matrix_of(list(self.rows), self.tree.v.shape[0]))
        return ca.Function("A", [self.tree.q, self.tree.t, self.tree.parameters], [A])

    @cached_property
    def b(self) -> SX:
        """What explicit time asks of the rows."""
        return column_of([row.rate for row in self.kept])

    @cached_property
    def row_parameters(self) -> tuple[str, ...]:
        """Parameters that rows depend on, if any row was dropped: at other values it might hold."""
        if not self.report.dropped or not self.parameter_names:
            return ()
        everything = ca.veccat(
            matrix_of(list(self.rows), self.tree.v.shape[0]),
            column_of([row.rate for row in self.rows]),
            *[row.residual for row in self.rows if row.residual is not None],
        )
        used = ca.which_depends(everything, self.tree.parameters, 1, False)
        return tuple(n for n, hangs in zip(self.parameter_names, used, strict=True) if hangs)

    @cached_property
    def complement(self) -> Complement:
        """Theta and the solves behind it."""
        bias = column_of([row.bias for row in self.kept])
        independent, legs = list(self.independent), point_loops(self.tree, self.kept)
        return Complement.of(
            self.A,
            self.b,
            bias,
            self.report,
            independent,
            legs,
            self.base,
            tree=self.tree,
            rows=self.kept,
        )

    @cached_property
    def tangents(self) -> Complement:
        """Displacements that the constraints on positions leave free; its speeds name them."""

        return find_tangents(self)

    @cached_property
    def leaning(self) -> tuple[Contact, ...]:
        """Wheels whose axis turns against the ground's normal, so that they may come to lie flat.

        Judged from the samples: four wheels on one plane keep their body level.
        """
        wheels = [contact for contact in self.mechanism.ideal_contacts if contact.wheel.has_axis]
        if not wheels:
            return ()
        tree = self.tree
        cosines = ca.vertcat(*[axis_along_normal(tree, contact) for contact in wheels])
        if not ca.depends_on(cosines, tree.q):
            return ()
        function = ca.Function("c", [tree.q, tree.t, tree.parameters], [ca.densify(cosines)])
        values = np.array([function(q, 0.0, self.defaults).full().ravel() for q in self.samples])
        changes = np.ptp(values, axis=0)  # of the cosine against the ground
        return tuple(w for w, c in zip(wheels, changes, strict=True) if c > NEGLIGIBLE)

    @cached_property
    def inertias(self) -> list[RigidInertia]:
        """Inertia of the links, as described."""
        return link_inertias(self.tree)

    @cached_property
    def spreads(self) -> list[SX]:
        """Sum of m c^2 over each link's bodies."""
        return link_spreads(self.tree)

    @cached_property
    def regrouped(self) -> list[RigidInertia]:
        """Inertia of the links, in the fewest parameters that determine the motion."""
        return regrouped(self.tree, self.inertias)

    @cached_property
    def still_tree(self) -> Tree:
        """The tree for the recursions: balanced wheels in axes that do not spin with them."""
        return without_spin(self.tree, self.regrouped)

    @property
    def is_tree(self) -> bool:
        """Return whether nothing constrains the speeds."""
        return not self.kept

    @cached_property
    def rheonomic(self) -> bool:
        """Return whether explicit time constrains the motion, if only in steps."""
        driven = [row.residual for row in self.rows if row.kind == "prescribed"]
        return not self.b.is_zero() or any(
            residual is not None and ca.depends_on(residual, self.tree.t) for residual in driven
        )

    def chosen(self, x: SX) -> SX:
        """The entries of a column of all speeds that belong to the independent ones."""
        return x[list(self.independent), :] if self.independent else SX.zeros(0, 1)

    def at_speeds(self, expression: SX, by_inverse: bool = False) -> SX:
        """An expression of all speeds as one of the independent ones.

        Args:
            expression: Expression of all speeds.
            by_inverse: Whether it contains `Complement.B_inverse` already.
        """
        if self.tree.v.shape[0] == 0:
            return expression
        v = self.complement.speeds(self.nu, by_inverse)
        return ca.substitute(expression, self.tree.v, v)


@dataclass(frozen=True)
class OpenSystem:
    """Return the symbols of a mechanism before its rows are analysed and its loops closed."""

    tree: Tree
    rows: list[Row]
    forces: AppliedForces
    defaults: np.ndarray
    parameter_names: tuple[str, ...]


def build_open_system(mechanism: Mechanism) -> OpenSystem:
    """Build the tree, all constraint rows and the applied forces of a mechanism."""
    parameters = parameters_of(mechanism)
    symbols = {name: SX.sym(name) for name in parameters}
    t = SX.sym("t")
    p = ca.vertcat(*symbols.values()) if symbols else SX.zeros(0)
    defaults = np.array([parameter.default for parameter in parameters.values()])
    tree = build_tree(mechanism, {**symbols, "t": t}, t, p)
    return OpenSystem(
        tree, all_rows(tree, defaults), applied_forces(tree), defaults, tuple(parameters)
    )


def build_system(
    mechanism: Mechanism, independent: Sequence[str] | None, *, reduce: bool = False
) -> System:
    """Symbols, rows, rank and independent speeds of a mechanism that `check` has passed.

    Args:
        mechanism: What moves.
        independent: Names of the speeds to keep; chosen unless given.
        reduce: Whether bases that contacts keep from tilting are written as such.
    """
    opened = build_open_system(mechanism)
    tree, rows, defaults = opened.tree, opened.rows, opened.defaults
    function = ca.Function(
        "A", [tree.q, tree.t, tree.parameters], [matrix_of(rows, tree.v.shape[0])]
    )

    def A(q: np.ndarray) -> np.ndarray:
        return np.array(ca.DM(function(q, 0.0, defaults)).full())

    closed = close_loops(tree, rows, defaults, A)
    home, samples = closed.home, closed.samples
    at_home = A(home)[list(closed.report.kept)]
    report = replace(closed.report, home_matrix=(at_home,))
    if not report.null_bases:
        raise Immobile(
            f"mechanism '{mechanism.name}': every configuration tried is singular; give a regular "
            "one with mechanism.set_home(...)"
        )
    _check_rates(mechanism, tree, rows, report, samples, defaults)
    driven = any(row.kind == "prescribed" for row in rows)
    if report.null_bases[0].shape[1] == 0 and not driven:
        raise _immobile(mechanism, tree, rows, report)
    forces = opened.forces
    level: list[LevelBase] = []
    if reduce:
        level = level_bases(tree, rows, report, closed.assembly, [*samples, home])
    if level:
        tree, rows = _level(tree, rows, level, defaults)
        forces = applied_forces(tree, opened.tree)
    if mechanism.quasi_velocities:
        tree, rows, report = with_quasi_velocities(tree, rows, report, samples, home, defaults)
        mechanism, forces = tree.mechanism, applied_forces(tree, opened.tree)
    chosen = _choose(mechanism, tree, report, independent)
    return System(
        mechanism,
        tree,
        tuple(rows),
        report,
        tuple(samples),
        home,
        closed.assembly,
        forces,
        tuple(chosen),
        defaults,
        opened.parameter_names,
        level=tuple(level),
        reduce=reduce,
    )


def _level(
    tree: Tree, rows: Sequence[Row], level: Sequence[LevelBase], defaults: np.ndarray
) -> tuple[Tree, list[Row]]:
    """Write bases as ones that do not tilt; residuals stay those of bases that may."""
    straight = level_tree(tree, level)
    pairs = zip(all_rows(straight, defaults), rows, strict=True)
    return straight, [
        replace(a, residual=b.residual, nearby=None if a.residual is None else a.drift)
        for a, b in pairs
    ]


def add_motors(system: System, motors: Mapping[str, str]) -> System:
    """Return the same rows and independent speeds with more motors.

    Args:
        system: What the motors drive.
        motors: Speed that each drives, by the name of its input.
    """
    mechanism = system.mechanism.copy()
    for name, speed in motors.items():
        mechanism.add_motor(name, speed, input=name)
    tree = replace(system.tree, mechanism=mechanism)
    return replace(
        system, mechanism=mechanism, tree=tree, forces=applied_forces(tree, system.free_tree)
    )


def all_rows(tree: Tree, defaults: np.ndarray) -> list[Row]:
    """Rows of all loops, contacts, couplings and prescribed motions."""
    motion = tree.motion(tree.v, None, gravity=False)
    _, u = tree.velocities(tree.v)
    rows: list[Row] = []
    for loop in tree.mechanism.loops:
        rows += loop_rows(tree, loop, motion, u)
    for contact in tree.mechanism.ideal_contacts:
        rows += contact_rows(tree, contact, motion, u)
    check_couplings(tree, defaults)
    rows += coupling_rows(tree)
    rows += prescribed_rows(tree)
    return rows


def _check_rates(
    mechanism: Mechanism,
    tree: Tree,
    rows: list[Row],
    report: RankReport,
    samples: Sequence[np.ndarray],
    defaults: np.ndarray,
) -> None:
    """Require that rows that follow from others ask for the same rates.

    Raises:
        MechanismError: naming a prescribed coordinate that the others move at another rate.
    """
    rates = column_of([row.rate for row in rows])
    if rates.is_zero():
        return
    function = ca.Function("b", [tree.q, tree.t, tree.parameters], [ca.densify(rates)])
    kept = list(report.kept)
    for q, A in zip(samples, report.all_matrices, strict=True):
        for t in (0.0, 0.37, 1.1):  # any instants will do
            b = np.array(function(q, t, defaults)).ravel()
            v = least_norm(A[kept], b[kept])
            wrong = np.abs(A @ v - b)
            if wrong.max() > max(1e-6, report.tolerance) * max(1.0, np.abs(b).max()):
                name = rows[int(np.argmax(wrong))].name
                raise MechanismError(
                    f"mechanism '{mechanism.name}'",
                    [
                        Fault(
                            "prescribed",
                            "",
                            name.removesuffix(".prescribed"),
                            "contradicts the other constraints: they move it at another rate; "
                            "remove one of the prescribed motions",
                        )
                    ],
                )


def _immobile(mechanism: Mechanism, tree: Tree, rows: list[Row], report: RankReport) -> Immobile:
    names = ", ".join(rows[r].name for r in report.kept)
    remove = "Remove a loop or a prescribed motion"
    if any(row.kind == "coupling" for row in rows):
        remove = (
            "Make the ratios of couplings agree, remove a coupling, a loop or a prescribed motion"
        )
    weak = first_of([name for name, _ in report.weak])
    rounded = (
        f"\n  {weak} nearly follow from others: if the numbers are rounded, allow for it with "
        f"mechanism.loop_tolerance (it is {mechanism.loop_tolerance:g})."
    )
    return Immobile(
        f"mechanism '{mechanism.name}' cannot move: {tree.v.shape[0]} speeds, {len(report.kept)} "
        f"independent rows ({names}).\n  {remove}, give a joint more freedom, or let a wheel slide "
        "with lateral='free'." + rounded * bool(weak)
    )


def _choose(
    mechanism: Mechanism, tree: Tree, report: RankReport, asked: Sequence[str] | None
) -> list[int]:
    """Independent speeds: the user's, else the motors', else well-conditioned and well named."""
    n = report.null_bases[0].shape[1]
    preferred = preference(mechanism, tree)
    if asked is not None:
        return _users_choice(mechanism, tree, report, asked, preferred)
    driven = [tree.speed_names.index(s) for s in _driven(mechanism)]
    if len(driven) == n and condition_of(report, driven) > 1e-3:
        return driven
    return sorted(choose_speeds(report, preferred))


def _driven(mechanism: Mechanism) -> list[str]:
    meanings = speed_meanings(mechanism)
    return list(dict.fromkeys(meanings[drive.coordinate] for drive in mechanism.drives))


def preference(mechanism: Mechanism, tree: Tree) -> list[int]:
    """Speeds in the order in which they make good independent ones.

    Those of a moving base or platform first, in the order surge, sway, yaw rate and their like in
    space; then what motors drive; then the rest.
    """
    bases: list[int] = []
    for connection in tree_order(mechanism):
        joint = connection.joint
        if joint.carries_base:
            rolls = any(contact.body == connection.child for contact in mechanism.contacts)
            names = dict(zip(joint.speed_names, connection.speeds, strict=True))
            order = joint.speed_names if rolls else joint.base_speeds
            bases += [tree.speed_names.index(names[name]) for name in order]
    driven = [tree.speed_names.index(s) for s in _driven(mechanism)]
    wheels = {contact.body for contact in mechanism.contacts}
    spins = [
        tree.speed_names.index(s)
        for c in tree_order(mechanism)
        if c.child in wheels
        for s in c.speeds
    ]
    size = len(tree.speed_names)
    quasi = range(size - len(mechanism.quasi_velocities), size)
    rest = [j for j in range(size) if j not in spins and j not in quasi]
    inner = [j for j in driven if j not in spins]
    return list(dict.fromkeys([*bases, *inner, *rest, *spins, *quasi]))


def _users_choice(
    mechanism: Mechanism, tree: Tree, report: RankReport, asked: Sequence[str], preferred: list[int]
) -> list[int]:
    n = report.null_bases[0].shape[1]
    quasi = {one.name: one for one in mechanism.quasi_velocities}
    meanings = speed_meanings(mechanism)
    chosen: list[int] = []
    for name in asked:
        if name not in meanings:
            raise UnknownName(f"mechanism '{mechanism.name}'", "speed", name, tree.speed_names)
        chosen.append(tree.speed_names.index(meanings[name]))
    if len(set(chosen)) == len(chosen) == n and condition_of(report, chosen) > SPANNING:
        return chosen
    names, order = [tree.speed_names[j] for j in chosen], list(dict.fromkeys([*chosen, *preferred]))
    others = [tree.speed_names[j] for j in choose_speeds(report, order)]
    alternative = ", ".join(repr(str(quasi.get(name, name))) for name in others)
    if len(set(chosen)) != len(chosen):
        reason = "a speed is named twice"
    elif len(chosen) != n:
        reason = f"the mechanism has {n} independent speeds, {len(chosen)} were named"
    else:
        reason = _relation(tree, report, chosen)
    raise InvalidIndependent(
        f"{', '.join(names)} cannot be the independent speeds: {reason}.\n"
        f"  Valid instead: independent=[{alternative}]"
    )


def _relation(tree: Tree, report: RankReport, chosen: list[int]) -> str:
    """Words for the dependence among speeds that cannot be chosen together."""
    Z = report.null_bases[0][chosen]
    weights = weakest_rows(Z)
    involved = [tree.speed_names[j] for j, w in zip(chosen, weights, strict=True) if abs(w) > 1e-6]
    if len(involved) == 1:
        return f"the constraints make {involved[0]} zero"
    return f"the constraints tie {', '.join(involved)} to each other"


def find_tangents(system: System) -> Complement:
    r"""Complement of the rows that come from positions; of all rows if none is a rolling one.

    Rolling forbids speeds, not places: a wheel that cannot slide sideways may have started farther
    to the side. Derivatives by the configuration are taken along

    .. math:: \delta q = N(q)\, \Theta_h(q)\, \xi, \qquad A_h \Theta_h = 0,            \tag{N9}

    with A_h the rows that come from positions. Each tangent is named by a speed, of which it is the
    displacement: the independent ones first, and what rolling rows make dependent after them.
    """
    if all(row.places for row in system.kept):
        return system.complement

    rows, report = _on_positions(system)
    kept = [rows[r] for r in report.kept]
    own = [j for j in system.independent if j < system.W.shape[1]]  # others have no place
    preferred = [*own, *preference(system.mechanism, system.tree)]
    chosen = choose_speeds(report, list(dict.fromkeys(preferred)))
    A, b = matrix_of(kept, system.tree.v.shape[0]), column_of([row.rate for row in kept])
    bias = column_of([row.bias for row in kept])
    return Complement.of(A, b, bias, report, chosen, tree=system.tree, rows=kept)


def position_rows(system: System) -> list[Row]:
    """Rows that `System.tangents` is the complement of."""
    if all(row.places for row in system.kept):
        return system.kept
    rows, report = _on_positions(system)
    return [rows[r] for r in report.kept]


def _on_positions(system: System) -> tuple[list[Row], RankReport]:
    """Rows that come from positions, but for those that contradict others a little."""
    whole = system.report
    places = [r for r, row in enumerate(system.rows) if row.places and r not in set(whole.loose)]
    rows = [system.rows[r] for r in places]
    units = whole.units and whole.units.of_rows(places)
    matrices = [A[places] for A in whole.all_matrices]
    sizes = whole.sizes and whole.sizes.of_rows(places)
    report = analyse(rows, matrices, whole.tolerance, units=units, sizes=sizes)
    at_home = np.array(system.all_rows_function(system.home, 0.0, system.defaults))[places]
    return rows, replace(report, home_matrix=(at_home[list(report.kept)],))
