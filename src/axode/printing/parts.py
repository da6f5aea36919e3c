"""Objects of the theory: what each is, how it is written, its rows and columns, and its numbers.

Parts become tapes, and exact fractions of polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import UnknownName
from axode.numerics.tolerances import NEGLIGIBLE
from axode.printing.exact import ExactTape, TooLong
from axode.printing.layout import FractionLayout
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.tree.recursions import CommonAxes, newton_euler

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.symbolic.equations import Equations
    from axode.symbolic.formulations.legs import LegModel


TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
Names = Sequence[str]
Array = npt.NDArray[np.float64]
Rows = Callable[["Equations"], Names]


@dataclass(frozen=True)
class TheoryPart:
    """An object of the theory.

    Attributes:
        what: What it is, in words.
        rows, columns: Names; a vector has one column, `value`.
        matrix: Its expression, of all speeds or of the independent ones.
        symbol: LaTeX; only parts that have one are printed in symbols.
        text: What stands for it in text; its name unless given.
    """

    what: str
    rows: Rows
    columns: Rows
    matrix: Callable[[Equations], SX]
    symbol: str = ""
    text: str = ""

    def expression(self, equations: Equations, *, all_speeds: bool = False) -> SX:
        """Return its expression of the independent speeds, or of all: so for the first kind."""
        value, system = self.matrix(equations), equations.system
        if all_speeds or is_first_kind(equations):
            value = ca.substitute(value, equations.nu, system.chosen(system.tree.v))
        elif ca.depends_on(value, system.tree.v):
            value = system.at_speeds(value)
        return ca.densify(value)


def is_first_kind(equations: Equations) -> bool:
    """Return whether equations keep all speeds and the constraint forces."""
    return equations.formulation == "multipliers" and not equations.system.is_tree


def default_parts(equations: Equations) -> tuple[str, ...]:
    """Terms of the equations of motion."""
    if not is_first_kind(equations):
        return "I", "bias", "tau", "gamma", "delta"
    forces = ("I_tree", "bias_tree", "tau_tree", "gamma_tree", "delta_tree")
    return (*forces, "A", "A_dot_v", *(("b_dot",) if equations.system.rheonomic else ()))


def part_of(name: str, parts: dict[str, TheoryPart]) -> TheoryPart:
    """Return a part by its name.

    Raises:
        UnknownName: listing those that exist.
    """
    if name not in parts:
        raise UnknownName("the model", "part", name, parts)
    return parts[name]


def _one(_: Equations) -> Names:
    return ("value",)


def _twist(_: Equations) -> Names:
    return TWIST


def _six(_: Equations) -> Names:
    return tuple(str(k) for k in range(1, 7))


def _nu(e: Equations) -> Names:
    return e.independent


def _v(e: Equations) -> Names:
    return e.speeds


def _rows(e: Equations) -> Names:
    return e.rows


def _bodies(e: Equations) -> Names:
    return [f"{body.name}.{axis}" for body, axis in product(e.system.mechanism.bodies, TWIST)]


def _legs(e: Equations) -> Names:
    return [f"leg {n}.{k}" for n, k in product(range(1, len(e.legs.legs) + 1), range(1, 7))]


def _of_bodies(matrix: Callable[[Equations], SX], square: bool = False) -> Callable[..., SX]:
    """Rows of all bodies, without those of motors' rotors."""

    def part(e: Equations) -> SX:
        size = 6 * len(e.system.mechanism.bodies)
        return matrix(e)[:size, :size] if square else matrix(e)[:size, :]

    return part


def _of_legs(matrix: Callable[[Equations, LegModel], SX]) -> Callable[[Equations], SX]:
    return lambda e: ca.vertcat(*[matrix(e, leg) for leg in e.legs.legs])


def _poses(e: Equations) -> SX:
    return ca.vertcat(*[ca.horzcat(pose.R, pose.p) for pose in e.poses.values()])


def _tree_gravity(e: Equations) -> SX:
    tree = e.system.still_tree
    at_rest = tree.motion(SX.zeros(tree.v.shape[0]), None)
    return e.system.forces.elastic - newton_euler(tree, e.system.regrouped, at_rest)


