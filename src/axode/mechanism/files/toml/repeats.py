"""Tables that a file repeats: one leg or wheel written once, with what differs between copies.

`[repeat.leg]` holds lists of equal length, such as `k = [1, 2, 3]`, and tables such as
`[repeat.leg.body."crank{k}"]`. There are as many copies of the tables as values in the lists; in
each, `{k}` stands for its own value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from axode.errors import Fault, suggest
from axode.mechanism.files.toml.toml_lines import Path
from axode.mechanism.files.toml.toml_schema import TABLES, TABLES_IN_TABLES, describe_value

MAX_TABLES = 10_000  # that all copies together make
FLAT = ("parameters", "prescribe", "home")  # tables whose keys are names
KINDS = (*TABLES, *FLAT)
_PLACE = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"\w+(?:\.\w+)*")  # a name or a number without a sign


@dataclass
class Repeats:
    """A file whose repeated tables are written out.

    Attributes:
        data: What the file would hold without `[repeat]`.
        lines: Where each key stands; keys of copies stand in the table that is copied.
        faults: What is wrong with the repetitions.
    """

    data: dict[str, Any]
    lines: dict[Path, int]
    faults: list[Fault] = field(default_factory=list)
    _order: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    _under: dict[Path, dict[Path, int]] = field(default_factory=dict)  # lines by copied table

    def __post_init__(self) -> None:
        for path, line in self.lines.items():
            if path[0] == "repeat" and len(path) > 2:
                top = path[:3] if path[2] in FLAT else path[:4]
                self._under.setdefault(top, {})[path[len(top) :]] = line

    def add(self, name: str, block: Any) -> None:
        """Add all copies of what stands under `[repeat.NAME]`."""
        if not isinstance(block, dict):
            self._fault("", name, f"expected a table [repeat.{name}], got {describe_value(block)}")
            return
        lists = {key: value for key, value in block.items() if isinstance(value, list)}
        tables = dict(self._tables(name, block))
        if not self._check(name, lists, tables):
            return
        used: set[str] = set()
        for copy in range(len(next(iter(lists.values())))):
            filled = _Copy({key: values[copy] for key, values in lists.items()})
            for (kind, part), table in tables.items():
                self._add_copy((name, kind, part), table, copy, filled)
            used |= filled.used
            if filled.unknown:
                for place in filled.unknown:
                    said = f"'{{{place}}}' stands for nothing. {suggest('list', place, [*lists])}"
                    self._fault(name, "", said)
                return
        for key in sorted(set(lists) - used):
            self._fault(name, key, f"is not used: write {{{key}}} where its values belong")

    def _tables(self, name: str, block: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
        """Find the tables that are copied, by kind and name; the name of a flat table is empty."""
        for kind, tables in block.items():
            if kind in FLAT and isinstance(tables, dict):
                yield (kind, ""), tables
            elif kind in TABLES and isinstance(tables, dict):
                yield from (((kind, part), table) for part, table in tables.items())
            elif kind in KINDS:
                example = f"[repeat.{name}.{kind}{'' if kind in FLAT else '.NAME'}]"
                got = describe_value(tables)
                self._fault(name, kind, f"expected tables such as {example}, got {got}")
            elif isinstance(tables, dict):
                self._fault(name, kind, f"unknown table '{kind}'. {suggest('table', kind, KINDS)}")
            elif not isinstance(tables, list):
                got = describe_value(tables)
                self._fault(name, kind, f"expected a list with a value per copy, got {got}")

    def _check(self, name: str, lists: dict[str, Any], tables: dict[tuple[str, str], Any]) -> bool:
        """Return whether there are copies to make."""
        before = len(self.faults)
        lengths = {key: len(values) for key, values in lists.items()}
        if not lists:
            said = "needs a list with a value per copy, such as k = [1, 2, 3]"
            self._fault(name, "", said)
        elif len(set(lengths.values())) > 1:
            listed = ", ".join(f"{key} {count}" for key, count in lengths.items())
            self._fault(name, "", f"its lists have different numbers of values: {listed}")
        elif not all(lengths.values()):
            self._fault(name, next(iter(lists)), "has no values")
        if not tables and before == len(self.faults):
            self._fault(name, "", f"has no tables to copy, such as [repeat.{name}.body.NAME]")
        for key in lists:
            if not key.isidentifier():
                self._fault(name, key, f"'{key}' is no name; use letters, digits and _")
        made = len(tables) * max(lengths.values(), default=0) + len(self._order)
        if made > MAX_TABLES:
            self._fault(name, "", f"makes {made} tables; at most {MAX_TABLES} are read")
        return before == len(self.faults)

    def _add_copy(self, place: tuple[str, str, str], table: Any, copy: int, filled: _Copy) -> None:
        name, kind, part = place
        top: Path = ("repeat", name, kind, part) if part else ("repeat", name, kind)
        if kind in FLAT:
            self._add_values(name, kind, filled.table(table, None))
            for path, line in self._under[top].items():
                self.lines[kind, *map(filled.text, path)] = line
            return
        made = filled.text(part)
        target = self.data.setdefault(kind, {})
        if not isinstance(target, dict) or filled.unknown:
            return  # reported elsewhere
        if made in target:
            hint = "" if made != part else "; write a place such as {k} into the name"
            self._fault(name, f"{kind}.{part}", f"there is a {kind} '{made}' already{hint}")
            return
        target[made] = filled.table(table, TABLES[kind]) if isinstance(table, dict) else table
        self._order[kind, made] = (self.lines["repeat", name], copy, self.lines[top])
        for path, line in self._under[top].items():
            self.lines[kind, made, *map(filled.text, path)] = line

    def _add_values(self, name: str, kind: str, values: dict[str, Any]) -> None:
        target = self.data.setdefault(kind, {})
        if not isinstance(target, dict):
            return
        for key, value in values.items():
            inner = target.get(key)
            if isinstance(inner, dict) and isinstance(value, dict) and not set(inner) & set(value):
                target[key] = {**inner, **value}  # base.x beside base.y
            elif key in target:
                self._fault(name, kind, f"'{key}' stands in [{kind}] already")
            else:
                target[key] = value

    def sort(self) -> None:
        """Put parts into the order of the file; copies follow each other."""
        for kind in {kind for kind, _ in self._order}:
            tables = self.data[kind]

            def place(name: str, kind: str = kind) -> tuple[int, ...]:
                return self._order.get((kind, name)) or (self.lines[kind, name],)

            self.data[kind] = {name: tables[name] for name in sorted(tables, key=place)}

    def _fault(self, name: str, key: str, message: str) -> None:
        path: Path = ("repeat", *([name] if name else []), *(key.split(".", 1) if key else []))
        while path not in self.lines:
            path = path[:-1]
        fault = Fault("repeat", name, key, message, self.lines[path])
        if fault not in self.faults:
            self.faults.append(fault)


@dataclass
class _Copy:
    """One copy: its values, those that were used, and places that stand for nothing."""

    values: dict[str, Any]
    used: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)

    def table(self, table: dict[str, Any], model: Any) -> dict[str, Any]:
        """Return a table with the values of this copy."""
        return {self.text(key): self._value(value, key, model) for key, value in table.items()}

    def text(self, text: Any) -> Any:
        """Return a name, or part of a path, with the values of this copy."""
        return _PLACE.sub(lambda at: self._shown(at[1], False), text) if _is(text) else text

    def _value(self, value: Any, key: str, model: Any) -> Any:
        """Return a value; a text that is nothing but a place becomes what the list holds."""
        if isinstance(value, dict):
            return self.table(value, TABLES_IN_TABLES.get(key))
        if isinstance(value, list):
            return [self._value(item, key, model) for item in value]
        whole = _PLACE.fullmatch(value) if _is(value) else None
        if whole:
            self._shown(whole[1], False)
            return self.values.get(whole[1], value)
        known = model.model_fields.get(key) if model else None
        formula = known is None or known.annotation is Any  # else a name or a word
        if not _is(value):
            return value
        return _PLACE.sub(lambda at: self._shown(at[1], formula), value)

    def _shown(self, name: str, formula: bool) -> str:
        """Return what stands for a place inside a text; in formulas, terms are in parentheses."""
        if name not in self.values:
            self.unknown.add(name)
            return f"{{{name}}}"
        self.used.add(name)
        text = str(self.values[name])
        return text if not formula or _WORD.fullmatch(text) else f"({text})"


def _is(value: Any) -> bool:
    return isinstance(value, str)


def write_out(data: dict[str, Any], lines: Mapping[Path, int]) -> Repeats:
    """Write the repeated tables of a file out.

    Args:
        data: What the file holds.
        lines: Where each key stands.
    """
    blocks = data.get("repeat")
    if blocks is None:
        return Repeats(data, dict(lines))
    rest = {key: value for key, value in data.items() if key != "repeat"}
    rest = {key: dict(value) if isinstance(value, dict) else value for key, value in rest.items()}
    made = Repeats(rest, dict(lines))
    if not isinstance(blocks, dict):
        made._fault("", "", f"expected tables such as [repeat.NAME], got {describe_value(blocks)}")
        return made
    for name, block in blocks.items():
        made.add(name, block)
    made.sort()
    return made
