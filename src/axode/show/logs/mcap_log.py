"""A run as an MCAP file of messages of ROS 2; no ROS is needed to write or to read it.

MCAP files: channels, and chunks of messages that are made as arrays of bytes.

The records of the container are written by the package `mcap`. Its own writer takes one message at
a time; here the messages of a chunk, of all topics at many samples, are the rows of one array.
"""

from __future__ import annotations

import io
import math
import re
import struct
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from axode.disk.atomic import as_path, write_atomically
from axode.errors import (
    FileError,
    InvalidArgument,
    NotApplicable,
    OmissionWarning,
    UnknownName,
    install_command,
)
from axode.formats.urdf.urdf_writer import NATIVE as NATIVE_IN_URDF
from axode.formats.written.mechanism_text import with_parameters
from axode.formats.written.written_joints import FramePose, steps_of
from axode.mechanism.elements.joints import Fixed
from axode.mechanism.values.geometry import NO_ROTATION, ORIGIN
from axode.model.model_parts import facts_of
from axode.show.logs import ros_messages
from axode.show.logs.logged_run import LoggedRun, quaternions
from axode.show.logs.ros_messages import MessageLayout, definition

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


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


LATEST = 2**31  # seconds that a time stamp of ROS can count to
NAME = re.compile(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)  # of topics, without the first slash


class McapOptions(TypedDict):
    """Arguments of `Trajectory.to_mcap`."""

    model: Model | None
    rate: float | None
    epoch: float
    prefix: str
    frame: str
    signals: Sequence[str] | None
    forces: bool
    compression: str


def write_mcap(run: Trajectory, path: str | PathLike[str], **options: Unpack[McapOptions]) -> Path:
    """Write a run to an MCAP file; see `Trajectory.to_mcap`."""
    require_mcap()
    target = as_path(path)
    if target.suffix.lower() != ".mcap":
        raise FileError(f"'{path}': the name of an MCAP file ends in .mcap")
    prefix = options["prefix"]
    space = prefix.strip("/")
    if space and not NAME.fullmatch(space):
        raise InvalidArgument(
            f"prefix: '{prefix}' cannot begin the name of a topic of ROS.\n"
            "  Remedy: letters, digits and underscores, with slashes between, such as 'robot_1'"
        )
    logged = LoggedRun(run, options["model"], options["rate"])
    times = _nanoseconds(logged.time, options["epoch"])
    container = McapContainer(f"axode {sys.modules['axode'].__version__}", options["compression"])
    if logged.model.has_equations:
        text = ros_messages.string(_description(logged))
        container.add([Topic(f"{_within(space)}robot_description", text, {})], times[:1])
    topics = _topics(logged, space, options["frame"], options["signals"], options["forces"])
    container.add(list(topics), times)
    write_atomically(target, container.finish())
    return target


def _nanoseconds(time: npt.NDArray[np.float64], epoch: float) -> npt.NDArray[np.int64]:
    """Time stamps; those of ROS are neither negative nor later than the year 2038."""
    first, last = epoch + float(time[0]), epoch + float(time[-1])
    if not (first * 1e9 > -0.5 and last < LATEST - 1):
        raise InvalidArgument(
            f"time stamps of ROS go from 0 to 2^31 s, and the log would go from {first:g} to "
            f"{last:g} s.\n  Remedy: epoch=... in seconds is added to the times of the run"
        )
    whole = math.floor(epoch)
    return np.rint((time + (epoch - whole)) * 1e9).astype(np.int64) + whole * 10**9


