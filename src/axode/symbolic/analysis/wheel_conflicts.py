"""Conflicting wheels: vehicles that their own wheels keep from turning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import casadi as ca
import numpy as np

from axode.mechanism.elements.wheels import Contact
from axode.numerics.rank import null_space
from axode.symbolic.algebra.frames import ROOT, symbolic_vector
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.system import System

TURNS = 1e-7  # yaw rate of a unit motion below which nothing turns
FREE = 1e-9  # singular value, relative to the largest, below which a row says nothing new


def turning_conflicts(system: System) -> Iterator[str]:
    """Describe every vehicle whose rigid lateral rows keep it from turning, with the remedy."""
    groups: dict[int, list[Contact]] = {}
    for contact in system.mechanism.contacts:
        if "lateral" in contact.wheel.rolling_rows and contact.wheel.has_axis:
            groups.setdefault(_carrier(system, contact), []).append(contact)
    for carrier, contacts in groups.items():
        if carrier == ROOT or len(contacts) < 2 or _turns(system, carrier, contacts[0], set()):
            continue
        everyone = [contact for group in groups.values() for contact in group]
        if not _turns(system, carrier, contacts[0], _laterals(everyone)):
            continue  # something else keeps it from turning
        others = [contact for contact in everyone if contact not in contacts]
        alone = not _turns(system, carrier, contacts[0], _laterals(others))
        yield _explanation(system, carrier, contacts if alone else everyone, alone=alone)


def _laterals(contacts: list[Contact]) -> set[str]:
    return {f"{contact.name}.lateral" for contact in contacts}


def _carrier(system: System, contact: Contact) -> int:
    """The link a wheel is mounted on."""
    link = system.tree.body_link[contact.body]
    if link != ROOT and system.tree.links[link].turns_only:
        return system.tree.links[link].parent
    return link


def _turns(system: System, link: int, contact: Contact, without: set[str]) -> bool:
    """Return whether a link can turn about the ground's normal once some rows are taken away."""
    yaw = _yaw_row(system, link, contact)
    loose = system.report.loose  # left out as an effect of rounding: they constrain nothing
    rows = [r for r, row in enumerate(system.rows) if row.name not in without and r not in loose]
    for q, A in zip(system.samples, system.report.all_matrices, strict=True):
        free = null_space(A[rows], FREE)
        if free.shape[1] and np.abs(yaw(q) @ free).max() > TURNS:
            return True
    return False


def _yaw_row(system: System, link: int, contact: Contact) -> Callable[[np.ndarray], np.ndarray]:
    """Yaw rate of a link about the ground's normal, as a row on all speeds."""
    tree = system.tree
    w, _ = tree.velocities(tree.v)
    ground = tree.body_link[contact.plane.on]
    pose = tree.body_pose[contact.plane.on]
    normal = tree.carry(pose.R @ symbolic_vector(contact.plane.normal, tree.values), ground, link)
    relative = w[link] - (tree.carry(w[ground], ground, link) if ground != ROOT else SX.zeros(3))
    row = ca.jacobian(ca.dot(normal, relative), tree.v)
    function = ca.Function("yaw", [tree.q, tree.t, tree.parameters], [ca.densify(row)])
    return lambda q: np.array(function(q, 0.0, system.defaults)).ravel()


def _explanation(system: System, carrier: int, contacts: list[Contact], *, alone: bool) -> str:
    wheels = ", ".join(contact.name for contact in contacts)
    bodies = [body for body, link in system.tree.body_link.items() if link == carrier]
    if alone:
        why, remedy = "their axles do not meet", "steer it, or use casters or omni wheels"
    else:
        why = "their axles meet at special angles only"
        remedy = "or couple what steers so that they always meet (a linkage, or prescribed angles)"
    return (
        f"wheels {wheels} may not slide sideways and {why}, so '{bodies[0]}' cannot turn; let one "
        f"axle slide with lateral='free' (skid steering), {remedy}"
    )
