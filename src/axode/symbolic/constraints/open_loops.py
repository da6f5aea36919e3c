"""Loops that do not close, and homes that closing moves: which rows disagree, and what to do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from axode.errors import LoopNotClosed, RequestNotMetWarning, level_outside
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.parts import Connection
from axode.numerics.rank import rank
from axode.symbolic.tree.rows import Row

if TYPE_CHECKING:
    from axode.symbolic.constraints.assembly import Assembly

NEARLY = 5.0  # times a tolerance: rows whose singular values are smaller are not solved for
MOVED = 0.1  # [rad or of the size] by which a named coordinate of home may move without a warning
MOVED_FAR = 0.5  # likewise, where the loops close next to the configuration named
DEPENDENT = 3e-2  # of the largest singular value: smaller ones are rows that nearly follow
NAMED = 6  # rows that a message names


def not_closed(assembly: Assembly, q: np.ndarray) -> LoopNotClosed:
    """Make the error that names everything that stays open, and the remedies.

    Args:
        assembly: What does not close.
        q: Where it is least open; next to home it is looked for again, surplus rows left open.
    """
    nearest, _ = assembly.close(assembly.named_home, tolerance=DEPENDENT / NEARLY)
    if np.abs(assembly.relative_residual(nearest)).max() < DEPENDENT:
        q = nearest
    residual = assembly.residual(q)
    worst = int(np.argmax(np.abs(residual)))
    row = assembly.rows[worst]
    configuration = dict(zip(assembly.tree.coordinate_names, map(float, q), strict=True))
    if row.kind == "touch":
        side = "above" if residual[worst] > 0 else "below"
        remedy = (
            f"The wheel's lowest point stays {side} the ground: put its centre one radius "
            "above it, or let the base move up and down."
        )
    elif row.kind == "coupling" and np.isnan(residual[worst]):
        remedy = "Its function has no value there: set_home where it has one."
    elif row.kind == "coupling":
        remedy = (
            "The offsets of the couplings, or those and the loops, contradict each other: give "
            "them offsets that one configuration satisfies, or leave this coupling out."
        )
    else:
        remedy = _remedy(assembly, q, residual)
    return LoopNotClosed(row.name, abs(float(residual[worst])), row.unit, configuration, remedy)


def _remedy(assembly: Assembly, q: np.ndarray, residual: np.ndarray) -> str:
    """Suggest lengths to check, or where rows contradict each other, a joint that has fewer."""
    plain = (
        "No configuration near home closes it: check the lengths, or name a configuration near "
        "a closed one with mechanism.set_home(...)."
    )
    relative = np.abs(assembly.relative_residual(q))
    if not np.isfinite(relative).all():
        return plain
    turned = [text for loop in assembly.tree.mechanism.loops for text in _turned(assembly, loop, q)]
    if turned:
        return "\n  ".join([*turned, plain])
    surplus = len(assembly.rows) - _rank(assembly.scaled_jacobian(q))
    if not surplus or relative.max() > DEPENDENT:
        return plain
    seen = [k for k in np.argsort(-relative) if relative[k] > 0.1 * relative.max()][:NAMED]
    rows = [assembly.rows[k] for k in sorted(seen)]
    listed = ", ".join(
        f"{row.name} by {abs(residual[k]):.2g} {row.unit}"
        for k, row in zip(sorted(seen), rows, strict=True)
    )
    need = 2 * float(relative.max())
    many = f"{surplus} constraints" if surplus > 1 else "one constraint"
    lines = [
        f"The loops have {many} more than can be satisfied, and they disagree: {listed}.",
        *_fewer_rows(assembly, rows, q),
    ]
    if need > assembly.tolerance:
        lines.append(
            f"  If the numbers are rounded, allow for it: mechanism.loop_tolerance = {need:.1g} "
            f"(it is {assembly.tolerance:g})."
        )
    return "\n".join(lines)


def _turned(assembly: Assembly, loop: Connection, q: np.ndarray) -> Iterator[str]:
    """Name a loop whose two frames are turned against each other by more than a right angle."""
    residual = assembly.residual(q)
    names = [f"{loop.name}.{name}" for name in ("rx", "ry", "rz")]
    own = [r for r, row in enumerate(assembly.rows) if row.name in names]
    angle = float(np.linalg.norm(residual[own]))
    if angle > math.pi / 2:
        what = "frames are turned against each other" if len(own) == 3 else "axes point apart"
        yield (
            f"The two {what} by {math.degrees(angle):.4g} degrees: check rotation and "
            f"child_rotation of '{loop.name}'."
        )


def _rank(J: np.ndarray) -> int:
    """Count the rows, in units of their own, that do not nearly follow from others."""
    return int(rank(J, DEPENDENT))


def _fewer_rows(assembly: Assembly, disagreeing: list[Row], q: np.ndarray) -> list[str]:
    """Suggest joints that hold the same with fewer rows, without some that disagree."""
    J = assembly.scaled_jacobian(q)
    lines: list[str] = []
    for loop in assembly.tree.mechanism.loops:
        own = {row.name.rpartition(".")[2] for row in disagreeing if row.owner == loop.name}
        held, found = set(loop.joint.closure_names), []
        for kind in JOINTS.values():
            left = held - set(kind.closure_names)
            if not (kind.closure_names and set(kind.closure_names) < held and left & own):
                continue
            rest = [
                k
                for k, row in enumerate(assembly.rows)
                if row.name not in {f"{loop.name}.{n}" for n in left}
            ]
            if _rank(J[rest]) == _rank(J):  # what it leaves out, other rows hold
                found.append((len(left & own), kind.__name__, sorted(left)))
        if found:
            found.sort(key=lambda item: -item[0])
            options = " or ".join(
                f"{name} ({len(left)} fewer: {', '.join(left)})" for _, name, left in found[:3]
            )
            lines.append(
                f"  Close '{loop.name}' with a joint of fewer rows than "
                f"{type(loop.joint).__name__}: {options}."
            )
    return lines or ["  Give a joint of the loop more freedom, as Cylindrical has over Revolute."]


def warn_of_moved_home(assembly: Assembly, home: np.ndarray) -> None:
    """Warn of named coordinates of home that closing the loops moved far."""
    asked, names = assembly.named_home, assembly.tree.coordinate_names
    quaternions = {k for four in assembly.tree.quaternions for k in four}
    named = {names.index(name) for name in assembly.tree.mechanism.home_coordinates}
    moved = np.abs(home - asked) / assembly.coordinate_lengths
    far = [k for k in sorted(named - quaternions) if moved[k] > MOVED]
    if not far:
        return
    nearest, _ = assembly.close(asked, tolerance=DEPENDENT / NEARLY)
    residual = assembly.residual(nearest)
    worst = int(np.argmax(np.abs(residual)))
    is_open = not assembly.is_exact(assembly.error(residual))
    if is_open and assembly.distance(nearest) < assembly.distance(home):
        row = assembly.rows[worst]
        why = (
            f"Next to the configuration named, {row.name} stays open by {abs(residual[worst]):.2g} "
            f"{row.unit}: check the lengths, or allow for it with mechanism.loop_tolerance "
            f"(it is {assembly.tolerance:g})."
        )
    elif max(moved[far]) > MOVED_FAR:
        why = "The loops are far from closed at the configuration named."
    else:
        return
    listed = ", ".join(f"{names[k]} = {asked[k]:.4g} became {home[k]:.4g}" for k in far)
    warnings.warn(
        f"'{assembly.tree.mechanism.name}': closing the loops moved home: {listed}. {why}",
        RequestNotMetWarning,
        stacklevel=level_outside(),
    )
