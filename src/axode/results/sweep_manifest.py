"""What a store of a sweep holds: its columns, its chunks, and the study that they belong to."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from axode.disk.typed import as_type, parse_json
from axode.errors import FileError, shortened

FORMAT = 1
RESERVED = ("row", "status", "reason")  # columns of every store
MOST_DIFFERENCES = 20  # that a message lists
MAX_ROWS = 1 << 53


@dataclass(frozen=True)
class SweepManifest:
    """Description of a stored sweep, in JSON's own types.

    Attributes:
        study: What must be the same when a sweep is resumed: the model's name and hash, samples,
            outputs, settings.
        shape: Shape of the rows.
        chunk: Rows per file.
        swept: By name of each swept value: whether it belongs to the start, the parameters or the
            inputs.
        outputs: Names of the outputs.
        recorded: What may differ: versions, the machine, units.
    """

    study: Mapping[str, Any]
    shape: tuple[int, ...]
    chunk: int
    swept: Mapping[str, str]
    outputs: tuple[str, ...]
    recorded: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return math.prod(self.shape)

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.rows // self.chunk)

    def span(self, chunk: int) -> tuple[int, int]:
        """First row of a chunk, and the row after its last."""
        return chunk * self.chunk, min(self.rows, (chunk + 1) * self.chunk)

    @property
    def columns(self) -> tuple[dict[str, str], dict[str, str]]:
        """Columns of the files: by swept value, and by output.

        An output keeps its name. So does a swept value, unless an output has the same: then it is
        "start.pitch", with the pitch at the end as "pitch".
        """
        taken = set(RESERVED)
        outputs = {name: _free(name, taken) for name in self.outputs}
        swept = {
            name: _free(name if name not in taken else f"{group}.{name}", taken)
            for name, group in self.swept.items()
        }
        return swept, outputs

    @property
    def digest(self) -> str:
        """Digest of all that must be the same."""
        text = json.dumps(self._compared(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Write as text."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str | bytes) -> SweepManifest:
        """Read what `to_json` wrote.

        Raises:
            FileError: if it is something else.
        """
        data = parse_json(text)
        if not isinstance(data, dict) or "format" not in data:
            raise FileError("its description is not that of a sweep")
        if data["format"] != FORMAT:
            raise FileError(
                f"it has format {shortened(data['format'])}, and this Axode reads format {FORMAT}; "
                "use the version of Axode that wrote it, or a newer one"
            )
        for name in ("study", "swept", "recorded"):
            if not isinstance(data.get(name), dict):
                raise FileError(f"its description has no table '{name}'")
        shape = as_type(tuple[int, ...], data.get("shape"), "shape")
        made = cls(
            study=data["study"],
            shape=shape,
            chunk=as_type(int, data.get("chunk"), "chunk"),
            swept={name: as_type(str, group, name) for name, group in data["swept"].items()},
            outputs=as_type(tuple[str, ...], data.get("outputs"), "outputs"),
            recorded=data["recorded"],
        )
        if min(shape, default=0) < 0 or made.rows > MAX_ROWS or made.chunk < 1:
            raise FileError(f"its description has impossible sizes: {shortened(shape)}")
        units = made.recorded.get("units", {})
        as_type(str, made.recorded.get("model", ""), "model")
        for name, unit in as_type(dict, units, "units").items():
            as_type(str, unit, f"the unit of {name}")
        if made.axes and tuple(map(len, made.axes.values())) != shape:
            raise FileError(f"its axes are not those of {shortened(shape)} rows")
        return made

    @cached_property
    def axes(self) -> dict[str, tuple[float, ...]]:
        """Values of each axis of a grid by name; none where the rows are no grid."""
        described = self.study.get("samples")
        axes = described.get("axes", {}) if isinstance(described, dict) else {}
        return {
            name: as_type(tuple[float, ...], values, f"axis {shortened(name)}")
            for name, values in as_type(dict, axes, "axes").items()
        }

    def differences(self, now: SweepManifest) -> list[str]:
        """Lines about all that differs from another description, one for each entry."""
        mine, theirs = dict(_flat(self._compared())), dict(_flat(now._compared()))
        lines = [
            f"{key}: {_shown(mine, key)} in the store, {_shown(theirs, key)} now"
            for key in dict.fromkeys((*mine, *theirs))
            if json.dumps(mine.get(key, _ABSENT)) != json.dumps(theirs.get(key, _ABSENT))  # NaN too
        ]
        more = len(lines) - MOST_DIFFERENCES
        return lines if more <= 0 else [*lines[:MOST_DIFFERENCES], f"and {more} more"]

    def _compared(self) -> dict[str, Any]:
        fields = asdict(self)
        del fields["recorded"]
        study = fields.pop("study")
        return json.loads(json.dumps({**study, **fields}))  # tuples are lists there


_ABSENT = {"": "an entry that is not there"}  # unlike any leaf


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Entries of nested tables by dotted names; lists are compared whole."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flat(item, f"{key}.{name}" if key else name)
    else:
        yield key, value


def _shown(entries: Mapping[str, Any], key: str) -> str:
    return shortened(entries[key]) if key in entries else "nothing"
