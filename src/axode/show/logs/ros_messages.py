"""Messages of ROS 2 as bytes (CDR, little-endian), for all samples of a topic at once.

A message of a run has the same length at every sample: its texts, and how many joints or frames it
has, do not change. So one message is laid out once, with the places of the numbers that do change,
and the numbers of all samples are copied to their places as arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ENCAPSULATION = b"\x00\x01\x00\x00"  # little-endian CDR; alignment counts from behind it
SEPARATOR = "=" * 80

# Fields of the message types that are written, in the notation of ROS 2.
FIELDS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec\n",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id\n",
    "std_msgs/Float64": "float64 data\n",
    "std_msgs/String": "string data\n",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z\n",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z\n",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n",
    "geometry_msgs/Pose": ("geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n"),
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n",
    "geometry_msgs/Wrench": "geometry_msgs/Vector3 force\ngeometry_msgs/Vector3 torque\n",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance\n",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance\n",
    "geometry_msgs/WrenchStamped": "std_msgs/Header header\ngeometry_msgs/Wrench wrench\n",
    "geometry_msgs/Transform": (
        "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation\n"
    ),
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform\n"
    ),
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms\n",
    "sensor_msgs/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
        "float64[] effort\n"
    ),
    "nav_msgs/Odometry": (
        "std_msgs/Header header\nstring child_frame_id\n"
        "geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist\n"
    ),
}


def definition(name: str) -> str:
    """Definition of a message type, with those of all types in it below."""
    below = dict.fromkeys(_types_in(name))
    return FIELDS[name] + "".join(f"{SEPARATOR}\nMSG: {kind}\n{FIELDS[kind]}" for kind in below)


def _types_in(name: str) -> Iterator[str]:
    for line in FIELDS[name].splitlines():
        kind = line.split()[0].partition("[")[0]
        if kind in FIELDS:
            yield kind
            yield from _types_in(kind)


class MessageLayout:
    """Bytes of the messages of one topic, all of one length.

    Attributes:
        kind: Message type, one of `FIELDS`.
        data: Bytes of a message; numbers that change are zero in it.
        stamps: Where the time stamps are.
        numbers: Where the other changing numbers are, and their values: (samples, count).
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.data = bytearray(ENCAPSULATION)
        self.stamps: list[int] = []
        self.numbers: list[tuple[int, Array]] = []

    def header(self, frame: str) -> None:
        """Add a header: the time stamp and a frame."""
        self._align(4)
        self.stamps.append(len(self.data))
        self.data += bytes(8)
        self.text(frame)

    def count(self, number: int) -> None:
        """Add the length of a sequence."""
        self._align(4)
        self.data += struct.pack("<I", number)

    def text(self, text: str) -> None:
        """Add a text."""
        encoded = text.encode() + b"\0"
        self.count(len(encoded))
        self.data += encoded

    def texts(self, texts: Sequence[str]) -> None:
        """Add a sequence of texts."""
        self.count(len(texts))
        for text in texts:
            self.text(text)

    def doubles(self, *values: Array) -> None:
        """Add numbers that change: (samples, count) each."""
        for some in values:
            self._align(8)
            self.numbers.append((len(self.data), some))
            self.data += bytes(8 * some.shape[-1])

    def sequence(self, values: Array) -> None:
        """Add a sequence of numbers that change: (samples, count)."""
        self.count(values.shape[-1])
        if values.shape[-1]:
            self.doubles(values)

    def zeros(self, count: int) -> None:
        """Add numbers that are always zero."""
        self._align(8)
        self.data += bytes(8 * count)

    def _align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - len(ENCAPSULATION)) % size)


def joint_state(
    names: Sequence[str], position: Array, velocity: Array, effort: Array
) -> MessageLayout:
    """Positions, velocities and efforts of joints; (samples, joints), or no effort at all."""
    message = MessageLayout("sensor_msgs/JointState")
    message.header("")
    message.texts(names)
    for values in (position, velocity, effort):
        message.sequence(values)
    return message


def transforms(
    parent: str, frames: Sequence[str], positions: Array, quaternions: Array
) -> MessageLayout:
    """Poses of frames in a parent: positions (samples, frames, 3), quaternions x, y, z, w."""
    message = MessageLayout("tf2_msgs/TFMessage")
    message.count(len(frames))
    for k, frame in enumerate(frames):
        message.header(parent)
        message.text(frame)
        message.doubles(positions[:, k], quaternions[:, k])
    return message


def odometry(
    parent: str, frame: str, position: Array, quaternion: Array, linear: Array, angular: Array
) -> MessageLayout:
    """Pose of a body in a parent and its velocity in its own axes; covariances are zero."""
    message = MessageLayout("nav_msgs/Odometry")
    message.header(parent)
    message.text(frame)
    message.doubles(position, quaternion)
    message.zeros(36)
    message.doubles(linear, angular)
    message.zeros(36)
    return message


def wrench(frame: str, force: Array) -> MessageLayout:
    """Force at the origin of a frame, along its axes: (samples, 3)."""
    message = MessageLayout("geometry_msgs/WrenchStamped")
    message.header(frame)
    message.doubles(force)
    message.zeros(3)
    return message


def number(values: Array) -> MessageLayout:
    """One number without a header: (samples,)."""
    message = MessageLayout("std_msgs/Float64")
    message.doubles(values[:, np.newaxis])
    return message


def string(text: str) -> MessageLayout:
    """One text without a header."""
    message = MessageLayout("std_msgs/String")
    message.text(text)
    return message
