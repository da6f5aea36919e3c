"""Mechanisms from MJCF files, the models of MuJoCo.

MuJoCo's own compiler resolves classes, frames and inertias of geoms; this reader makes bodies,
joints, loops, couplings, springs, dampers and motors of its result. What a mechanism cannot hold
is listed, element by element.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np

from axode.errors import Fault, FileDeviationWarning, MechanismError, level_outside
from axode.formats.mjcf.mjcf_actuators import ActuatorReader
from axode.formats.mjcf.mjcf_bodies import BodyReader
from axode.formats.mjcf.mjcf_constraints import ConstraintReader
from axode.formats.mjcf.mjcf_findings import FLUID, KEYS, MjcfFindings
from axode.formats.mjcf.mjcf_geoms import add_geoms
from axode.formats.mjcf.mjcf_model import CompiledModel, compile_text
from axode.formats.mjcf.mjcf_text import Folder, read_model_text
from axode.formats.xml.xml_tree import Element
from axode.mechanism.checks import faults as all_faults
from axode.mechanism.files.wheel_proposals import Geometry
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.size import require_readable

HOME = "home"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I | re.A)


def mechanism_from_mjcf(
    text: str,
    source: str,
    path: Path,
    folder: Path | None = None,
    *,
    strict: bool = False,
    remarks: list[tuple[int, str, str]] | None = None,
    geometry: Geometry | None = None,
) -> Mechanism:
    """Read the mechanism that the text of an MJCF file describes.

    Args:
        text: What the file holds.
        source: What messages call the file.
        path: Where it is: includes and meshes are relative to its folder.
        folder: Outside of which nothing is opened; the folder of the file unless given.
        strict: Whether to refuse what can be read only with a warning.
        remarks: Line, message and remedy of what was found when the file was decoded.
        geometry: Where to put the geoms that touch others.

    Raises:
        FileError: if the text is not MJCF, or MuJoCo refuses it.
        MechanismError: listing every fault with its line.
        NotApplicable: if MuJoCo is not installed, or there are too many bodies.

    Warns:
        FileDeviationWarning: once, listing everything that departs from physics, and what was done.
        OmissionWarning: once, listing everything that a mechanism cannot hold.
    """
    findings = MjcfFindings()
    for line, message, done in remarks or ():
        findings.note(Element("mujoco", {}, line), message, done)
    home = Folder(path.parent, path.parent if folder is None else folder)
    model_text = read_model_text(text, source, home, findings)
    compiled = compile_text(model_text, source, home, findings)
    require_readable(source, _children(compiled))
    with np.errstate(all="ignore"):  # what is not finite then is a fault that the checks report
        mechanism = _build(compiled, path.stem, Geometry() if geometry is None else geometry)
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


def _children(compiled: CompiledModel) -> list[tuple[str, str]]:
    """Body and type of every joint."""
    return [(str(body), "") for body in compiled.model.jnt_bodyid]


def _build(compiled: CompiledModel, stem: str, geometry: Geometry) -> Mechanism:
    model, findings = compiled.model, compiled.findings
    name = compiled.text.root.attributes.get("model") or stem
    gravity = (0.0, 0.0, 0.0)
    if not compiled.disabled("GRAVITY"):
        gravity = tuple(float(x) for x in model.opt.gravity)  # type: ignore[assignment]
    mechanism = Mechanism(name, gravity=gravity)
    if model.nbody < 2:
        message = "has no body; if this is a part of a model, load the file that includes it"
        findings.report(compiled.text.root, message, name=name)
        return mechanism
    bodies = BodyReader(compiled, mechanism)
    bodies.add_all()
    constraints = ConstraintReader(compiled, mechanism, bodies)
    constraints.add_equalities()
    constraints.add_tendons()
    ActuatorReader(compiled, mechanism, bodies, constraints).add_all()
    if model.opt.density or model.opt.viscosity:
        findings.leave_out(FLUID, compiled.text.root.first("option") or compiled.text.root)
    qpos = _home(compiled)
    bodies.set_home(qpos)
    constraints.set_home()
    add_geoms(geometry, compiled, bodies)
    _keep(all_faults(mechanism), compiled)
    return mechanism


def _home(compiled: CompiledModel) -> np.ndarray:
    """MuJoCo's coordinates in the keyframe `home`, else in its reference configuration."""
    usual = np.array(compiled.model.qpos0)
    chosen: np.ndarray | None = None
    for key in compiled.text.keys:
        words = key.attributes.get("qpos", "").split()
        if key.attributes.get("name") != HOME or chosen is not None:
            compiled.findings.leave_out(KEYS, key)
        elif words and (len(words) != len(usual) or not all(map(_NUMBER.fullmatch, words))):
            message = f"expected {len(usual)} numbers, got {len(words)} words"
            compiled.findings.note(key, message, "ignored", "qpos")
        elif words:
            chosen = np.array([float(word) for word in words])
            others = [name for name in ("qvel", "act", "ctrl") if key.attributes.get(name)]
            if others:
                compiled.findings.leave_out(KEYS, key, f"({', '.join(others)})")
    return usual if chosen is None or not np.isfinite(chosen).all() else chosen


def _keep(found: list[Fault], compiled: CompiledModel) -> None:
    """Keep what every description is checked for, with lines of elements of these names."""
    lines: dict[str, Element] = {}
    for element in reversed(compiled.text.lines):
        lines[element.attributes.get("name", "")] = element
    for fault in found:
        element = lines.get(fault.name, compiled.text.root)
        line = element.line if fault.name in lines else None
        kept = Fault(fault.kind, fault.name, fault.field, fault.message, line)
        compiled.findings.faults.append(kept)