def _topics(
    logged: LoggedRun, space: str, frame: str, signals: Sequence[str] | None, forces: bool
) -> Iterator[Topic]:
    """Topics of a run; their names begin with the prefix, except that of the transforms."""
    within = _within(space)
    contacts = [f"{name}.contact" for name in logged.contacts] if forces else []
    frames = _frames(space, frame, [*logged.model.bodies, *contacts])
    if logged.joint_coordinates:
        joints = ros_messages.joint_state(logged.joint_coordinates, *logged.joint_columns())
        yield Topic(f"{within}joint_states", joints, {})
    positions, turns = logged.positions, logged.quaternions
    if contacts:
        positions = np.concatenate([positions, logged.contact_points], axis=1)
        turns = np.concatenate([turns, quaternions(logged.contact_axes)], axis=1)
    yield Topic("/tf", ros_messages.transforms(frame, frames, positions, turns), {})
    names, bases = _Names(), [body for body, *_ in facts_of(logged.model).bases]
    for body in bases:
        k = logged.model.bodies.index(body)
        pose = (positions[:, k], turns[:, k])
        moving = ros_messages.odometry(frame, frames[k], *pose, *logged.body_velocities(body))
        topic = names.add(f"{within}odom" if len(bases) == 1 else f"{within}odom/{_words(body)}")
        yield Topic(topic, moving, {"body": body})
    for k, contact in enumerate(logged.contacts if forces else ()):
        force = logged.contact_forces[:, k]
        topic = names.add(f"{within}contact_forces/{_words(contact)}")
        messages = ros_messages.wrench(frames[len(logged.model.bodies) + k], force)
        yield Topic(topic, messages, {"contact": contact, "unit": "N"})
    for name in logged.signals(signals, forces=forces):
        topic = names.add(f"{within}signals/{_words(name)}")
        metadata = {"signal": name, "unit": logged.unit(name)}
        yield Topic(topic, ros_messages.number(logged.column(name)), metadata)


def _within(space: str) -> str:
    return f"/{space}/" if space else "/"


def _description(logged: LoggedRun) -> str:
    """Return URDF text of the links and their shapes, without warnings about the motion."""
    mechanism = logged.model.equations.system.mechanism
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmissionWarning)
        return str(_with_body_frames(with_parameters(mechanism, logged.parameters)).to_urdf())


def _with_body_frames(mechanism: Mechanism) -> Mechanism:
    """Give every body a link with its own frame, which the transforms have.

    A link of URDF has the frame of the joint that holds it. Where the body's is another, the joint
    holds a massless link, and the body is fixed to that.
    """
    found = mechanism.copy()
    bodies = _Names({body.name for body in found.bodies})
    joints = _Names({joint.name for joint in (*found.connections, *found.loops)})
    for k, joint in enumerate(mechanism.connections):
        place = FramePose.of(joint.child_at, joint.child_rotation).inverse()
        _, align = steps_of(joint, NATIVE_IN_URDF)
        if place.is_identity and (align is None or (align == np.eye(3)).all()):
            continue
        link = found.add_body(bodies.add(f"{joint.child}.joint"), mass=0.0, inertia=(0, 0, 0))
        found.connections[k] = replace(
            joint, child=link.name, child_at=ORIGIN, child_rotation=NO_ROTATION
        )
        found.add_joint(
            joints.add(f"{joint.name}.frame"),
            Fixed(),
            parent=link,
            child=joint.child,
            at=tuple(place.p.tolist()),
            rotation=place.R,
        )
    return found


def _frames(space: str, frame: str, names: Sequence[str]) -> list[str]:
    """Frames of bodies and contacts; all differ, from that of the world too."""
    found = [f"{space}/{name}" if space else name for name in names]
    twice = sorted({name for name in (frame, *found) if [frame, *found].count(name) > 1})
    if twice:
        raise InvalidArgument(
            f"frame: '{twice[0]}' would name two frames.\n"
            "  Remedy: another frame=... for the world, or a prefix=... for the bodies"
        )
    return found


def _words(name: str) -> str:
    """A name as part of a topic of ROS: words of letters, digits and underscores."""
    words = re.split(r"[./]", re.sub(r"[^A-Za-z0-9_./]", "_", name))
    return "/".join(f"_{word}" if not word or word[0].isdigit() else word for word in words)


class _Names:
    """Names of topics, links or joints; one that is taken gets a number."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def add(self, name: str) -> str:
        """Return the name, or one that is free."""
        free, count = name, 1
        while free in self._taken:
            count += 1
            free = f"{name}_{count}"
        self._taken.add(free)
        return free
