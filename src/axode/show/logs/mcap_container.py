"""MCAP files: channels, and chunks of messages that are made as arrays of bytes.

The records of the container are written by the package `mcap`. Its own writer takes one message at
a time; here the messages of a chunk, of all topics at many samples, are the rows of one array.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable, UnknownName, install_command
from axode.show.logs.ros_messages import MessageLayout, definition

Bytes = npt.NDArray[np.uint8]
Nanoseconds = npt.NDArray[np.int64]
COMPRESSIONS = ("zstd", "lz4", "none")
CHUNK = 1 << 20  # bytes of a chunk before it is compressed, about
HEAD = struct.Struct("<BQHIQQ")  # code and length of a record; channel, sequence, two times


@dataclass(frozen=True)
class Topic:
    """Messages of one name.

    Attributes:
        name: Name of the topic.
        messages: The messages.
        metadata: What else is known of them.
    """

    name: str
    messages: MessageLayout
    metadata: Mapping[str, str]


def require_mcap() -> Any:
    """Import mcap and those of its modules that are used.

    Raises:
        NotApplicable: if it is not installed.
    """
    try:
        import lz4.frame
        import mcap.data_stream
        import mcap.opcode
        import mcap.records
        import mcap.writer
        import zstandard
    except ModuleNotFoundError as missing:
        raise NotApplicable(
            "to write .mcap needs the package mcap, which is not installed.\n"
            f"  Remedy: {install_command('mcap')}"
        ) from missing
    compress = {"zstd": zstandard.compress, "lz4": lz4.frame.compress, "none": bytes}
    return mcap, compress


class McapContainer:
    """An MCAP file in memory, of the profile of ROS 2.

    Args:
        library: What wrote it.
        compression: Compression of chunks, one of `COMPRESSIONS`.
    """

    def __init__(self, library: str, compression: str) -> None:
        if compression not in COMPRESSIONS:
            raise UnknownName("an MCAP file", "compression", compression, COMPRESSIONS)
        self._mcap, compress = require_mcap()
        self._compress = compress[compression]
        self._compression = "" if compression == "none" else compression
        self._file = io.BytesIO()
        self._records = self._mcap.data_stream.RecordBuilder()
        self._schemas: dict[str, Any] = {}
        self._channels: list[Any] = []
        self._chunks: list[Any] = []
        self._counts: dict[int, int] = {}
        self._spans: list[tuple[int, int]] = []
        self._file.write(self._mcap.writer.MCAP0_MAGIC)
        self._write(self._mcap.records.Header("ros2", library))

    def add(self, topics: Sequence[Topic], times: Nanoseconds) -> None:
        """Add the messages of topics that all have one at each of some times [ns]."""
        rows = _Rows(topics, [self._channel(topic) for topic in topics])
        step = max(1, CHUNK // len(rows.template))
        for first in range(0, len(times), step):
            part = slice(first, min(first + step, len(times)))
            self._add_chunk(rows, rows.fill(part, times[part]), times[part])

    def finish(self) -> memoryview:
        """Add the summary; return the whole file."""
        records, opcode = self._mcap.records, self._mcap.opcode.Opcode
        self._write(records.DataEnd(0))
        start = self._file.tell()
        groups = {
            opcode.SCHEMA: list(self._schemas.values()),
            opcode.CHANNEL: self._channels,
            opcode.STATISTICS: [self._statistics()],
            opcode.CHUNK_INDEX: self._chunks,
        }
        offsets, summary = [], self._records
        for code, group in groups.items():
            before = summary.count
            for record in group:
                record.write(summary)
            if group:
                at, length = start + before, summary.count - before
                offsets.append(
                    records.SummaryOffset(group_opcode=code, group_start=at, group_length=length)
                )
        behind = start + summary.count
        for offset in offsets:
            offset.write(summary)
        data = summary.end()
        crc = zlib.crc32(struct.pack("<BQQQ", opcode.FOOTER, 20, start, behind), zlib.crc32(data))
        self._file.write(data)
        self._write(
            records.Footer(summary_start=start, summary_offset_start=behind, summary_crc=crc)
        )
        self._file.write(self._mcap.writer.MCAP0_MAGIC)
        return self._file.getbuffer()

    def _channel(self, topic: Topic) -> int:
        records, kind = self._mcap.records, topic.messages.kind
        if kind not in self._schemas:
            self._schemas[kind] = records.Schema(
                id=len(self._schemas) + 1,
                name=kind.replace("/", "/msg/"),
                encoding="ros2msg",
                data=definition(kind).encode(),
            )
            self._write(self._schemas[kind])
        channel = records.Channel(
            id=len(self._channels) + 1,
            topic=topic.name,
            message_encoding="cdr",
            metadata=dict(topic.metadata),
            schema_id=self._schemas[kind].id,
        )
        self._channels.append(channel)
        self._write(channel)
        return len(self._channels)

    def _add_chunk(self, rows: _Rows, data: Bytes, times: Nanoseconds) -> None:
        first, last = int(times.min()), int(times.max())
        packed = self._compress(data.data)
        chunk = self._mcap.records.Chunk(
            compression=self._compression,
            data=packed,
            message_start_time=first,
            message_end_time=last,
            uncompressed_crc=zlib.crc32(data.data),
            uncompressed_size=data.size,
        )
        start = self._file.tell()
        self._write(chunk)
        behind = self._file.tell()
        index = np.empty((len(times), 2), "<u8")  # where each message is in the chunk
        index[:, 0] = times
        places = {}
        for channel, offset in zip(rows.channels, rows.starts, strict=True):
            places[channel] = behind + self._records.count
            index[:, 1] = offset + np.arange(len(times)) * data.shape[1]
            self._index(channel, index)
            self._counts[channel] = self._counts.get(channel, 0) + len(times)
        length = self._records.count
        self._file.write(self._records.end())
        self._spans.append((first, last))
        self._chunks.append(
            self._mcap.records.ChunkIndex(
                message_start_time=first,
                message_end_time=last,
                chunk_start_offset=start,
                chunk_length=behind - start,
                message_index_offsets=places,
                message_index_length=length,
                compression=self._compression,
                compressed_size=len(packed),
                uncompressed_size=data.size,
            )
        )

    def _index(self, channel: int, index: npt.NDArray[np.uint64]) -> None:
        self._records.start_record(self._mcap.opcode.Opcode.MESSAGE_INDEX)
        self._records.write2(channel)
        self._records.write4(index.nbytes)
        self._records.write(index.tobytes())
        self._records.finish_record()

    def _statistics(self) -> Any:
        return self._mcap.records.Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=self._counts,
            chunk_count=len(self._chunks),
            message_count=sum(self._counts.values()),
            message_end_time=max(last for _, last in self._spans),
            message_start_time=min(first for first, _ in self._spans),
            metadata_count=0,
            schema_count=len(self._schemas),
        )

    def _write(self, record: Any) -> None:
        record.write(self._records)
        self._file.write(self._records.end())


class _Rows:
    """Message records of all topics at one sample, as one row of bytes.

    Attributes:
        channels: Numbers of the channels.
        starts: Where the record of each topic starts.
        template: A row; what changes is zero in it.
    """

    def __init__(self, topics: Sequence[Topic], channels: Sequence[int]) -> None:
        self.channels = channels
        self.starts: list[int] = []
        self._stamps: list[int] = []
        self._numbers: list[tuple[int, npt.NDArray[np.float64]]] = []
        row = bytearray()
        for topic, channel in zip(topics, channels, strict=True):
            messages, start = topic.messages, len(row)
            length = HEAD.size - 9 + len(messages.data)
            row += HEAD.pack(5, length, channel, 0, 0, 0) + messages.data
            inside = start + HEAD.size
            self.starts.append(start)
            self._stamps += [inside + at for at in messages.stamps]
            self._numbers += [(inside + at, values) for at, values in messages.numbers]
        self.template = np.frombuffer(bytes(row), np.uint8)

    def fill(self, part: slice, times: Nanoseconds) -> Bytes:
        """Rows of some samples at their times [ns]."""
        rows = np.empty((len(times), len(self.template)), np.uint8)
        rows[:] = self.template
        counted = np.arange(part.start, part.stop)[:, np.newaxis].astype("<u4")
        logged = np.repeat(times[:, np.newaxis], 2, axis=1).astype("<u8")
        stamp = np.stack(np.divmod(times, 10**9), axis=-1).astype("<u4")
        for start in self.starts:
            _put(rows, start + 11, counted)
            _put(rows, start + 15, logged)
        for at in self._stamps:
            _put(rows, at, stamp)
        for at, values in self._numbers:
            _put(rows, at, values[part].astype("<f8"))
        return rows


def _put(rows: Bytes, at: int, values: npt.NDArray[Any]) -> None:
    """Copy the bytes of one row of values into each row."""
    data = np.ascontiguousarray(values).view(np.uint8)
    rows[:, at : at + data.shape[1]] = data
