"""Serial chains given by Denavit-Hartenberg rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from axode.mechanism.bodies import GROUND, Body
from axode.mechanism.geometry import ORIGIN, as_rotation, as_vector
from axode.mechanism.joints import Prismatic, Revolute
from axode.mechanism.mechanism import BodyLike, Mechanism

Convention = Literal["standard", "modified"]


def chain_from_dh(
    rows: Sequence[Any], *, name: str = "chain", gravity: Any = (0.0, 0.0, -9.81), **options: Any
) -> Mechanism:
    """A serial robot from its Denavit-Hartenberg table.

    Args:
        rows: One a joint: `(a, alpha, d, theta)` or a mapping with these keys plus `joint`
            ("revolute" or "prismatic"), `mass`, `com`, `inertia` and `name`.
        name: Of the mechanism.
        gravity: [m/s^2]
        options: `bodies` (a list of `{mass, com, inertia}`, one a row, in the row's own frame),
            `convention` ("standard" or "modified"), `prefix` for joint and body names, `on`, `at`,
            `rotation` for the base, `motors=True` to drive every joint.
    """
    mechanism = Mechanism(name, gravity)
    add_chain(mechanism, rows, **options)
    return mechanism


def add_chain(
    mechanism: Mechanism, rows: Sequence[Any], *, bodies: Sequence[Any] | None = None,
    convention: Convention = "standard", prefix: str = "", on: BodyLike = GROUND, at: Any = ORIGIN,
    rotation: Any = (0.0, 0.0, 0.0), motors: bool = False,
) -> list[Body]:  # fmt: skip
    """Add the bodies and joints of a Denavit-Hartenberg table to a mechanism.

    Standard rows are `Rz(theta) Tz(d) Tx(a) Rx(alpha)`: the joint moves before the constant part,
    which therefore belongs to the child. Modified rows are `Rx(alpha) Tx(a) Rz(theta) Tz(d)`: the
    constant part comes first and belongs to the parent.
    """
    if convention not in ("standard", "modified"):
        raise ValueError(f"convention must be 'standard' or 'modified', got '{convention}'")
    if bodies is not None and len(bodies) != len(rows):
        raise ValueError(f"{len(rows)} rows need {len(rows)} bodies, got {len(bodies)}")
    parent: BodyLike = on
    added = []
    for number, row in enumerate(rows, start=1):
        entry = _entry(row, {} if bodies is None else bodies[number - 1], number, prefix)
        body = mechanism.add_body(entry["link"], mass=entry["mass"], com=entry["com"],
                                  inertia=entry["inertia"])  # fmt: skip
        base = {"at": as_vector(at), "rotation": as_rotation(rotation)} if number == 1 else {}
        place = _placement(entry, convention)
        if base and "at" in place and (at != ORIGIN or any(rotation)):
            raise ValueError("a modified table on a moved base: put the base's pose on a body")
        joint = Prismatic("z") if entry["joint"] == "prismatic" else Revolute("z")
        mechanism.add_joint(entry["name"], joint, parent=parent, child=body, **(base | place))
        if motors:
            mechanism.add_motor(entry["name"], entry["name"])
        parent = body
        added.append(body)
    return added


def _entry(row: Any, body: Any, number: int, prefix: str) -> dict[str, Any]:
    values = dict(row) if hasattr(row, "keys") else dict(zip(("a", "alpha", "d", "theta"), row,
                                                              strict=True))  # fmt: skip
    entry: dict[str, Any] = {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "revolute",
                             "name": f"{prefix}joint{number}", "link": f"{prefix}link{number}",
                             "com": ORIGIN, **values, **dict(body)}  # fmt: skip
    if entry["joint"] not in ("revolute", "prismatic"):
        raise ValueError(f"row {number}: joint must be 'revolute' or 'prismatic'")
    missing = [key for key in ("mass", "inertia") if key not in entry]
    if missing:
        raise ValueError(f"row {number} needs {' and '.join(missing)}: give them in `bodies`")
    return entry


def _placement(entry: dict[str, Any], convention: Convention) -> dict[str, Any]:
    a, alpha, d, theta = (entry[key] for key in ("a", "alpha", "d", "theta"))
    if convention == "modified":
        # Rx(alpha) Tx(a) Rz(theta) Tz(d): z stays the joint's axis throughout
        from axode.mechanism.expressions import apply

        return {
            "at": (a, -d * apply("sin", alpha), d * apply("cos", alpha)),
            "rotation": _compose_x_z(alpha, theta),
        }
    # The child's frame is Rz(theta) Tz(d) Tx(a) Rx(alpha) beyond the joint's: where the joint
    # stands as the child sees it is the inverse of that.
    return {
        "child_at": _inverse_position(a, alpha, d),
        "child_rotation": _inverse_rotation(alpha, theta),
    }


def _compose_x_z(alpha: Any, theta: Any) -> Any:
    ca, sa, ct, st = _cos_sin(alpha, theta)
    return ((ct, -st, 0.0), (ca * st, ca * ct, -sa), (sa * st, sa * ct, ca))


def _inverse_rotation(alpha: Any, theta: Any) -> Any:
    ca, sa, ct, st = _cos_sin(alpha, theta)
    return ((ct, st, 0.0), (-ca * st, ca * ct, sa), (sa * st, -sa * ct, ca))


def _inverse_position(a: Any, alpha: Any, d: Any) -> Any:
    ca, sa, _, _ = _cos_sin(alpha, 0.0)
    return (-a, -d * sa, -d * ca)


def _cos_sin(alpha: Any, theta: Any) -> tuple[Any, Any, Any, Any]:
    from axode.mechanism.expressions import apply
    from axode.mechanism.geometry import snap

    return (snap(apply("cos", alpha)), snap(apply("sin", alpha)),
            snap(apply("cos", theta)), snap(apply("sin", theta)))  # fmt: skip


__all__ = ["Convention", "add_chain", "chain_from_dh", "math"]
