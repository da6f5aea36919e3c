"""Mechanisms from MJCF files, the models of MuJoCo.

MuJoCo's own compiler resolves classes, frames and inertias of geoms; this reader makes bodies,
joints, loops, couplings, springs, dampers and motors of its result. What a mechanism cannot hold
is listed, element by element.
"""

from __future__ import annotations

import numpy as np

from axode.formats.mjcf.mjcf_bodies import BodyReader, add_geoms
from axode.formats.mjcf.mjcf_constraints import ActuatorReader, ConstraintReader
from axode.formats.mjcf.mjcf_model import CompiledModel, compile_text
from axode.formats.mjcf.mjcf_text import KEYS, read_model_text
from axode.formats.xml.findings import FLUID, Findings, numbers_in
from axode.formats.xml.reading import XmlFile
from axode.mechanism.checks import faults as all_faults
from axode.mechanism.checks import require_readable
from axode.mechanism.mechanism import Mechanism

HOME = "home"


def mechanism_from_mjcf(file: XmlFile) -> Mechanism:
    """Read the mechanism that an MJCF file describes.

    Raises:
        FileError: if the text is not MJCF, or MuJoCo refuses it.
        MechanismError: listing every fault with its line.
        NotApplicable: if MuJoCo is not installed, or there are too many bodies.

    Warns:
        FileDeviationWarning: once, listing everything that departs from physics, and what was done.
        OmissionWarning: once, listing everything that a mechanism cannot hold.
    """
    source, findings = file.source, Findings()
    findings.note_remarks("mujoco", file.remarks)
    text = read_model_text(file, findings)
    compiled = compile_text(text, file, findings)
    require_readable(source, [(str(body), "") for body in compiled.model.jnt_bodyid])
    with np.errstate(all="ignore"):  # what is not finite then is a fault that the checks report
        mechanism = _build(compiled, file)
    findings.conclude(source, strict=file.strict)
    findings.warn_left_out(source)
    return mechanism


def _build(compiled: CompiledModel, file: XmlFile) -> Mechanism:
    model, findings = compiled.model, compiled.findings
    root = compiled.text.root
    name = root.attributes.get("model") or file.path.stem
    gravity = (0.0, 0.0, 0.0)
    if not compiled.disabled("GRAVITY"):
        gravity = tuple(float(x) for x in model.opt.gravity)  # type: ignore[assignment]
    mechanism = Mechanism(name, gravity=gravity)
    if model.nbody < 2:
        message = "has no body; if this is a part of a model, load the file that includes it"
        findings.of(root, name).report(root, "", message)
        return mechanism
    bodies = BodyReader(compiled, mechanism)
    bodies.add_all()
    constraints = ConstraintReader(compiled, mechanism, bodies)
    constraints.add_equalities()
    constraints.add_tendons()
    ActuatorReader(compiled, mechanism, bodies, constraints).add_all()
    if model.opt.density or model.opt.viscosity:
        findings.leave_out(FLUID, root.first("option") or root)
    qpos = _home(compiled)
    bodies.set_home(qpos)
    constraints.set_home()
    add_geoms(file.geometry, compiled, bodies.bodies)
    lines = {e.attributes.get("name", ""): e.line for e in reversed(compiled.text.lines)}
    findings.keep(all_faults(mechanism), lambda fault: lines.get(fault.name))
    return mechanism


def _home(compiled: CompiledModel) -> np.ndarray:
    """MuJoCo's coordinates in the keyframe `home`, else in its reference configuration."""
    usual = np.array(compiled.model.qpos0)
    chosen: np.ndarray | None = None
    for key in compiled.text.keys:
        words = key.attributes.get("qpos", "").split()
        if key.attributes.get("name") != HOME or chosen is not None:
            compiled.findings.leave_out(KEYS, key)
        elif (found := numbers_in(words)) and len(found) == len(usual) and np.isfinite(found).all():
            chosen = np.array(found)
            others = [name for name in ("qvel", "act", "ctrl") if key.attributes.get(name)]
            if others:
                compiled.findings.leave_out(KEYS, key, f"({', '.join(others)})")
        elif words:
            message = f"expected {len(usual)} numbers, got {len(words)} words"
            compiled.findings.of(key).note(key, "qpos", message, "ignored")
    return usual if chosen is None else chosen
