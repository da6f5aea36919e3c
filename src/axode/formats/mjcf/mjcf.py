"""Mechanisms from MJCF files, the models of MuJoCo.

MuJoCo's own compiler resolves classes, frames and inertias of geoms; this reader makes bodies,
joints, loops, couplings, springs, dampers and motors of its result. What a mechanism cannot hold
is listed, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from axode.formats.mjcf.mjcf_bodies import FREE, SPEEDS, BodyReader, add_geoms, is_given
from axode.formats.mjcf.mjcf_model import CompiledModel, compile_text
from axode.formats.mjcf.mjcf_text import (
    ACTUATORS,
    ARMATURE,
    DAMPERS,
    EQUALITIES,
    FORCE_LIMITS,
    KEYS,
    LAWS,
    SPRINGS,
    TENDONS,
    read_model_text,
)
from axode.formats.xml.reading import (
    DRY_FRICTION,
    FLUID,
    LIMITS,
    Findings,
    XmlFile,
    cleaned,
    numbers_in,
)
from axode.formats.xml.xml_tree import Element
from axode.mechanism.checks import faults as all_faults
from axode.mechanism.checks import require_readable
from axode.mechanism.elements.bodies import GROUND, Inertia
from axode.mechanism.elements.joints import Fixed, Prismatic, Spherical
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import Coordinate, Scalar, coordinates_in

# constraints --------------------------------------------------------------------------------------


@dataclass
class ConstraintReader:
    """Adds loops, couplings and tendons to a mechanism whose bodies are there.

    Attributes:
        slides: The joints that stand for fixed tendons, by the tendon's number.
    """

    compiled: CompiledModel
    mechanism: Mechanism
    bodies: BodyReader
    slides: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = self.compiled.model
        self.findings = self.compiled.findings
        self.kinds = self.compiled.mujoco.mjtEq

    # equality constraints ------------------------------------------------------------------------

    def add_equalities(self) -> None:
        """Add every equality constraint that acts and is linear."""
        off = self.compiled.disabled("EQUALITY", "CONSTRAINT")
        for number, part in enumerate(self.compiled.spec.equalities):
            element = self.compiled.element(part)
            kind = int(self.model.eq_type[number])
            name = part.name or "_".join(n for n in (part.name1, part.name2) if n)
            if off or not self.model.eq_active0[number]:
                self.findings.leave_out(EQUALITIES, element, "(switched off)", name)
            elif kind in (int(self.kinds.mjEQ_CONNECT), int(self.kinds.mjEQ_WELD)):
                self._add_loop(number, kind, part.name, element)
            elif kind in (int(self.kinds.mjEQ_JOINT), int(self.kinds.mjEQ_TENDON)):
                self._add_coupling(number, kind, part.name, element)
            else:
                self.findings.leave_out(EQUALITIES, element, name=name)

    def _add_loop(self, number: int, kind: int, given: str, element: Element) -> None:
        """Close a loop: two points that stay together, or two frames."""
        model = self.model
        data = np.array(model.eq_data[number])
        ends = [int(model.eq_obj1id[number]), int(model.eq_obj2id[number])]
        weld = kind == int(self.kinds.mjEQ_WELD)
        points = [data[3:6], data[0:3]] if weld else [data[0:3], data[3:6]]
        turns = [data[6:10], np.array([1.0, 0.0, 0.0, 0.0])]
        if int(model.eq_objtype[number]) == int(self.compiled.mujoco.mjtObj.mjOBJ_SITE):
            points = [np.array(model.site_pos[site]) for site in ends]
            turns = [np.array(model.site_quat[site]) for site in ends]
            ends = [int(model.site_bodyid[site]) for site in ends]
        first, second = (self.bodies.bodies[end] for end in ends)
        if first == second:
            self.findings.leave_out(EQUALITIES, element, "(of a body with itself)", given)
            return
        instead = f"{first}_{second}"
        name = self.bodies.name("joint", given, instead, element)
        rotations: dict[str, Any] = {}
        rigid = weld and data[10] != 0.0
        if rigid:
            unit = [turn / (np.linalg.norm(turn) or 1.0) for turn in turns]
            rotations = {"rotation": cleaned(unit[0]), "child_rotation": cleaned(unit[1])}
        self.mechanism.add_loop(
            name,
            Fixed() if rigid else Spherical(),
            parent=first,
            child=second,
            at=cleaned(points[0]),
            child_at=cleaned(points[1]),
            **rotations,
        )

    def _add_coupling(self, number: int, kind: int, given: str, element: Element) -> None:
        """Couple joints, or the lengths of fixed tendons: first is a polynomial of second."""
        model = self.model
        a0, a1, *higher = (float(x) for x in model.eq_data[number][:5])
        ends = [int(model.eq_obj1id[number]), int(model.eq_obj2id[number])]
        read = self._joint_term if kind == int(self.kinds.mjEQ_JOINT) else self._tendon_terms
        found = [read(end) if end >= 0 else ({}, 0.0) for end in ends]
        if any(part is None for part in found):
            self.findings.leave_out(EQUALITIES, element, "(of a tendon along a path)", given)
            return
        (terms, offset), (others, zero) = found  # type: ignore[misc]
        total = dict(terms)
        for joint, coefficient in others.items():
            total[joint] = total.get(joint, 0.0) - a1 * coefficient
        total = {joint: coefficient for joint, coefficient in total.items() if coefficient}
        moved: Scalar = -zero
        for joint, coefficient in others.items():
            moved = moved + coefficient * Coordinate(joint)
        function: Scalar = 0.0
        for power, a in enumerate(higher, start=2):
            function = function + a * moved**power if a and others else function
        constant = a0 + offset - (a1 * zero if others else 0.0)
        self._hold(given, element, total, constant, function)

    def _hold(
        self, given: str, element: Element, terms: dict[str, float], offset: float, function: Scalar
    ) -> None:
        if not terms:
            self.findings.leave_out(EQUALITIES, element, "(it relates nothing)", given)
        elif len(terms) == 1 and not coordinates_in(function):
            ((joint, coefficient),) = terms.items()
            self.mechanism.prescribe(joint, offset / coefficient)
        else:
            name = self.bodies.name("coupling", given, "_".join(terms), element)
            self.mechanism.add_coupling(name, terms, offset=offset, function=function)

    def _joint_term(self, joint: int) -> tuple[dict[str, float], float]:
        """A joint with its value in MuJoCo's reference configuration."""
        value = float(self.model.qpos0[self.model.jnt_qposadr[joint]])
        return {self.bodies.joints[joint]: 1.0}, value

    def _tendon_terms(self, tendon: int) -> tuple[dict[str, float], float] | None:
        """Coefficients of a fixed tendon and its length in that configuration."""
        terms = self.terms(tendon)
        if terms is None:
            return None
        named: dict[str, float] = {}
        for joint, coefficient in terms:
            name = self.bodies.joints[joint]
            named[name] = named.get(name, 0.0) + coefficient
        return named, float(self.model.tendon_length0[tendon])

    # tendons -------------------------------------------------------------------------------------

    def terms(self, tendon: int) -> list[tuple[int, float]] | None:
        """Joints and coefficients of a fixed tendon; None for one along a path."""
        model = self.model
        start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        wraps = range(start, start + count)
        joint = int(self.compiled.mujoco.mjtWrap.mjWRAP_JOINT)
        if any(int(model.wrap_type[k]) != joint for k in wraps):
            return None
        return [(int(model.wrap_objid[k]), float(model.wrap_prm[k])) for k in wraps]

    def name_of(self, tendon: int) -> str:
        """The tendon's name in messages."""
        return self.compiled.spec.tendons[tendon].name or f"tendon{tendon}"

    def add_tendons(self) -> None:
        """Add springs and dampers of tendons, and note what they have besides."""
        model = self.model
        for number, part in enumerate(self.compiled.spec.tendons):
            element, name = self.compiled.element(part), self.name_of(number)
            if model.tendon_limited[number]:
                self.findings.leave_out(LIMITS, element, name=name)
            if is_given(model, "tendon_actfrclimited", number):
                self.findings.leave_out(FORCE_LIMITS, element, name=name)
            if model.tendon_frictionloss[number] > 0:
                self.findings.leave_out(DRY_FRICTION, element, name=name)
            if is_given(model, "tendon_dampingpoly", number):
                self.findings.leave_out(DAMPERS, element, name=name)
            curved = is_given(model, "tendon_stiffnesspoly", number)
            curved = curved or is_given(model, "tendon_springyield", number)
            no_springs = self.compiled.disabled("SPRING", "PASSIVE")
            no_dampers = self.compiled.disabled("DAMPER", "PASSIVE")
            stiffness = 0.0 if no_springs else float(model.tendon_stiffness[number])
            damping = 0.0 if no_dampers else float(model.tendon_damping[number])
            damping = self.bodies.not_negative(damping, element, "damping", name)
            stiffness = self.bodies.not_negative(stiffness, element, "stiffness", name)
            low, high = (float(x) for x in model.tendon_lengthspring[number])
            if curved or (stiffness > 0 and low != high):
                self.findings.leave_out(SPRINGS, element, name=name)
                stiffness = 0.0
            if self.terms(number) is None:
                self._add_path(number, element, stiffness, low, damping)
                continue
            if stiffness > 0:
                slide = self.slide(number)
                spring = self.bodies.names.free("spring", f"{slide}.spring")
                self.mechanism.add_spring(spring, slide, stiffness=stiffness, rest=low)
            if damping > 0:
                slide = self.slide(number)
                damper = self.bodies.names.free("spring", slide)
                self.mechanism.add_damper(damper, slide, coefficient=damping)

    def slide(self, tendon: int) -> str:
        """The joint that stands for a fixed tendon; it is made when something first needs it."""
        if tendon not in self.slides:
            element = self.compiled.element(self.compiled.spec.tendons[tendon])
            given = self.name_of(tendon)
            name = self.bodies.name("joint", given, given, element)
            body = self.bodies.name("body", given, given, element)
            self.mechanism.add_body(body, mass=0.0, inertia=Inertia.point())
            self.mechanism.add_joint(name, Prismatic("x"), parent=GROUND, child=body)
            terms, _ = self._tendon_terms(tendon) or ({}, 0.0)
            coupling = self.bodies.name("coupling", given, given, element)
            together = {name: 1.0, **{joint: -c for joint, c in terms.items() if c}}
            self.mechanism.add_coupling(coupling, together)
            self.slides[tendon] = name
        return self.slides[tendon]

    def set_home(self) -> None:
        """Set the slides of tendons to the lengths that the home configuration gives them."""
        home = self.mechanism.home_coordinates
        for tendon, slide in self.slides.items():
            terms, _ = self._tendon_terms(tendon) or ({}, 0.0)
            length = sum(c * home.get(joint, 0.0) for joint, c in terms.items())
            if length:
                self.mechanism.set_home({slide: length})

    def _add_path(
        self, number: int, element: Element, stiffness: float, rest: float, damping: float
    ) -> None:
        """Add a spring between two sites; any other path is left out."""
        model, name = self.model, self.name_of(number)
        start, count = int(model.tendon_adr[number]), int(model.tendon_num[number])
        site = int(self.compiled.mujoco.mjtWrap.mjWRAP_SITE)
        wraps = list(range(start, start + count))
        if len(wraps) != 2 or any(int(model.wrap_type[k]) != site for k in wraps):
            self.findings.leave_out(TENDONS, element, name=name)
            return
        if not (stiffness > 0 or damping > 0):
            return
        ends = [int(model.wrap_objid[k]) for k in wraps]
        first, second = (self.bodies.bodies[int(model.site_bodyid[s])] for s in ends)
        if first == second:
            return
        self.mechanism.add_spring(
            self.bodies.name("spring", name, name, element),
            stiffness=stiffness,
            rest=rest,
            damping=damping,
            parent=first,
            child=second,
            at=cleaned(model.site_pos[ends[0]]),
            child_at=cleaned(model.site_pos[ends[1]]),
        )


