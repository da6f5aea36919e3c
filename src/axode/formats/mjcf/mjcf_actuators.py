"""Actuators and armature of an MJCF file, as motors with gears and inertia of joints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from axode.formats.mjcf.mjcf_bodies import FREE, SPEEDS, BodyReader
from axode.formats.mjcf.mjcf_constraints import ConstraintReader
from axode.formats.mjcf.mjcf_model import CompiledModel
from axode.formats.mjcf.mjcf_text import ACTUATORS, ARMATURE, DAMPERS, FORCE_LIMITS, LAWS
from axode.formats.xml.xml_tree import Element
from axode.mechanism.mechanism import Mechanism


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
