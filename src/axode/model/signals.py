"""The catalogue of signals: everything with a name and a unit that can be read off a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from axode.errors import InvalidArgument, UnknownName, with_article
from axode.names import Names

if TYPE_CHECKING:
    from axode.model.metadata import Facts

# Kinds of signals, in the order of a trajectory's columns. Independent speeds are speeds as well.
KINDS = (
    *("coordinate", "speed", "independent", "memory", "input", "energy", "residual", "measure"),
    *("force", "power"),
)
STATE_KINDS = ("coordinate", "speed", "independent", "memory", "measure")  # without inputs
SPEED_KINDS = ("speed", "independent")
CONTACT_FORCES = ("longitudinal", "lateral", "normal")
ENERGIES = ("kinetic", "potential", "supplied", "dissipated", "error")
_WORDS = {
    ("independent",): "independent speed",
    SPEED_KINDS: "speed",
    (*SPEED_KINDS, "measure"): "speed",
}

Places = slice | list[int]


@dataclass(frozen=True, slots=True)
class Signal:
    """One number that can be read off a state.

    Attributes:
        name: Full name, such as `base.pitch`.
        unit: SI unit, "" for none.
        kind: One of `KINDS`.
        function: Where the number comes from: "q", "nu", "u", "w" (supplied and dissipated energy),
            a function of the model ("joint_speeds", "measures", "energy", "contact_forces",
            "multipliers", "motor_powers"), "largest_residual" or "energy_balance".
        index: Its place there, counted through all axes.
    """

    name: str
    unit: str
    kind: str
    function: str
    index: int


@dataclass(frozen=True)
class Layout:
    """Columns of some signals.

    Attributes:
        names: Their names.
        parts: By function, columns and the indices of their values there.
    """

    names: tuple[str, ...]
    parts: dict[str, tuple[Places, Places]]


class Signals:
    """All signals of a model by name, in the order of a trajectory's columns.

    Iterating gives the signals; `signals.resolve("pitch")` finds one by its full or short name.
    """

    def __init__(self, facts: Facts) -> None:
        self._owner = f"model '{facts.name}'"
        self._by_name: dict[str, Signal] = {}
        for signal in _signals(facts):
            other = self._by_name.setdefault(signal.name, signal)
            if other is not signal:
                both = f"{with_article(signal.kind)} and {with_article(other.kind)}"
                raise InvalidArgument(
                    f"{self._owner}: {both} are both called '{signal.name}'; rename one of them"
                )
        self._moving = {name for name, _, needs_speeds in facts.measures if needs_speeds}
        self._aliases = dict(facts.speed_aliases)
        self._names: dict[tuple[str, ...], Names] = {}
        self._layouts: dict[tuple[str, ...], Layout] = {}

    def __iter__(self) -> Iterator[Signal]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __repr__(self) -> str:
        return f"Signals({self._owner}: {', '.join(self._by_name)})"

    def of_kind(self, *kinds: str) -> tuple[Signal, ...]:
        """Signals of some kinds, in order."""
        return tuple(signal for signal in self if signal.kind in kinds)

    def layout(self, *kinds: str) -> Layout:
        """Names of the signals of some kinds, and where their values come from."""
        found = self._layouts.get(kinds)
        if found is None:
            signals = self.of_kind(*kinds)
            speeds = {s.name: k for k, s in enumerate(self.of_kind(*SPEED_KINDS))}
            together = any(s.function == "joint_speeds" for s in signals)  # one vector of all
            lists: dict[str, tuple[list[int], list[int]]] = {}
            for column, signal in enumerate(signals):
                function, index = signal.function, signal.index
                if signal.name in speeds and function == "nu" and together:
                    function, index = "joint_speeds", speeds[signal.name]
                columns, indices = lists.setdefault(function, ([], []))
                columns.append(column)
                indices.append(index)
            parts = {
                function: (_as_slice(columns), _as_slice(indices))
                for function, (columns, indices) in lists.items()
            }
            found = self._layouts[kinds] = Layout(tuple(s.name for s in signals), parts)
        return found

    def resolve(self, name: str, *kinds: str) -> Signal:
        """Signal of a full or short name, by the rule of `axode.names.Names`.

        Signals that depend on the state alone come before the others. Where no coordinate is
        wanted, the name of a joint or coordinate with one speed means that speed.

        Args:
            name: Such as `base.pitch`, or `pitch` if only one signal ends in it.
            kinds: Kinds that are wanted, of `KINDS`; all unless given.

        Raises:
            UnknownName: for a name that no such signal has, with the names that exist; for a short
                name that fits several, with their full names.
        """
        names = self.names(*kinds)
        try:
            return self._by_name[names.resolve(name)]
        except UnknownName:
            other = self._by_name.get(name) if isinstance(name, str) else None
            if other is None or other.kind in kinds:
                raise
            wanted = with_article(names.kind) if len(kinds) == 1 else f"one of {', '.join(kinds)}"
            text = f"'{name}' of {self._owner} is {with_article(other.kind)}, not {wanted}."
            raise UnknownName(self._owner, names.kind, name, names.known, text) from None

    def names(self, *kinds: str) -> Names:
        """Names of the signals of some kinds, of all unless given, with the rule for short ones."""
        found = self._names.get(kinds)
        if found is None:
            wanted = kinds or KINDS
            state = [s.name for s in self if s.kind in wanted and s.kind in STATE_KINDS]
            others = [s for s in self if s.kind in wanted and s.kind not in STATE_KINDS]
            rest = [s.name for s in others if s.kind != "power"]  # `left` is `left.torque`
            powers = [s.name for s in others if s.kind == "power"]
            word = kinds[0] if len(kinds) == 1 else "signal"
            aliases = {} if "coordinate" in wanted else self._aliases
            groups = (state, rest, powers)
            found = Names(self._owner, _WORDS.get(kinds, word), *groups, aliases=aliases)
            self._names[kinds] = found
        return found

    @cached_property
    def state_names(self) -> Names:
        """Names of the signals that depend on the state alone, whatever the inputs and history."""
        state = [s.name for s in self if s.kind in STATE_KINDS]
        rest = [s.name for s in self if s.function == "energy"]
        return Names(self._owner, "signal", state, rest)

    @cached_property
    def step_names(self) -> Names:
        """Names of the signals that depend on the state and the inputs alone."""
        inputs, powers = ([s.name for s in self.of_kind(kind)] for kind in ("input", "power"))
        return Names(self._owner, "signal", *self.state_names.groups, inputs, powers)

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
        """Names, units, and kinds by name of all signals, as a trajectory has them."""
        names = tuple(self._by_name)
        return names, tuple(s.unit for s in self), {s.name: s.kind for s in self}

    def depends_on_speeds(self, name: str) -> bool:
        """Check whether a coordinate, speed or measure depends on the speeds."""
        return self._by_name[name].kind in SPEED_KINDS or name in self._moving


def _as_slice(places: list[int]) -> Places:
    """Slice of places that follow each other, which arrays read and write faster."""
    follow = places == list(range(places[0], places[0] + len(places)))
    return slice(places[0], places[0] + len(places)) if follow else places


def _signals(facts: Facts) -> Iterator[Signal]:
    yield from _vector(facts.coordinates, facts.coordinate_units, "coordinate", "q")
    for k, (name, unit) in enumerate(zip(facts.speeds, facts.speed_units, strict=True)):
        if name in facts.independent:
            yield Signal(name, unit, "independent", "nu", facts.independent.index(name))
        else:
            yield Signal(name, unit, "speed", "joint_speeds", k)
    first, last = len(facts.independent) - len(facts.memory), len(facts.inputs) - len(facts.memory)
    for k, name in enumerate(facts.memory):
        yield Signal(name, "", "memory", "nu", first + k)
    yield from _vector(facts.inputs[:last], facts.input_units[:last], "input", "u")
    yield from _vector(ENERGIES[:2], "JJ", "energy", "energy")
    yield from _vector(ENERGIES[2:4], "JJ", "energy", "w")
    yield Signal(ENERGIES[4], "J", "energy", "energy_balance", 0)
    if facts.residual_rows:
        yield Signal("residual", "m", "residual", "largest_residual", 0)
    for k, (name, unit, _) in enumerate(facts.measures):
        yield Signal(name, unit, "measure", "measures", k)
    forces = [f"{contact}.{part}" for contact in facts.contacts for part in CONTACT_FORCES]
    yield from _vector(forces, "N" * len(forces), "force", "contact_forces")
    for k in force_rows(facts):
        unit = "N m" if facts.row_units[k] == "rad" else "N"
        yield Signal(f"{facts.rows[k]}.force", unit, "force", "multipliers", k)
    powers = [f"{name}.power" for name in facts.motor_names]
    yield from _vector(powers, "W" * len(powers), "power", "motor_powers")


def _vector(
    names: Iterable[str], units: Iterable[str], kind: str, function: str
) -> Iterator[Signal]:
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        yield Signal(name, unit, kind, function, k)


def force_rows(facts: Any) -> list[int]:
    """Rows whose forces have names of their own: all but those of wheels.

    A coupling or a prescribed coordinate may have the same name as a wheel.
    """
    parts = [row.rpartition(".") for row in facts.rows]
    return [
        k
        for k, (name, _, kind) in enumerate(parts)
        if kind in ("coupling", "prescribed")
        or (name not in facts.contacts and (kind != "definition" or name not in facts.speeds))
    ]