# actuators ----------------------------------------------------------------------------------------


@dataclass
class _Motor:
    """A motor to be added, and the inertia that its joint side has."""

    name: str
    coordinate: str
    gear: float
    limit: float | None
    armature: float = 0.0


@dataclass
class ActuatorReader:
    """Adds motors to a mechanism whose joints and tendons are there."""

    compiled: CompiledModel
    mechanism: Mechanism
    bodies: BodyReader
    constraints: ConstraintReader
    motors: list[_Motor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = self.compiled.model
        self.findings = self.compiled.findings

    def add_all(self) -> None:
        """Add a motor for every actuator of one joint or fixed tendon, and armature of joints."""
        for number, part in enumerate(self.compiled.spec.actuators):
            self._read(number, part.name, self.compiled.element(part))
        self._add_armature()
        for motor in self.motors:
            self.mechanism.add_motor(
                motor.name,
                motor.coordinate,
                limit=motor.limit,
                gear=motor.gear,
                rotor_inertia=motor.armature / motor.gear / motor.gear,
            )

    def _read(self, number: int, given: str, element: Element) -> None:
        model = self.model
        gear = np.array(model.actuator_gear[number])
        driven = self._driven(number, gear)
        name = given or (driven[0] if driven else "")
        group = int(model.actuator_group[number])
        of_group = 0 <= group < 31 and int(model.opt.disableactuator) >> group & 1
        if self.compiled.disabled("ACTUATION") or of_group:
            self.findings.leave_out(ACTUATORS, element, "(switched off)", name)
            return
        if driven is None:
            self.findings.leave_out(ACTUATORS, element, name=name)
            return
        coordinate, ratio = driven
        new = self.bodies.name("motor", given, coordinate, element)
        limit = self._limit(number, element, new)
        self._note_law(number, element, new)
        motor = _Motor(new, coordinate, ratio, limit)
        motor.armature = ratio * ratio * _newer(model, "actuator_armature", number)
        self.motors.append(motor)
        damping = ratio * ratio * _newer(model, "actuator_damping", number)
        if damping > 0:
            damper = self.bodies.names.free("spring", f"{new}.damper")
            self.mechanism.add_damper(damper, coordinate, coefficient=damping)
        if np.any(getattr(model, "actuator_dampingpoly", np.zeros((number + 1, 1)))[number]):
            self.findings.leave_out(DAMPERS, element, name=new)

    def _driven(self, number: int, gear: np.ndarray) -> tuple[str, float] | None:
        """The coordinate or speed that an actuator drives, and its gear; None for any other."""
        model, kinds = self.model, self.compiled.mujoco.mjtTrn
        transmission = int(model.actuator_trntype[number])
        target = int(model.actuator_trnid[number][0])
        joints = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
        if transmission in joints and target >= 0:
            name, kind = self.bodies.joints[target], int(model.jnt_type[target])
            if kind not in SPEEDS:
                return (name, float(gear[0])) if gear[0] else None
            # the moments of a free joint come after its forces, which are along the world's axes
            moments = gear[3:6] if kind == FREE else gear[:3]
            others = gear[:3] if kind == FREE else gear[3:]
            axes = np.flatnonzero(moments)
            if len(axes) != 1 or transmission != joints[0] or (kind == FREE and others.any()):
                return None
            return f"{name}.{SPEEDS[kind][axes[0]]}", float(moments[axes[0]])
        fixed = transmission == int(kinds.mjTRN_TENDON) and self.constraints.terms(target)
        if fixed and gear[0] and any(coefficient for _, coefficient in fixed):
            return self.constraints.slide(target), float(gear[0])
        return None

    def _limit(self, number: int, element: Element, name: str) -> float | None:
        """The largest force before the gear; None without one that acts both ways alike."""
        model, limits = self.model, []
        kinds = self.compiled.mujoco.mjtGain, self.compiled.mujoco.mjtBias
        gain = float(model.actuator_gainprm[number][0])
        plain = (
            int(model.actuator_gaintype[number]) == int(kinds[0].mjGAIN_FIXED)
            and int(model.actuator_biastype[number]) == int(kinds[1].mjBIAS_NONE)
            and int(model.actuator_dyntype[number]) == 0
        )
        ranges = []
        if model.actuator_forcelimited[number]:
            ranges.append(np.array(model.actuator_forcerange[number]))
        if plain and model.actuator_ctrllimited[number]:
            ranges.append(abs(gain) * np.array(model.actuator_ctrlrange[number]))
        for low, high in ranges:
            if high > 0 and low == -high:
                limits.append(float(high))
            else:
                self.findings.leave_out(FORCE_LIMITS, element, f"({low:g} ... {high:g})", name)
        return min(limits, default=None)

    def _note_law(self, number: int, element: Element, name: str) -> None:
        """Note what makes the force of an actuator differ from its control."""
        model = self.model
        gain = [float(x) for x in model.actuator_gainprm[number]]
        bias = [float(x) for x in model.actuator_biasprm[number]]
        kinds = [
            int(getattr(model, f"actuator_{what}type")[number]) for what in ("gain", "bias", "dyn")
        ]
        delay = _newer(model, "actuator_delay", number)
        if not any(kinds) and gain[0] == 1.0 and not delay:
            return
        numbers = {"gain": gain[:3], "bias": bias[:3]}
        listed = [f"{what} {' '.join(f'{x:g}' for x in v)}" for what, v in numbers.items()]
        listed += [f"delay {delay:g}"] if delay else []
        self.findings.leave_out(LAWS, element, f"({', '.join(listed)})", name)

    # armature ------------------------------------------------------------------------------------

    def _add_armature(self) -> None:
        """Give joints and the slides of fixed tendons the inertia that they have by themselves."""
        model, spec = self.model, self.compiled.spec
        for number, part in enumerate(spec.joints):
            kind, name = int(model.jnt_type[number]), self.bodies.joints[number]
            armature = float(model.dof_armature[int(model.jnt_dofadr[number])])
            element = self.compiled.element(part)
            armature = self.bodies.not_negative(armature, element, "armature", name)
            if armature > 0 and kind == FREE:
                self.findings.leave_out(ARMATURE, element, name=name)
            elif armature > 0:
                self._give(name, armature)
        for number, part in enumerate(spec.tendons):
            element, name = self.compiled.element(part), self.constraints.name_of(number)
            armature = _newer(model, "tendon_armature", number)
            armature = self.bodies.not_negative(armature, element, "armature", name)
            if armature > 0 and self.constraints.terms(number) is None:
                self.findings.leave_out(ARMATURE, element, name=name)
            elif armature > 0:
                self._give(self.constraints.slide(number), armature)

    def _give(self, joint: str, armature: float) -> None:
        joints = self.mechanism.connections
        place = next(k for k, connection in enumerate(joints) if connection.name == joint)
        joints[place] = replace(joints[place], armature=armature)


def _newer(model: Any, field: str, number: int) -> float:
    """A number that only newer versions of MuJoCo have, else zero."""
    values = getattr(model, field, None)
    return 0.0 if values is None else float(np.ravel(values[number])[0])


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
