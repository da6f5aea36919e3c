"""How large a mechanism may be for equations that are written out, operation by operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from axode.errors import NotApplicable

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism

# Code without loops grows with every joint, and a matrix of the speeds with their square: of more,
# neither this machine's compiler nor its memory makes anything within minutes.
MAX_SPEEDS = 1000
MAX_BODIES = 5000  # of a file, those that joints fix to others too


def require_derivable(mechanism: Mechanism) -> None:
    """Raise an error early for what would take hours to derive.

    Raises:
        NotApplicable: saying how many speeds there are.
    """
    count = sum(len(connection.joint.speed_names) for connection in mechanism.connections)
    _check_speeds(f"'{mechanism.name}'", f"{count} speeds", count)


def require_readable(source: str, joints: Iterable[tuple[str, str]]) -> None:
    """Raise an error for a file that describes more than can be derived, before it is checked.

    Args:
        source: What messages call the file.
        joints: Child and type of every joint; several joints of one child close loops.

    Raises:
        NotApplicable: saying how many bodies move.
    """
    held: dict[str, bool] = {}
    for child, kind in joints:
        held[child] = held.get(child, False) or kind == "fixed"
    count = sum(not fixed for fixed in held.values())
    _check_speeds(source, f"{count} bodies that move", count)
    if len(held) > MAX_BODIES:
        raise NotApplicable(
            f"{source} has {len(held)} bodies, and files of at most {MAX_BODIES} are read.\n"
            "  Join bodies that are fixed to each other, or model a part of it."
        )


def joints_of_tables(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Child and type of every joint of a TOML file, as far as it is one."""
    tables = data.get("joint")
    for table in tables.values() if isinstance(tables, dict) else ():
        if isinstance(table, dict):
            yield str(table.get("child")), str(table.get("type"))


def _check_speeds(source: str, what: str, count: int) -> None:
    if count > MAX_SPEEDS:
        raise NotApplicable(
            f"{source} has {what}, and equations are written out for at most {MAX_SPEEDS} speeds: "
            "their code has no loops and would be too large.\n"
            "  Model a part of it, or join bodies that hardly move against each other."
        )
