"""Sweeps on disk: a description of the study, and a folder with one Parquet file per chunk.

pandas, Polars, DuckDB and anything else that reads Parquet take the folder as one table. The
description is in a file of the same columns without rows, so that it does not disturb them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.disk.arrays import MAX_EXPANSION, UNREADABLE, check_expansion
from axode.disk.atomic import FolderLock, system_path, write_atomically
from axode.disk.bounded import as_type, open_plain, parse_json
from axode.errors import FileError, shortened
from axode.results.sweep_arrays import RowTexts
from axode.results.tables import MAX_PACKED, PAGES, require_pyarrow

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


# the folder ---------------------------------------------------------------------------------------


MANIFEST = "_manifest.parquet"
KEY, DIGEST, STUDY = b"axode.sweep", b"axode.sha256", b"axode.study"
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)
FREE_ROWS = 1 << 25  # of which arrays may be made, however few are in the folder
_PART = re.compile(r"part-(\d{8,})\.parquet", re.ASCII)
_DRAFT = re.compile(r"\.(?:part-\d+|_manifest)\.parquet\.(?:axode-)?[0-9a-f]+\.part")
_RECOMPUTE = "\n  Remedy: remove it and run the same sweep again, which recomputes its rows"

Array = npt.NDArray[np.float64]


class SweepStore:
    """A folder of finished chunks; open it with `create_or_resume` or `open`.

    Attributes:
        folder: Where it is.
        manifest: What it holds.
    """

    def __init__(
        self, folder: Path, manifest: SweepManifest, lock: FolderLock | None = None
    ) -> None:
        self.folder, self.manifest, self._lock = folder, manifest, lock
        self._arrow, self._parquet = require_pyarrow("a store of a sweep")
        self._finished: set[int] | None = None
        self._extremes: dict[str, tuple[float, float]] | None = None

    @classmethod
    def create_or_resume(cls, folder: str | PathLike[str], manifest: SweepManifest) -> SweepStore:
        """Open a folder for writing; what is finished there stays.

        Args:
            folder: A new or empty folder, or the store of the same study.
            manifest: What the store is to hold.

        Raises:
            FileError: if the folder holds another study or anything else, if another process
                writes to it, or if nothing can be written and chunks are missing.
        """
        require_pyarrow("a store of a sweep")
        path = _make_folder(folder)
        try:
            lock = FolderLock(path)
        except FileError as error:
            read_only = getattr(error.__cause__, "errno", None) in READ_ONLY
            finished = cls._opened_if_finished(path, manifest) if read_only else None
            if finished is None:
                raise
            return finished
        try:
            store = cls(path, manifest, lock)
            store._remove_drafts()
            new = not os.path.lexists(path / MANIFEST)
            store._check_links()
            if not new:
                store._check_same_study(cls.open(path).manifest)
            store._check_files(new=new)
            if new:
                store._write_manifest()
            store.finished()
        except BaseException:
            lock.release()
            raise
        return store

    @classmethod
    def _opened_if_finished(cls, path: Path, manifest: SweepManifest) -> SweepStore | None:
        """Open a store of the same study, if no chunk is missing, without a lock."""
        if not os.path.lexists(path / MANIFEST):
            return None
        store = cls(path, manifest)
        store._check_same_study(cls.open(path).manifest)
        return store if len(store.finished()) == manifest.chunks else None

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> SweepStore:
        """Open a store for reading.

        Raises:
            FileError: if it is none, or damaged.
        """
        pa, pq = require_pyarrow("a store of a sweep")
        try:
            path = system_path(folder)
            with open_plain(path / MANIFEST) as file:
                metadata = pq.read_schema(file).metadata or {}
            if KEY not in metadata:
                raise FileError("its description is not that of a sweep")
            if metadata.get(DIGEST) != _checksum(metadata[KEY]):
                raise FileError("its description is damaged: its checksum does not match")
            return cls(path, SweepManifest.from_json(metadata[KEY]))
        except (FileNotFoundError, NotADirectoryError):
            raise FileError(
                f"'{folder}' is not the folder of a sweep: it has no file {MANIFEST}.\n"
                "  axode.sweep(..., store=folder) makes one"
            ) from None
        except FileError as error:
            raise FileError(f"'{folder}' cannot be read: {error}") from None
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            raise FileError(f"'{folder}' cannot be read: {MANIFEST}: {reason}") from None

    def close(self) -> None:
        """Let other processes write to the folder."""
        if self._lock is not None:
            self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return SweepStore.open, (self.folder,)

    def __enter__(self) -> SweepStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # chunks --------------------------------------------------------------------------------------

    def finished(self) -> set[int]:
        """Numbers of the chunks whose files are whole; others are computed again."""
        return set(self._found())

    def finished_rows(self) -> int:
        """How many rows are in whole files."""
        spans = map(self.manifest.span, self._found())
        return sum(last - first for first, last in spans)

    def require_rows(self) -> None:
        """Check that arrays of all rows are in proportion to the data present.

        Raises:
            FileError: if a description claims many rows, and few of them are in the folder.
        """
        rows, there = self.manifest.rows, self.finished_rows()
        if rows > max(FREE_ROWS, MAX_EXPANSION * there):
            raise FileError(
                f"'{self.folder}' describes {rows} rows and holds {there}: arrays of all rows "
                "would be nearly empty.\n  Remedy: compute more rows first, by the same call of "
                "sweep, or read the files in the folder"
            )

    def __contains__(self, chunk: object) -> bool:
        return chunk in self._found()

    def _found(self) -> set[int]:
        if self._finished is None:
            self._finished = {chunk for chunk in self._parts() if self._is_whole(chunk)}
        return self._finished

    def write(
        self,
        chunk: int,
        swept: Mapping[str, Array],
        outputs: Mapping[str, Array],
        status: RowTexts,
        reasons: Mapping[int, str] | None = None,
    ) -> None:
        """Write the rows of a chunk, all or none of them.

        Args:
            chunk: Its number.
            swept: Swept values by name.
            outputs: Outputs by name; NaN for runs that did not finish.
            status: How each run ended.
            reasons: Why runs failed, by place in the chunk.

        Raises:
            FileError: if the disk or the folder refuses; existing chunks stay.
        """
        first, last = self.manifest.span(chunk)
        table = rows_table(
            self.manifest, np.arange(first, last), swept, outputs, status, reasons or {}
        )
        self._write_table(self._path(chunk), table, {STUDY: self.manifest.digest.encode()})
        self._found().add(chunk)
        self._extremes = None

    def read(
        self, columns: Sequence[str], chunks: Sequence[int] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Read columns of the files chunk by chunk: numbers of chunks, and tables of Arrow.

        Args:
            columns: Columns of the files.
            chunks: Which; all that are finished unless given.

        Raises:
            FileError: if a file is damaged.
        """
        for chunk in sorted(self.finished()) if chunks is None else chunks:
            yield chunk, self._read_part(chunk, columns)

    def extremes(self, column: str) -> tuple[float, float] | None:
        """Smallest and largest number of a column, from what the files declare."""
        if self._extremes is None:
            self._extremes = self._declared_extremes()
        return self._extremes.get(column)

    def _declared_extremes(self) -> dict[str, tuple[float, float]]:
        """Extremes of all columns, in one pass through the files."""
        found: dict[str, tuple[float, float]] = {}
        for chunk in self._found():
            with self._opened(chunk) as part:
                for name, low, high in _declared(part):
                    least, most = found.get(name, (low, high))
                    found[name] = min(least, low), max(most, high)
        return found

    # files ---------------------------------------------------------------------------------------

    def _path(self, chunk: int) -> Path:
        return self.folder / f"part-{chunk:08d}.parquet"

    def _parts(self) -> Iterator[int]:
        for entry in os.scandir(self.folder):
            match = _PART.fullmatch(entry.name)
            if match and int(match[1]) < self.manifest.chunks:
                yield int(match[1])

    def _remove_drafts(self) -> None:
        """Remove what a process that was killed had begun to write."""
        for entry in list(os.scandir(self.folder)):
            if _DRAFT.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)

    def _check_same_study(self, found: SweepManifest) -> None:
        lines = found.differences(self.manifest)
        if lines:
            raise FileError(
                "\n  ".join(
                    [
                        f"'{self.folder}' holds another sweep than this one.",
                        *lines,
                        "Remedy: name another folder, or repeat what was given before",
                    ]
                )
            )

    def _check_links(self) -> None:
        """Refuse links in place of files of a store, which would lead out of its folder."""
        for entry in os.scandir(self.folder):
            own = entry.name == MANIFEST or _PART.fullmatch(entry.name)
            if own and not entry.is_file(follow_symlinks=False):
                raise FileError(
                    f"'{entry.path}' is a link or a folder, and not a file of this sweep.\n"
                    "  Remedy: name a new folder, or move it away"
                )

    def _check_files(self, *, new: bool) -> None:
        """Refuse files of other origin, which readers of the folder would read too."""
        names = sorted(entry.name for entry in os.scandir(self.folder))
        own = [] if new else [f"part-{chunk:08d}.parquet" for chunk in self._parts()]
        foreign = sorted(name for name in set(names) - set(own) if name[0] not in "_.")
        if foreign:
            shown = ", ".join(foreign[:5]) + (", ..." if len(foreign) > 5 else "")
            raise FileError(
                f"'{self.folder}' holds files that do not belong to this sweep: {shown}.\n"
                "  Remedy: name a new folder, or move them away"
            )

    def _write_manifest(self) -> None:
        text = self.manifest.to_json().encode()
        metadata = {KEY: text, DIGEST: _checksum(text)}
        self._write_table(self.folder / MANIFEST, self._schema().empty_table(), metadata)

    def _schema(self) -> Any:
        """Columns of the files with their types."""
        pa = self._arrow
        names = schema_names(self.manifest)
        text = pa.dictionary(pa.int32(), pa.string())
        types = [pa.int64(), *(pa.float64() for _ in names[1:-2]), text, text]
        return pa.schema(list(zip(names, types, strict=True)))

    def _write_table(self, path: Path, table: Any, metadata: Mapping[bytes, bytes]) -> None:
        file = io.BytesIO()
        self._parquet.write_table(
            table.replace_schema_metadata(metadata),
            file,
            compression="zstd",
            use_dictionary=["status", "reason"],
            write_page_checksum=True,
        )
        write_atomically(path, file.getbuffer(), follow=False)

    @contextlib.contextmanager
    def _opened(self, chunk: int) -> Iterator[Any]:
        """Open the file of a chunk; its footer is checked before anything is unpacked."""
        pa, path = self._arrow, self._path(chunk)
        try:
            with open_plain(path) as file:
                part = self._parquet.ParquetFile(file, page_checksum_verification=True)
                self._check_footer(chunk, part, os.fstat(file.fileno()).st_size)
                yield part
        except (pa.ArrowException, *UNREADABLE, FileError) as error:
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            raise FileError(f"'{path}' is damaged: {reason.rstrip('.')}.{_RECOMPUTE}") from error

    def _check_footer(self, chunk: int, part: Any, size: int) -> None:
        first, last = self.manifest.span(chunk)
        found, rows = part.metadata, last - first
        if (part.schema_arrow.metadata or {}).get(STUDY) != self.manifest.digest.encode():
            raise FileError("it belongs to another sweep")
        groups = [found.row_group(k) for k in range(found.num_row_groups)]
        if found.num_rows != rows or sum(group.num_rows for group in groups) != rows:
            raise FileError(f"it has {found.num_rows} rows instead of {rows}")
        if not part.schema_arrow.equals(self._schema()):
            raise FileError("it has other columns than its sweep")
        numbers = [group.column(0).statistics for group in groups]
        if not all(s is None or first <= s.min <= s.max < last for s in numbers):
            raise FileError("it has the rows of another chunk")
        for group in groups:
            for column in (group.column(k) for k in range(group.num_columns)):
                plain = column.physical_type in ("DOUBLE", "INT64")
                if plain and column.total_uncompressed_size > 16 * group.num_rows + PAGES:
                    raise FileError(f"'{column.path_in_schema}' has more bytes than numbers")
        check_expansion(size, sum(group.total_byte_size for group in groups), MAX_PACKED)

    def _is_whole(self, chunk: int) -> bool:
        try:
            with self._opened(chunk):
                return True
        except FileError:
            return False

    def _read_part(self, chunk: int, columns: Sequence[str]) -> Any:
        with self._opened(chunk) as part:
            table = part.read(list(columns))
            table.validate(full=True)  # texts too
            return table


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _declared(part: Any) -> Iterator[tuple[str, float, float]]:
    """Extremes of the columns of numbers that a file declares."""
    for group in map(part.metadata.row_group, range(part.metadata.num_row_groups)):
        for place, name in enumerate(part.schema_arrow.names):
            column = group.column(place)
            if column.physical_type == "DOUBLE" and column.is_stats_set:
                declared = column.statistics
                if declared.has_min_max:
                    yield name, declared.min, declared.max