def _rate(e: Equations, matrix: SX) -> SX:
    return e.system.tree.time_derivative(matrix)


PARTS: dict[str, TheoryPart] = {
    "I": TheoryPart("generalized inertia", _nu, _nu, lambda e: e.I, r"\mathbf{I}"),
    "C": TheoryPart("Coriolis matrix", _nu, _nu, lambda e: e.C, r"\mathbf{C}"),
    "bias": TheoryPart(
        "C nu", _nu, _one, lambda e: e.bias, r"(\mathbf{C}\boldsymbol{\nu})", text="C nu"
    ),
    "tau": TheoryPart(
        "generalized force of the inputs", _nu, _one, lambda e: e.tau, r"\boldsymbol{\tau}"
    ),
    "gamma": TheoryPart(
        "generalized force of gravity and springs",
        _nu,
        _one,
        lambda e: e.gamma,
        r"\boldsymbol{\gamma}",
    ),
    "delta": TheoryPart(
        "generalized force of dissipation", _nu, _one, lambda e: e.delta, r"\boldsymbol{\delta}"
    ),
    "Theta": TheoryPart(
        "joint for independent speeds", _v, _nu, lambda e: e.Theta, r"\boldsymbol{\Theta}"
    ),
    "Theta_dot": TheoryPart(
        "rate of Theta", _v, _nu, lambda e: _rate(e, e.Theta), r"\dot{\boldsymbol{\Theta}}"
    ),
    "T": TheoryPart(
        "twists for unit independent speeds", _bodies, _nu, lambda e: e.twist_map, r"\mathbf{T}"
    ),
    "T_dot": TheoryPart("rate of T", _bodies, _nu, lambda e: e.twist_map_rate, r"\dot{\mathbf{T}}"),
    "U": TheoryPart(
        "twists for unit joint speeds", _bodies, _v, _of_bodies(lambda e: e.U), r"\mathbf{U}"
    ),
    "A": TheoryPart("constraints on joint speeds", _rows, _v, lambda e: e.A, r"\mathbf{A}"),
    "A_dot_v": TheoryPart(
        "rate of A times v",
        _rows,
        _one,
        lambda e: _rate(e, e.A @ e.system.tree.v),
        r"(\dot{\mathbf{A}}\mathbf{v})",
        text="A_dot v",
    ),
    "b": TheoryPart(
        "A v = b: acatastatic unless zero", _rows, _one, lambda e: e.system.b, r"\mathbf{b}"
    ),
    "b_dot": TheoryPart(
        "rate of what time asks of the rows",
        _rows,
        _one,
        lambda e: _rate(e, e.system.b),
        r"\dot{\mathbf{b}}",
    ),
    "lambda": TheoryPart(
        "constraint forces", _rows, _one, lambda e: e.multipliers, r"\boldsymbol{\lambda}"
    ),
    "q_dot": TheoryPart(
        "rates of the coordinates",
        lambda e: e.coordinates,
        _one,
        lambda e: e.q_dot,
        r"\dot{\mathbf{q}}",
    ),
    "energy": TheoryPart(
        "energy", lambda _: ("kinetic", "potential"), _one, lambda e: e.energy, r"\mathbf{E}"
    ),
    "I_tree": TheoryPart(
        "U^T M U",
        _v,
        _v,
        lambda e: RecursiveFormulation(e.system).tree_inertia,
        r"\tilde{\mathbf{I}}",
    ),
    "C_tree": TheoryPart(
        "U^T M U_dot + U^T W M U",
        _v,
        _v,
        lambda e: CommonAxes(e.system.tree, e.system.inertias, e.system.spreads).coriolis(),
        r"\tilde{\mathbf{C}}",
    ),
    "bias_tree": TheoryPart(
        "C_tree v",
        _v,
        _one,
        lambda e: RecursiveFormulation(e.system).tree_forces(None, gravity=False),
        r"(\tilde{\mathbf{C}}\mathbf{v})",
        text="C_tree v",
    ),
    "tau_tree": TheoryPart(
        "forces of the inputs on all joints",
        _v,
        _one,
        lambda e: e.system.forces.B @ e.u,
        r"\tilde{\boldsymbol{\tau}}",
    ),
    "gamma_tree": TheoryPart(
        "gravity and springs on all joints", _v, _one, _tree_gravity, r"\tilde{\boldsymbol{\gamma}}"
    ),
    "delta_tree": TheoryPart(
        "dissipation on all joints",
        _v,
        _one,
        lambda e: e.system.forces.dissipative,
        r"\tilde{\boldsymbol{\delta}}",
    ),
    "integrals": TheoryPart(
        "sums of coordinates that motion keeps as they are",
        lambda e: [str(k + 1) for k in range(e.integrals.shape[0])],
        _one,
        lambda e: e.integrals,
        r"\mathrm{const.}",
    ),
    "v": TheoryPart("joint speeds", _v, _one, lambda e: e.v),
    "v_dot": TheoryPart(
        "joint accelerations under the inputs", _v, _one, lambda e: e.accelerations
    ),
    "nu_dot": TheoryPart("independent accelerations", _nu, _one, lambda e: e.forward_dynamics),
    "powers": TheoryPart(
        "powers of the motors",
        lambda e: [drive.name for drive in e.system.mechanism.drives],
        _one,
        lambda e: e.motor_powers,
    ),
    "twists": TheoryPart(
        "twists of the bodies",
        lambda e: tuple(e.twists),
        _twist,
        lambda e: ca.vertcat(*[twist.T for twist in e.twists.values()]),
    ),
    "poses": TheoryPart(
        "axes and origin of every body's frame",
        lambda e: [f"{body}.{axis}" for body, axis in product(e.poses, "xyz")],
        lambda _: ("ex", "ey", "ez", "origin"),
        _poses,
    ),
    "M": TheoryPart(
        "inertia of all bodies", _bodies, _bodies, _of_bodies(lambda e: e.M, square=True)
    ),
    "W": TheoryPart(
        "angular velocities of all bodies", _bodies, _bodies, _of_bodies(lambda e: e.W, square=True)
    ),
    "A_t": TheoryPart(
        "constraints on the twists of the bodies",
        lambda e: e.twist_constraints.row_names,
        _bodies,
        lambda e: e.twist_constraints.A,
        r"(\mathbf{A}_{t})",
    ),
    # platforms on legs
    "M_M": TheoryPart(
        "inertia of the platform", _twist, _twist, lambda e: e.legs.platform_bodies.M
    ),
    "W_M": TheoryPart(
        "angular velocity of the platform", _twist, _twist, lambda e: e.legs.platform_bodies.W
    ),
    "t_M": TheoryPart("twist of the platform", _twist, _one, lambda e: e.legs.t_M),
    "T_M": TheoryPart("the platform's T", _twist, _nu, lambda e: e.legs.T),
    "T_M_dot": TheoryPart("rate of T_M", _twist, _nu, lambda e: e.legs.T_dot),
    "Y": TheoryPart("Z nu = Y t_M", _nu, _twist, lambda e: e.legs.Y),
    "Z": TheoryPart("Z nu = Y t_M", _nu, _nu, lambda e: e.legs.Z),
    "Lambda": TheoryPart("from motors to nu", _nu, _nu, lambda e: e.legs.Lambda),
    "N": TheoryPart("Coriolis matrix, leg by leg", _nu, _nu, lambda e: e.legs.N),
    "J_J": TheoryPart("Jacobians of the legs", _legs, _six, _of_legs(lambda _, leg: leg.J)),
    "L_J": TheoryPart("rates of the legs for unit nu", _legs, _nu, _of_legs(lambda _, leg: leg.L)),
    "L_J_dot": TheoryPart("rates of L_J", _legs, _nu, _of_legs(lambda e, leg: e.legs.L_dot(leg))),
    "K_J": TheoryPart(
        "inverse Jacobians of the legs", _legs, _six, _of_legs(lambda _, leg: leg.inverse.matrix)
    ),
    "I_J": TheoryPart("inertia of the legs", _legs, _six, _of_legs(lambda _, leg: leg.I)),
    "C_J": TheoryPart("Coriolis matrices of the legs", _legs, _six, _of_legs(lambda _, leg: leg.C)),
    "w_J": TheoryPart(
        "what the legs exert on the platform",
        lambda e: [f"leg {n}" for n in range(1, len(e.legs.legs) + 1)],
        _twist,
        lambda e: e.legs.wrenches(e.nu_dot),
    ),
}
PRINTED = {name: part for name, part in PARTS.items() if part.symbol}


