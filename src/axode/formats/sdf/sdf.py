"""Mechanisms from SDF files, the robots and worlds of Gazebo.

SDF joins links in any graph: joints beyond a spanning tree close loops here. What a mechanism
cannot hold is listed, element by element.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from axode.errors import Fault, FileError, InvalidArgument
from axode.formats.sdf.sdf_builder import SdfBuilder
from axode.formats.sdf.sdf_files import ModelFiles
from axode.formats.sdf.sdf_joints import SdfJoint, SdfJointReader
from axode.formats.sdf.sdf_links import LinkReader, SdfLink
from axode.formats.sdf.sdf_scopes import FrameResolver, ModelScope, SdfFrame
from axode.formats.sdf.sdf_values import (
    MISSING,
    SCENERY,
    WEIGHTLESS,
    SdfOwner,
    SdfPose,
    sdf_findings,
)
from axode.formats.xml.findings import FLUID, Findings
from axode.formats.xml.reading import XmlFile
from axode.formats.xml.xml_tree import parse
from axode.mechanism.checks import relation_faults, value_faults
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.size import require_readable

GRAVITY = (0.0, 0.0, -9.8)  # of a world that gives none
_BALL = "drake:ball_constraint"
MAX_FRAMES = 10_000  # of models, links, joints and frames
_KINDS = {"body": "link", "motor": "joint", "damper": "joint", "loop": "joint"}


def mechanism_from_sdf(file: XmlFile) -> Mechanism:
    """Read the mechanism that an SDF file describes; models float unless the file has a base.

    Raises:
        FileError: if the text is not SDF.
        MechanismError: listing every fault with its line.
        NotApplicable: if there are too many bodies.

    Warns:
        FileDeviationWarning: once, listing everything that departs from the format or from
            physics, and what was done about it.
        OmissionWarning: once, listing everything that a mechanism cannot hold.
    """
    source, findings = file.source, sdf_findings()
    root = parse(file.text, source, file.remarks)
    findings.note_remarks("sdf", file.remarks)
    world = ModelFiles(source, file.folder, findings).world(root)
    reader = WorldReader(world, findings, file)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported
        mechanism = reader.build()
    findings.conclude(source, strict=file.strict)
    findings.warn_left_out(source)
    return mechanism


class WorldReader:
    """Reads the links and joints of all models of a world."""

    def __init__(self, world: ModelScope, findings: Findings, file: XmlFile) -> None:
        self.world = world
        self.findings = findings
        self.file = file
        self.frames = FrameResolver(findings)

    def build(self) -> Mechanism:
        """Return the mechanism; `findings` holds the faults of the file."""
        count = sum(1 + len(scope.frames) for scope in self.world.all_scopes())
        if count > MAX_FRAMES:
            raise FileError(
                f"{self.file.source} has {count} models, links, joints and frames, and files of "
                f"at most {MAX_FRAMES} are read."
            )
        kept = self._kept_models()
        if len(kept) == 1:
            kept[0].is_prefix = False
        scopes = [scope for model in kept for scope in model.all_scopes()]
        named = self.world.element.attributes.get("name")
        name = kept[0].name if len(kept) == 1 else named
        mechanism = Mechanism(name or self.file.path.stem)
        links = self._links(scopes)
        joints = list(self._joints([self.world, *scopes]))
        if not links:
            self._report_empty()
            return mechanism
        self._require_base(joints)
        require_readable(self.file.source, [(link.frame.full_name, "") for link in links])
        mechanism.gravity = self._gravity(mechanism.gravity, links)
        sound = not self.findings.faults
        builder = SdfBuilder(mechanism, self.findings, self.frames, links, joints)
        builder.build(self.file.base)
        self._add_constraints(scopes, builder)
        for link in links:
            self._reader(link.frame).add_geometry(self.file.geometry, builder.names[link.frame])

        def line(fault: Fault) -> int:
            kind = "body" if fault.kind == "body" else "joint"
            lines, name = builder.lines, fault.name
            return (
                lines.get((kind, name)) or lines.get((fault.kind, name)) or self.world.element
            ).line

        self.findings.keep(value_faults(mechanism), line, _KINDS)
        if sound and not self.findings.faults:
            self.findings.keep(relation_faults(mechanism), line, _KINDS)
        return mechanism

    def _report_empty(self) -> None:
        """Report that nothing can be read, with the models that could not be included."""
        if not self.findings.faults:
            owner = SdfOwner("sdf", "", self.findings)
            owner.report(self.world.element, "", "has no <model> with a <link>")
        self.findings.faults += self.findings.left_out.get(MISSING, [])

    def _kept_models(self) -> list[ModelScope]:
        """The models that are read: all, but for scenery that nothing is joined to."""
        models = self.world.scopes
        joined = list(self.world.of_kind("joint"))
        moving = [model for model in models if not model.static]
        if joined or not moving:
            return models
        for model in models:
            if model.static:
                SdfOwner("world", "", self.findings).leave_out(SCENERY, model.placed)
                for frame in (f for scope in model.all_scopes() for f in scope.of_kind("link")):
                    self._reader(frame).add_geometry(self.file.geometry, GROUND.name)
        return moving

    def _links(self, scopes: list[ModelScope]) -> list[SdfLink]:
        found = []
        for scope in scopes:
            found += [self._reader(frame).read() for frame in scope.of_kind("link")]
        return found

    def _reader(self, frame: SdfFrame) -> LinkReader:
        return LinkReader(frame, self.frames.owner(frame), self.frames, frame.scope.static)

    def _joints(self, scopes: list[ModelScope]) -> Iterator[SdfJoint]:
        for scope in scopes:
            for frame in scope.of_kind("joint"):
                if scope.static:
                    SdfOwner("joint", frame.full_name, self.findings).leave_out(
                        SCENERY, frame.element
                    )
                    continue
                reader = SdfJointReader(self.frames, frame)
                joint = reader.read()
                if joint is not None:
                    reader.read_mimics(joint)
                    yield joint
            for frame in scope.of_kind("frame"):
                self.frames.in_world(frame)
                self.frames.link_of(frame)

    def _require_base(self, joints: list[SdfJoint]) -> None:
        """Raise an error if a base is asked for and the file holds the robot itself."""
        base = self.file.base
        held = [j for j in joints if j.parent is None or j.child is None]
        if base in (None, "fixed") or not held:
            return
        raise InvalidArgument(
            f"base='{base}': joint '{held[0].frame.full_name}' of {self.file.source} joins the "
            "robot to the world.\n  Leave base out, or remove this joint from the file."
        )

    def _gravity(self, usual: object, links: list[SdfLink]) -> tuple[float, ...]:
        """Gravity of the world; nothing if no link has weight."""
        element, owner = self.world.element, SdfOwner("world", "", self.findings)
        wind = element.first("wind")
        if any(owner.vector(wind, "linear_velocity", (0.0, 0.0, 0.0))):
            owner.leave_out(FLUID, wind or element)
        default = GRAVITY if "name" in element.attributes else usual
        gravity = owner.vector(element, "gravity", default)  # type: ignore[arg-type]
        moving = [link for link in links if not link.frame.scope.static and link.mass]
        without = [link for link in moving if not link.has_weight]
        if without and len(without) == len(moving):
            return (0.0, 0.0, 0.0)
        for link in without:
            link.owner.leave_out(WEIGHTLESS, link.frame.element)
        return gravity

    def _add_constraints(self, scopes: list[ModelScope], builder: SdfBuilder) -> None:
        for scope in scopes:
            for element in scope.element.all(_BALL):
                owner = SdfOwner(_BALL, "", self.findings)
                frames, points = [], []
                for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
                    given = element.first(f"{_BALL}_{body}")
                    name = given.text if given else ""
                    frames.append(self.frames.find(scope, name, owner, given or element, body))
                    place = owner.vector(element, f"{_BALL}_{point}", (0.0, 0.0, 0.0))
                    points.append(SdfPose(np.eye(3), np.array(place)))
                builder.add_ball(frames[0], frames[1], points, element)
