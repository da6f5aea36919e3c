"""A run as an MCAP file of messages of ROS 2; no ROS is needed to write or to read it."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from axode.disk.atomic import as_path, write_atomically
from axode.errors import FileError, InvalidArgument, OmissionWarning
from axode.formats.urdf.urdf_writer import NATIVE as NATIVE_IN_URDF
from axode.formats.written.mechanism_text import with_parameters
from axode.formats.written.written_joints import FramePose, steps_of
from axode.mechanism.elements.joints import Fixed
from axode.mechanism.values.geometry import NO_ROTATION, ORIGIN
from axode.model.model_parts import facts_of
from axode.show.logs import ros_messages
from axode.show.logs.logged_run import LoggedRun, quaternions
from axode.show.logs.mcap_container import McapContainer, Topic, require_mcap

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

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
