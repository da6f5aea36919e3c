"""Numbers, switches and poses in the elements of an SDF file."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.formats.sdf.sdf_findings import SWITCHES, UNKNOWN, SdfFindings
from axode.formats.urdf.urdf_values import Numbers, Owner, exact_angle, matrix
from axode.formats.xml.xml_tree import Element
from axode.mechanism.values.geometry import NO_ROTATION, snap
from axode.numerics.poses import RigidPose
from axode.numerics.tolerances import SUM_ROUNDING

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.I | re.A)
_COUNTED = {1: "a number", 3: "three numbers", 6: "six numbers", 7: "seven numbers"}
_SWITCHED = {"true": True, "1": True, "false": False, "0": False}
UNLIMITED = 1e16  # as older versions write infinity


class SdfPose(RigidPose):
    """Where a frame is in another."""

    @property
    def at(self) -> Numbers:
        """Position, without what rounding leaves of zeros."""
        return cleaned(self.p)

    @property
    def rotation(self) -> Any:
        """Rotation as a mechanism holds it."""
        if np.abs(self.R - np.eye(3)).max() <= SUM_ROUNDING:
            return NO_ROTATION
        return tuple(tuple(snap(float(x)) + 0.0 for x in row) for row in self.R)  # type: ignore[operator]


IDENTITY = SdfPose(np.eye(3), np.zeros(3))


def cleaned(vector: np.ndarray) -> Numbers:
    """Components without what rounding leaves of zeros."""
    small = SUM_ROUNDING * np.abs(vector).max(initial=1.0)
    return tuple(np.where(np.abs(vector) <= small, 0.0, vector).tolist())


@dataclass(frozen=True)
class SdfOwner(Owner):
    """The link, joint, frame or model that elements belong to."""

    findings: SdfFindings

    def report(self, element: Element, field: str, message: str) -> None:
        """Note a fault at the line of an element, and its file if that is another."""
        super().report(element, field, message + ("" if self.otherwise else self._file(element)))

    def note(self, element: Element, field: str, message: str, done: str) -> None:
        """Note a deviation at the line of an element, and what was done about it."""
        super().note(element, field, message + self._file(element), done)

    def _file(self, element: Element) -> str:
        file = self.findings.files.get(id(element), "")
        return f" (in {file})" if file else ""

    def leave_out(self, what: str, element: Element, detail: str = "") -> None:
        """Note an element as something that a mechanism cannot hold."""
        kind = element.tag
        name = element.attributes.get("name", "")
        if kind not in (self.kind, "link", "joint", "model") and self.name:
            detail = detail or (f"(of {self.kind} {self.name})" if self.kind else "")
        self.findings.leave_out(what, element, detail, self.name if kind == self.kind else name)

    def sort(self, element: Element, parts: dict[str, str]) -> None:
        """Leave out what is inside an element and not read, by its kind."""
        for child in element.children:
            what = parts.get(child.tag, UNKNOWN)
            if not what or (child.tag in SWITCHES and not self.flag(child)):
                continue
            detail = ""
            if what == UNKNOWN:
                close = difflib.get_close_matches(child.tag.lower(), parts, n=1, cutoff=0.8)
                detail = f"(did you mean <{close[0]}>?)" if close else ""
            self.leave_out(what, child, detail)

    # values --------------------------------------------------------------------------------------

    def parse(self, element: Element, usual: Numbers, field: str = "") -> Numbers:
        """Numbers in the text of an element, as many as there usually are."""
        words = element.text.split()
        field = field or element.tag
        if len(words) != len(usual) or not all(map(_NUMBER.fullmatch, words)):
            got = element.text if len(element.text) < 80 else element.text[:77] + "..."
            self.report(element, field, f"expected {_COUNTED[len(usual)]}, got '{got}'")
            return usual
        return tuple(map(float, words))

    def finite(self, element: Element, usual: Numbers, field: str = "") -> Numbers:
        """Numbers that must be finite."""
        values = self.parse(element, usual, field)
        if not all(map(math.isfinite, values)):
            self.report(element, field or element.tag, f"must be finite, got '{element.text}'")
            return usual
        return values

    def value(
        self, parent: Element | None, tag: str, usual: float, *, bounded: bool = True
    ) -> float:
        """The number in a child of an element; the usual one if there is none."""
        child = parent.first(tag) if parent else None
        if child is None:
            return usual
        read = self.finite if bounded else self.parse
        return read(child, (usual,))[0]

    def vector(self, parent: Element | None, tag: str, usual: Numbers) -> Numbers:
        """Three numbers in a child of an element."""
        child = parent.first(tag) if parent else None
        return usual if child is None else self.finite(child, usual)

    def flag(self, element: Element | None) -> bool:
        """Return whether the text of an element switches something on."""
        if element is None:
            return False
        switched = _SWITCHED.get(element.text.lower())
        if switched is None:
            self.report(element, element.tag, f"expected true or false, got '{element.text[:60]}'")
        return bool(switched)

    def read_pose(self, element: Element | None) -> SdfPose:
        """The pose that an element holds; none is the identity."""
        if element is None or not element.text:
            return IDENTITY
        self.only(element, "relative_to", "frame", "degrees", "rotation_format")
        form = element.attributes.get("rotation_format", "euler_rpy")
        degrees = element.attributes.get("degrees", "false").lower()
        if form not in ("euler_rpy", "quat_xyzw") or degrees not in _SWITCHED:
            message = "rotation_format is euler_rpy or quat_xyzw, and degrees is true or false"
            self.report(element, "pose", message)
            return IDENTITY
        known = self.count()
        values = self.finite(element, (0.0,) * (6 if form == "euler_rpy" else 7), "pose")
        if self.count() > known:
            return IDENTITY
        turn = self._quaternion(element, values) if form == "quat_xyzw" else values[3:]
        if form == "euler_rpy":
            turn = tuple(map(exact_angle, element.text.split()[3:]))
            if _SWITCHED[degrees]:
                turn = tuple(math.radians(angle) for angle in values[3:])
        return SdfPose(matrix(turn), np.array(values[:3]))

    def _quaternion(self, element: Element, values: Numbers) -> Numbers:
        """The quaternion w, x, y, z of seven numbers."""
        x, y, z, w = values[3:]
        length = math.hypot(x, y, z, w)
        if not 0.0 < length < math.inf:
            self.report(element, "pose", "the quaternion x, y, z, w must have length 1, got 0")
            return (1.0, 0.0, 0.0, 0.0)
        if abs(length - 1.0) > 1e-4:
            self.note(element, "pose", f"its quaternion has length {length:.6g}", "normalized")
        return (w / length, x / length, y / length, z / length)