# numbers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartValues:
    """A matrix at a state.

    Attributes:
        name, what: The object of the theory, and what it is in words.
        rows, columns: Names; a vector has one column, `value`.
        values: The numbers, (rows, columns).
    """

    name: str
    what: str
    rows: Names
    columns: Names
    values: Array


def part_values(
    equations: Equations, parts: Iterable[str], q: Array, nu: Array, u: Array
) -> list[PartValues]:
    """Evaluate objects of the theory at a state.

    Args:
        equations: What was derived.
        parts: Names of the objects, as `PARTS` lists them.
        q, nu, u: State and inputs.

    Raises:
        UnknownName: for a part that does not exist, listing those that do.
        NotApplicable: for parts of platforms on legs where there are none.
    """
    e = equations
    named = {name: part_of(name, PARTS) for name in parts}
    reduced = [ca.densify(e.system.at_speeds(part.matrix(e))) for part in named.values()]
    nu_dot = np.zeros(len(e.independent))
    if any(ca.which_depends(ca.vertcat(*map(ca.vec, reduced)), e.nu_dot)):
        state = [e.q, e.nu, e.u, e.t, e.p]
        moving = ca.Function("nu_dot", state, [e.forward_dynamics])
        nu_dot = np.array(moving(q, nu, u, 0.0, e.system.defaults)).ravel()
    function = ca.Function("parts", [e.q, e.nu, e.nu_dot, e.u, e.t, e.p], reduced)
    found = function.call([q, nu, nu_dot, u, 0.0, e.system.defaults])
    made = []
    for (name, part), value in zip(named.items(), found, strict=True):
        rows, columns = part.rows(e), part.columns(e)
        numbers = np.array(value).reshape(len(rows), len(columns))
        made.append(PartValues(name, part.what, rows, columns, numbers))
    return made


