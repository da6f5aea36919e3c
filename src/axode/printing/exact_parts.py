"""Parts of a model as tapes, and as exact fractions of polynomials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from axode.numerics.tolerances import NEGLIGIBLE
from axode.printing.exact import ExactTape, TooLong
from axode.printing.layout import FractionLayout
from axode.printing.parts import PARTS, is_first_kind
from axode.symbolic.algebra.spatial import SX

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.symbolic.equations import Equations

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
