"""Short names: one rule for every place that takes the name of a signal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from axode.errors import InvalidArgument, UnknownName, plural, shortened

T = TypeVar("T")
# a name in a formula, with dots, and not the exponent of a number such as 1e5
SIGNAL_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def title_words(name: str) -> str:
    """Return a name as the words of a title: "Rolling disk" of "rolling_disk".

    Letters after a digit stand for joints, as in `planar_3rrr`.
    """
    words = re.sub(r"(?<=\d)[a-z]{2,}\b", lambda m: m[0].upper(), " ".join(name.split("_")))
    return words[:1].upper() + words[1:]


def as_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return names of which there may be one, as text, or several."""
    return (given,) if isinstance(given, str) else tuple(given)


class Names:
    """Names that may be given in short.

    A name means itself; else the only name that ends in it after a dot (`pitch` for `base.pitch`);
    else the only one that begins with it before a dot (`tip.x` for `tip.x.force`). A later group
    is searched only if the groups before it have no such name.

    Args:
        owner: Owner of the names, for error messages.
        kind: What they name, for error messages.
        groups: The names.
        aliases: Other names, and which they mean.
    """

    def __init__(
        self,
        owner: str,
        kind: str,
        *groups: Iterable[str],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.owner, self.kind = owner, kind
        self._aliases = aliases or {}
        self.groups = tuple(map(tuple, groups))
        self.known = {name: k for k, name in enumerate(n for group in self.groups for n in group)}
        self._resolved: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def matching(self, name: str) -> tuple[str, ...]:
        """All names that `name` may mean; empty if there are none."""
        if not isinstance(name, str):
            return ()
        if name in self.known:
            return (name,)
        if self._aliases.get(name) in self.known:
            return (self._aliases[name],)
        for fits in (str.endswith, str.startswith):
            part = f".{name}" if fits is str.endswith else f"{name}."
            for group in self.groups:
                found = tuple(other for other in group if fits(other, part))
                if found:
                    return found
        return ()

    def accepts(self, name: object) -> bool:
        """Return whether a name means one thing."""
        return isinstance(name, str) and len(self.matching(name)) == 1

    def resolve(self, name: str) -> str:
        """Full name of what `name` means.

        Raises:
            UnknownName: listing what it may mean if it is ambiguous, else the known names.
        """
        full = self._resolved.get(name) if isinstance(name, str) else None
        if full is None:
            found = self.matching(name)
            if len(found) != 1:
                raise self.unknown(name, found)
            full = self._resolved[name] = found[0]
        return full

    def by_full_name(self, values: Mapping[str, T]) -> dict[str, T]:
        """Return the values by full names.

        Raises:
            UnknownName: as `resolve` does.
            InvalidArgument: for two names that mean the same.
        """
        if not isinstance(values, Mapping):
            expected = f"{plural(self.kind)} by name"
            raise InvalidArgument(f"expected {expected}, got {shortened(values)}")
        found: dict[str, T] = {}
        for name, value in values.items():
            full = self.resolve(name)
            if full in found:
                raise InvalidArgument(f"'{name}' means {full}, which is given twice")
            found[full] = value
        return found

    def unknown(self, name: Any, meanings: tuple[str, ...] = ()) -> UnknownName:
        """Error for a name that means nothing, or one of several."""
        text = ""
        if meanings:
            text = f"{self.owner} has several {plural(self.kind)} that '{name}' may mean."
        return UnknownName(self.owner, self.kind, name, meanings or self.known, text)


class NamedValues(dict[str, Any]):
    """Values by full name; `values[...]`, `in` and `get` take short names as well.

    Args:
        values: The values, as `dict` takes them.
        names: Their names; those of the values unless given.
        time: Time that they belong to [s].
        interpolated: Whether they lie between samples and are no state.
    """

    def __init__(
        self,
        values: Any = (),
        names: Names | None = None,
        time: Any = None,
        interpolated: bool = False,
    ) -> None:
        super().__init__(values)
        self._names, self.time, self.interpolated = names, time, interpolated

    @property
    def names(self) -> Names:
        """Names of the values."""
        return self._names or Names("the state", "signal", self)

    def __missing__(self, name: str) -> Any:
        return super().__getitem__(self.names.resolve(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self.names.accepts(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default where the name means nothing or several things."""
        try:
            return self[name]
        except UnknownName:
            return default

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedValues, (dict(self), self._names, self.time, self.interpolated)