MOST_OPERATIONS = 4000  # of a part whose exact form is sought
MOST_WRITTEN = 50  # terms of an entry that can be read
MOST_COMPUTED = 150  # the same, of an expression for further computation
Verticals = list[tuple[str, tuple[int, int, int, int]]]


def arguments_of(equations: Equations, *, all_speeds: bool = False) -> list[SX]:
    """Coordinates, speeds, inputs, time and parameters."""
    of_all = all_speeds or is_first_kind(equations)
    speeds = equations.system.tree.v if of_all else equations.nu
    return [equations.q, speeds, equations.u, equations.t, equations.p]


def tape_of(equations: Equations, parts: Iterable[str], *, all_speeds: bool = False) -> Tape:
    """Read the computation of some parts, of the independent speeds or of all."""
    from axode.codegen.tape.tape import Tape

    outputs = [PARTS[part].expression(equations, all_speeds=all_speeds) for part in parts]
    arguments = arguments_of(equations, all_speeds=all_speeds)
    return Tape.from_casadi(ca.Function("model", arguments, outputs))


@dataclass(frozen=True)
class ExactPart:
    """A part of the model as exact fractions, row by row."""

    exact: ExactTape
    layout: FractionLayout
    shape: tuple[int, int]

    @property
    def terms(self) -> int:
        """Terms of all entries, multiplied out."""
        return sum(len(value.above) + len(value.below) for value in self.exact.results)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Rows and columns of the entries."""
        return [(i, j) for i in range(self.shape[0]) for j in range(self.shape[1])]


def exact_part(equations: Equations, part: str, *, all_speeds: bool = False) -> ExactPart | None:
    """Find exact fractions for one part of a model; None where they are too long to be read.

    They are compared with the part as it is computed, at a random state.
    """
    tape = tape_of(equations, [part], all_speeds=all_speeds)
    found = [
        exact_fractions(tape, unit_quaternions(equations), MOST_COMPUTED),
        world_fractions(equations, part, tape, all_speeds=all_speeds, most=MOST_COMPUTED),
    ]
    return min((x for x in found if x is not None), key=lambda x: x.terms, default=None)


def world_fractions(
    equations: Equations,
    part: str,
    tape: Tape,
    *,
    all_speeds: bool = False,
    most: int = MOST_WRITTEN,
) -> ExactPart | None:
    """Find exact fractions for inertia as T^T M T in world axes, and for C nu from these.

    There, angles about parallel axes add up. C nu is the rate of I nu less half the gradient of
    nu^T I nu, where speeds are rates of coordinates; None elsewhere, and for other parts.

    Args:
        equations: The model.
        part: Which part of it.
        tape: How it is computed otherwise.
        all_speeds: Whether the tape is of all speeds.
        most: Terms that an entry may have.
    """
    tree, rates = part.endswith("_tree"), part.startswith("bias")
    if part not in ("I", "I_tree", "bias", "bias_tree") or (rates and tree and not all_speeds):
        return None
    arguments = arguments_of(equations, all_speeds=all_speeds)
    twists = equations.U if tree else equations.T
    inertia = ca.densify(ca.mtimes([twists.T, equations.M, twists]))
    outputs = [inertia]
    if rates:
        q_dot, v = equations.system.tree.q_dot, equations.system.tree.v
        if q_dot.shape != v.shape or not ca.is_equal(q_dot, v, 1):
            return None
        outputs += [arguments[1], SX.eye(v.shape[0]) if tree else equations.Theta]
    world = type(tape).from_casadi(ca.Function("inertia", arguments, [*map(ca.densify, outputs)]))
    if world.n_operations > MOST_OPERATIONS:
        return None
    try:
        exact = ExactTape(world, unit_quaternions(equations))
        if rates:
            ends = np.cumsum([x.numel() for x in outputs])[:-1]
            pieces = np.split(np.array(exact.results, dtype=object), ends)
            exact.results = exact.coriolis_forces(*map(list, pieces))
    except (TooLong, ModuleNotFoundError):
        return None
    return _readable(tape, exact, most)


def exact_fractions(tape: Tape, verticals: Verticals, most: int = MOST_WRITTEN) -> ExactPart | None:
    """Find exact fractions for the first output of a tape, as `exact_part` does."""
    if tape.n_operations > MOST_OPERATIONS:
        return None
    try:
        exact = ExactTape(tape, verticals)
    except (TooLong, ModuleNotFoundError):
        return None
    return _readable(tape, exact, most)


def _readable(tape: Tape, exact: ExactTape, most: int) -> ExactPart | None:
    """Return exact fractions that are short and agree with a tape's first output."""
    if any(len(value.above) + len(value.below) > most for value in exact.results):
        return None
    rows, columns = (*tape.outputs[0].shape, 1, 1)[:2]
    if not exact.exact or not _agrees(tape, exact):
        return None
    return ExactPart(exact, FractionLayout(exact), (rows, columns))