def _make_folder(folder: str | PathLike[str]) -> Path:
    try:
        path = system_path(folder)
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError(
            f"'{folder}' is a file, and a store of a sweep is a folder.\n  Remedy: name another"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot make the folder '{folder}': {reason}") from error
    return path


def schema_names(manifest: SweepManifest) -> list[str]:
    """Columns of a file of a store, in order."""
    swept, outputs = manifest.columns
    return ["row", *swept.values(), *outputs.values(), "status", "reason"]


def rows_table(
    manifest: SweepManifest,
    rows: npt.NDArray[Any],
    swept: Mapping[str, Array],
    outputs: Mapping[str, Array],
    status: RowTexts,
    reasons: Mapping[int, str],
) -> Any:
    """Table of Arrow with some rows of a sweep.

    Args:
        manifest: Names of the columns.
        rows: Numbers of the rows.
        swept: Swept values by name.
        outputs: Outputs by name.
        status: How each run ended.
        reasons: Why runs failed, by place among the rows.
    """
    pa, _ = require_pyarrow("a table of a sweep")
    made = [pa.array(np.asarray(rows, dtype=np.int64))]
    for given, names in zip((swept, outputs), manifest.columns, strict=True):
        made += [pa.array(np.ascontiguousarray(given[name], dtype=float)) for name in names]
    for texts in (status, RowTexts.from_rows(len(rows), reasons)):
        few = texts.compact()
        codes = pa.array(few.codes, mask=few.codes < 0)
        made.append(pa.DictionaryArray.from_arrays(codes, pa.array(few.texts, pa.string())))
    return pa.table(made, names=schema_names(manifest))
