"""Serial chains given by Denavit-Hartenberg rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, shortened, suggest
from axode.mechanism.elements.bodies import GROUND, Body
from axode.mechanism.elements.joints import Prismatic, Revolute
from axode.mechanism.elements.parts import BodyLike, convert
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import Scalar, as_scalar
from axode.mechanism.values.geometry import (
    NO_ROTATION,
    ORIGIN,
    Matrix,
    Vector,
    added,
    as_rotation,
    as_vector,
    cos_sin,
    minus,
    product,
    rotation_matrix,
    transposed,
    turned,
)

Convention = Literal["standard", "modified"]
_NUMBERS = ("a", "alpha", "d", "theta")
_KEYS = (*_NUMBERS, "joint", "mass", "com", "inertia", "shape", "name", "link")


class Placement(NamedTuple):
    """A frame in another: its rotation and its origin."""

    R: Matrix
    p: Vector

    def then(self, other: Placement) -> Placement:
        """The frame that stands at `other` in this one."""
        return Placement(product(self.R, other.R), added(self.p, turned(self.R, other.p)))

    def inverse(self) -> Placement:
        """The outer frame, as the inner one sees it."""
        R = transposed(self.R)
        x, y, z = map(minus, turned(R, self.p))
        return Placement(R, (x, y, z))


def chain_from_dh(
    rows: Sequence[Any], *, name: str = "chain", gravity: Any = (0.0, 0.0, -9.81), **options: Any
) -> Mechanism:
    """A serial robot from its Denavit-Hartenberg table.

    Args:
        rows: One per joint: `(a, alpha, d, theta)` or a mapping with these keys plus `joint`
            ("revolute" or "prismatic"), `mass`, `com`, `inertia`, `shape`, `name` (of the joint)
            and `link` (of the body). The joint's coordinate adds to theta or to d.
        name: Name of the mechanism.
        gravity: [m/s^2]
        options: `bodies` (a list of `{mass, com, inertia}`, one per row, in the row's own frame),
            `convention` ("standard" or "modified"), `prefix` for joint and body names, `on`, `at`,
            `rotation` for the base, `motors=True` to drive every joint.
    """
    mechanism = Mechanism(name, gravity)
    add_chain(mechanism, rows, **options)
    return mechanism


def add_chain(
    mechanism: Mechanism,
    rows: Sequence[Any],
    *,
    bodies: Sequence[Any] | None = None,
    convention: Convention = "standard",
    prefix: str = "",
    on: BodyLike = GROUND,
    at: Any = ORIGIN,
    rotation: Any = NO_ROTATION,
    motors: bool = False,
) -> list[Body]:
    """Add the bodies and joints of a Denavit-Hartenberg table to a mechanism.

    Standard rows are `Rz(theta) Tz(d) Tx(a) Rx(alpha)`: the joint moves before the constant part,
    which therefore belongs to the child. Modified rows are `Rx(alpha) Tx(a) Rz(theta) Tz(d)`: the
    constant part comes first and belongs to the parent. The base, `at` and `rotation` on the body
    `on`, is the frame that the first row starts from.
    """
    rows = rows.tolist() if hasattr(rows, "tolist") else rows
    check_arguments(add_chain, locals())
    if convention not in ("standard", "modified"):
        raise InvalidArgument(
            f"convention must be 'standard' or 'modified', got {shortened(convention)}"
        )
    if bodies is not None and len(bodies) != len(rows):
        raise InvalidArgument(f"{len(rows)} rows need {len(rows)} bodies, got {len(bodies)}")
    base = Placement(
        rotation_matrix(convert("chain", "rotation", as_rotation, rotation)),
        convert("chain", "at", as_vector, at),
    )
    entries = [
        _entry(row, {} if bodies is None else bodies[k], k + 1, prefix)
        for k, row in enumerate(rows)
    ]
    parent: BodyLike = on
    added_bodies = []
    for entry in entries:
        solid = {key: entry[key] for key in ("mass", "com", "inertia", "shape") if key in entry}
        body = mechanism.add_body(entry["link"], **solid)
        joint = Prismatic("z") if entry["joint"] == "prismatic" else Revolute("z")
        frames = _frames(base, _row(entry, convention), convention)
        mechanism.add_joint(entry["name"], joint, parent=parent, child=body, **frames)
        if motors:
            mechanism.add_motor(entry["name"], entry["name"])
        parent, base = body, Placement(rotation_matrix(NO_ROTATION), ORIGIN)
        added_bodies.append(body)
    return added_bodies


def _frames(base: Placement, row: Placement, convention: Convention) -> dict[str, Any]:
    """Where the joint stands in its two bodies."""
    if convention == "modified":
        parent = base.then(row)
        return {"at": parent.p, "rotation": parent.R}
    # the child's frame is the row beyond the joint's: as the child sees it, the inverse of that
    child = row.inverse()
    return {"at": base.p, "rotation": base.R, "child_at": child.p, "child_rotation": child.R}


def _entry(row: Any, body: Any, number: int, prefix: str) -> dict[str, Any]:
    """One row with its body's numbers, complete."""
    if isinstance(row, Mapping):
        values = dict(row)
    elif not isinstance(row, Collection):
        raise InvalidArgument(f"row {number}: expected a, alpha, d, theta, got {shortened(row)}")
    elif len(row) == len(_NUMBERS):
        values = dict(zip(_NUMBERS, row, strict=True))
    else:
        raise InvalidArgument(f"row {number}: expected a, alpha, d, theta, got {len(row)} values")
    entry: dict[str, Any] = {
        "joint": "revolute",
        "name": f"{prefix}joint{number}",
        "link": f"{prefix}link{number}",
        **values,
        **dict(body),
    }
    for key in entry:
        if key not in _KEYS:
            raise InvalidArgument(f"row {number} has no '{key}'. {suggest('key', key, _KEYS)}")
    if entry["joint"] not in ("revolute", "prismatic"):
        kind = entry["joint"]
        raise InvalidArgument(
            f"row {number}: joint must be 'revolute' or 'prismatic', got {shortened(kind)}"
        )
    shaped = "inertia" in entry or "shape" in entry
    missing = [key for key, there in (("mass", "mass" in entry), ("inertia", shaped)) if not there]
    if missing:
        raise InvalidArgument(f"row {number} needs {' and '.join(missing)}: give them in `bodies`")
    for key in _NUMBERS:
        entry[key] = convert(f"row {number}", key, as_scalar, entry.get(key, 0.0))
    return entry


def _row(entry: dict[str, Any], convention: Convention) -> Placement:
    """The constant placement that a row stands for."""
    a, alpha, d, theta = (entry[key] for key in _NUMBERS)
    about_x = Placement(_turn_x(alpha), (a, 0.0, 0.0))  # Rx and Tx commute, as do Rz and Tz
    about_z = Placement(_turn_z(theta), (0.0, 0.0, d))
    return about_x.then(about_z) if convention == "modified" else about_z.then(about_x)


def _turn_x(angle: Scalar) -> Matrix:
    c, s = cos_sin(angle)
    return ((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c))


def _turn_z(angle: Scalar) -> Matrix:
    c, s = cos_sin(angle)
    return ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
