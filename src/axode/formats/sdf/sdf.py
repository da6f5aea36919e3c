"""Mechanisms from SDF files, the robots and worlds of Gazebo.

SDF joins links in any graph: joints beyond a spanning tree close loops here. What a mechanism
cannot hold is listed, element by element.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from axode.errors import (
    Fault,
    FileDeviationWarning,
    FileError,
    InvalidArgument,
    MechanismError,
    level_outside,
    shortened,
)
from axode.formats.mjcf.mjcf_text import Folder
from axode.formats.sdf.sdf_builder import BASES, SdfBuilder
from axode.formats.sdf.sdf_files import ModelFiles
from axode.formats.sdf.sdf_findings import FLUID, MISSING, SCENERY, WEIGHTLESS, SdfFindings
from axode.formats.sdf.sdf_joints import SdfJoint, SdfJointReader
from axode.formats.sdf.sdf_links import LinkReader, SdfLink
from axode.formats.sdf.sdf_scopes import FrameResolver, ModelScope, SdfFrame
from axode.formats.sdf.sdf_values import SdfOwner, SdfPose
from axode.formats.xml.xml_tree import Element, parse
from axode.mechanism.checks import relation_faults, value_faults
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.files.wheel_proposals import Geometry
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.size import require_readable

GRAVITY = (0.0, 0.0, -9.8)  # of a world that gives none
_BALL = "drake:ball_constraint"
MAX_FRAMES = 10_000  # of models, links, joints and frames
_KINDS = {"body": "link", "motor": "joint", "damper": "joint", "loop": "joint"}


def mechanism_from_sdf(
    text: str,
    source: str,
    path: Path,
    base: str | None = None,
    folder: Path | None = None,
    *,
    strict: bool = False,
    remarks: list[tuple[int, str, str]] | None = None,
    geometry: Geometry | None = None,
) -> Mechanism:
    """Read the mechanism that the text of an SDF file describes.

    Args:
        text: What the file holds.
        source: What messages call the file.
        path: Where it is: includes are relative to its folder.
        base: How a model is held that nothing joins to the world: "floating" unless given.
        folder: Outside of which nothing is opened; the folder of the file unless given.
        strict: Whether to refuse what can be read only with a warning.
        remarks: Line, message and remedy of what was found when the file was decoded.
        geometry: Where to put the solids of the links, and the planes that they may stand on.

    Raises:
        FileError: if the text is not SDF.
        MechanismError: listing every fault with its line.
        NotApplicable: if there are too many bodies.

    Warns:
        FileDeviationWarning: once, listing everything that departs from the format or from
            physics, and what was done about it.
        OmissionWarning: once, listing everything that a mechanism cannot hold.
    """
    if base is not None and base not in BASES:
        raise InvalidArgument(
            f"base must be 'fixed', 'floating' or 'planar', got {shortened(base)}"
        )
    remarks = [] if remarks is None else remarks
    findings = SdfFindings()
    root = parse(text, source, remarks)
    for line, message, done in remarks:
        findings.note(Element("sdf", {}, line), message, done)
    home = Folder(path.parent, path.parent if folder is None else folder)
    world = ModelFiles(source, home, findings).world(root)
    reader = WorldReader(world, findings, source, Geometry() if geometry is None else geometry)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported
        mechanism = reader.build(base, path.stem)
    found = findings.strict_faults() if strict else findings.only_faults()
    if found:
        raise MechanismError(source, found)
    level = level_outside()
    if findings.deviations:
        warnings.warn(FileDeviationWarning(source, findings.with_remedies()), stacklevel=level)
    left_out = findings.warning(source)
    if left_out is not None:
        warnings.warn(left_out, stacklevel=level)
    return mechanism


class WorldReader:
    """Reads the links and joints of all models of a world."""

    def __init__(
        self, world: ModelScope, findings: SdfFindings, source: str, geometry: Geometry
    ) -> None:
        self.world = world
        self.findings = findings
        self.source = source
        self.geometry = geometry
        self.frames = FrameResolver(findings)

    def build(self, base: str | None, stem: str) -> Mechanism:
        """Return the mechanism; `findings` holds the faults of the file."""
        count = sum(1 + len(scope.frames) for scope in self.world.all_scopes())
        if count > MAX_FRAMES:
            raise FileError(
                f"{self.source} has {count} models, links, joints and frames, and files of at most "
                f"{MAX_FRAMES} are read."
            )
        kept = self._kept_models()
        if len(kept) == 1:
            kept[0].is_prefix = False
        scopes = [scope for model in kept for scope in model.all_scopes()]
        named = self.world.element.attributes.get("name")
        name = kept[0].name if len(kept) == 1 else named or stem
        mechanism = Mechanism(name or stem)
        links = self._links(scopes)
        joints = list(self._joints([self.world, *scopes]))
        if not links:
            self._report_empty()
            return mechanism
        self._require_base(base, joints)
        require_readable(self.source, [(link.frame.full_name, "") for link in links])
        mechanism.gravity = self._gravity(mechanism.gravity, links)
        sound = not self.findings.faults
        builder = SdfBuilder(mechanism, self.findings, self.frames, links, joints)
        builder.build(base)
        self._add_constraints(scopes, builder)
        for link in links:
            self._reader(link.frame).add_geometry(self.geometry, builder.names[link.frame])
        self._keep(value_faults(mechanism), builder)
        if sound and not self.findings.faults:
            self._keep(relation_faults(mechanism), builder)
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
                    self._reader(frame).add_geometry(self.geometry, GROUND.name)
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

    def _require_base(self, base: str | None, joints: list[SdfJoint]) -> None:
        """Raise an error if a base is asked for and the file holds the robot itself."""
        held = [j for j in joints if j.parent is None or j.child is None]
        if base in (None, "fixed") or not held:
            return
        raise InvalidArgument(
            f"base='{base}': joint '{held[0].frame.full_name}' of {self.source} joins the robot to "
            "the world.\n  Leave base out, or remove this joint from the file."
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

    def _keep(self, found: list[Fault], builder: SdfBuilder) -> None:
        """Keep what every description is checked for, in the words and lines of the file."""
        for fault in found:
            kind = "body" if fault.kind == "body" else "joint"
            element = builder.lines.get((kind, fault.name)) or builder.lines.get(
                (fault.kind, fault.name)
            )
            line = element.line if element else self.world.element.line
            kind = _KINDS.get(fault.kind, fault.kind)
            self.findings.faults.append(Fault(kind, fault.name, fault.field, fault.message, line))