def unit_quaternions(equations: Equations) -> Verticals:
    """Quaternions of bodies that turn freely against the ground, by the name of their joint."""
    names = equations.coordinates
    places = [k for k, name in enumerate(names) if name.endswith(".qw")]
    some = len(places) > 1
    return [
        (names[k].removesuffix(".qw") if some else "", (k, k + 1, k + 2, k + 3)) for k in places
    ]


def _agrees(tape: Tape, exact: ExactTape) -> bool:
    """Evaluate both at a random state, quaternions of unit length."""
    generator = np.random.default_rng(1)
    point = [generator.uniform(0.2, 1.2, port.size) for port in tape.inputs]
    for places in exact.quaternions:
        point[0][list(places)] /= np.linalg.norm(point[0][list(places)])
    value = exact.evaluate([x.tolist() for x in point])
    found = np.array([value(ratio.above) / value(ratio.below) for ratio in exact.results])
    shaped = [x if port.shape else x[0] for x, port in zip(point, tape.inputs, strict=True)]
    expected = np.concatenate([np.ravel(x) for x in tape.evaluate(*shaped)])
    return bool(
        np.allclose(
            found, expected, rtol=NEGLIGIBLE, atol=NEGLIGIBLE * np.abs(expected).max(initial=0.0)
        )
    )
