"""How large a mechanism may be for equations that are written out, operation by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axode.errors import NotApplicable

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism

# Code without loops grows with every joint, and a matrix of the speeds with their square: of more,
# neither this machine's compiler nor its memory makes anything within minutes.
MAX_SPEEDS = 1000


def require_derivable(mechanism: Mechanism) -> None:
    """Raise an error early for what would take hours to derive.

    Raises:
        NotApplicable: saying how many speeds there are.
    """
    count = sum(len(connection.joint.speed_names) for connection in mechanism.connections)
    if count > MAX_SPEEDS:
        raise NotApplicable(
            f"'{mechanism.name}' has {count} speeds, and equations are written out for at most "
            f"{MAX_SPEEDS}: their code has no loops and would be too large.\n"
            "  Model a part of it, or join bodies that hardly move against each other."
        )
