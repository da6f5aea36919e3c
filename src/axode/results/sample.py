"""Values of a trajectory's columns at one time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axode.errors import UnknownName


class Sample(dict[str, Any]):
    """Values of columns by name; a name that is none of them raises with the names that are."""

    def __init__(self, values: Mapping[str, Any], owner: str) -> None:
        super().__init__(values)
        self._owner = owner

    def __missing__(self, name: str) -> Any:
        raise UnknownName(self._owner, "column", str(name), tuple(self))
