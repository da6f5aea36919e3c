"""Energies and powers body by body and spring by spring, from twists and poses alone."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.mechanism.topology import coordinate_of, speed_meanings
from axode.mechanism.values.expressions import numeric
from kinematics_by_hand import numbers, poses_by_hand
from laws.cases import ROUNDING, SOLVED, agree, case_of
from random_mechanisms import MECHANISMS


class Seen:
    """A state as seen from outside: poses and twists of the bodies, coordinates and speeds."""

    def __init__(self, case, state):
        e, bot = case.equations, case.mechanism
        self.bot = bot
        self.q = dict(zip(e.coordinates, state.q, strict=True))
        self.v = dict(zip(e.speeds, state.v, strict=True))
        self.u = dict(zip(e.inputs, state.u, strict=True))
        self.poses = poses_by_hand(bot, self.q)
        self.twists = {
            n: x.ravel() for n, x in zip(e.twists, case.at(state, *e.twists.values()), strict=True)
        }
        self.com = {b.name: numbers(b.com) for b in bot.bodies}

    def point(self, body, x):
        return (self.poses[body] @ [*numbers(x), 1.0])[:3]

    def velocity(self, body, x):
        if body == "ground":
            return np.zeros(3)
        w, c = self.twists[body][:3], self.twists[body][3:]
        return c + np.cross(w, self.point(body, x) - self.point(body, self.com[body]))

    def speed(self, name):
        return self.v[speed_meanings(self.bot)[name]]

    def stretch(self, strut):
        """Length of a strut and its rate."""
        apart = self.point(strut.child, strut.child_at) - self.point(strut.parent, strut.at)
        length = np.linalg.norm(apart)
        rate = self.velocity(strut.child, strut.child_at) - self.velocity(strut.parent, strut.at)
        return length, rate @ apart / length


@pytest.mark.parametrize("name", MECHANISMS)
def test_kinetic_energy_is_that_of_bodies_and_rotors(name):
    case = case_of(name)
    for state in case.states:
        seen, energy = Seen(case, state), 0.0
        for body in case.mechanism.bodies:
            xx, yy, zz, xy, xz, yz = (numeric(x) for x in body.inertia.entries)
            R = seen.poses[body.name][:3, :3]
            w = R.T @ seen.twists[body.name][:3]
            u = seen.twists[body.name][3:]
            energy += numeric(body.mass) * u @ u / 2
            energy += w @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ w / 2
        for drive in case.mechanism.drives:
            rotor = numeric(drive.motor.gear) * seen.speed(drive.coordinate)
            energy += numeric(drive.motor.rotor_inertia) * rotor**2 / 2
        agree(case.vector(state, case.equations.energy[0]), [energy], ROUNDING, "kinetic energy")


@pytest.mark.parametrize("name", MECHANISMS)
def test_potential_energy_is_that_of_weights_and_springs(name):
    """But for a constant, which the difference of two states does not see."""
    case = case_of(name)
    mine, right = [], []
    for state in case.states:
        seen, energy = Seen(case, state), 0.0
        for body in case.mechanism.bodies:
            energy -= (
                numeric(body.mass)
                * numbers(case.mechanism.gravity)
                @ seen.point(body.name, body.com)
            )
        for spring in case.mechanism.springs:
            stretch = seen.q[coordinate_of(case.mechanism, spring.coordinate)] - numeric(
                spring.rest
            )
            energy += numeric(spring.stiffness) * stretch**2 / 2
        for strut in case.mechanism.struts:
            stretch = seen.stretch(strut)[0] - numeric(strut.rest)
            energy += numeric(strut.stiffness) * stretch**2 / 2
        mine.append(case.vector(state, case.equations.energy[1])[0])
        right.append(energy)
    scale = max(1.0, *np.abs(right))
    assert abs((mine[1] - mine[0]) - (right[1] - right[0])) <= ROUNDING * scale


@pytest.mark.parametrize("name", MECHANISMS)
def test_dampers_take_what_their_speeds_say(name):
    case = case_of(name)
    power = ca.dot(case.system.forces.dissipative, case.tree.v)
    for state in case.states:
        seen = Seen(case, state)
        taken = sum(
            numeric(d.coefficient) * seen.speed(d.coordinate) ** 2 for d in case.mechanism.dampers
        )
        taken += sum(numeric(s.damping) * seen.stretch(s)[1] ** 2 for s in case.mechanism.struts)
        agree(case.vector(state, power), [-taken], ROUNDING, "power of dampers")


@pytest.mark.parametrize("name", MECHANISMS)
def test_inputs_give_what_their_points_and_joints_say(name):
    """Motors work on joint speeds, wrenches on the point and the body they act on."""
    case = case_of(name)
    e = case.equations
    power = ca.dot(case.system.forces.B @ e.u, case.tree.v)
    for state in case.states:
        seen, given = Seen(case, state), 0.0
        for k, drive in enumerate(case.mechanism.drives):
            given += numeric(drive.motor.gear) * state.u[k] * seen.speed(drive.coordinate)
        for wrench in case.mechanism.wrenches:
            values = np.array([seen.u[n] for n in wrench.input_names])
            R = seen.poses[wrench.body][:3, :3] if wrench.frame == "body" else np.eye(3)
            given += (R @ values[:3]) @ seen.twists[wrench.body][:3]
            given += (R @ values[3:]) @ seen.velocity(wrench.body, wrench.at)
        agree(case.vector(state, power), [given], ROUNDING, "power of inputs")


def contact_directions(seen, contact):
    n = seen.poses[contact.plane.on][:3, :3] @ numbers(contact.plane.normal)
    axis = seen.poses[contact.body][:3, :3] @ numbers(contact.axis)
    heading = np.cross(axis, n) / np.linalg.norm(np.cross(axis, n))
    return np.column_stack([heading, np.cross(n, heading), n])


def momentum_rate(case, state):
    """Rate of linear momentum of the whole, less weights."""
    e = case.equations
    total = np.zeros(3)
    for body in case.mechanism.bodies:
        centre = e.twists[body.name][3:]
        rate = case.vector(state, case.along(centre, e.forward_dynamics))
        total += numeric(body.mass) * (rate - numbers(case.mechanism.gravity))
    return total


@pytest.mark.parametrize("name", ["rolling_disk", "mecanum_base", "car", "snakeboard"])
def test_ground_forces_move_the_whole(name):
    """Longitudinal, lateral and normal forces add up to what momentum needs.

    Where the base or an undetermined row takes a component, only the others are compared.
    """
    case = case_of(name)
    model = case.equations.compile("interpreter")
    for state in case.states:
        seen, ground = Seen(case, state), np.zeros(3)
        forces = model.contact_forces(state.q, state.nu, state.u)
        for contact, force in zip(case.mechanism.contacts, forces, strict=True):
            ground += contact_directions(seen, contact) @ np.nan_to_num(force)
        outside = sum(
            (
                np.array([seen.u[f"{w.name}.f{a}"] for a in "xyz"]) @ seen.poses[w.body][:3, :3].T
                for w in case.mechanism.wrenches
            ),
            np.zeros(3),
        )
        need = momentum_rate(case, state) - outside
        if name == "car":  # its axle's lateral and its wheels' normal forces are shared
            n = contact_directions(seen, case.mechanism.contacts[0])
            agree(n[:, 0] @ ground, n[:, 0] @ need, SOLVED, "along the heading")
        elif name == "rolling_disk":
            agree(ground, need, SOLVED, "ground force")
        else:  # a planar base carries the weight
            agree(ground[:2], need[:2], SOLVED, "ground force in the plane")


def test_a_spring_without_rest_length_is_smooth_where_its_ends_meet():
    machine = ax.Mechanism("balance")
    body = machine.add_body("body", mass=2.0, inertia=(0.1, 0.1, 0.1))
    machine.add_joint("base", ax.Planar(), parent=machine.ground, child=body)
    machine.add_spring("spring", parent=machine.ground, child=body, stiffness=50.0)
    model = machine.derive().compile("interpreter")
    agree(model.forward_dynamics([0, 0, 0], [0, 0, 0]), np.zeros(3), ROUNDING, "where they meet")
    agree(model.forward_dynamics([0.1, 0.2, 0], [0, 0, 0]), [-2.5, -5, 0], ROUNDING, "apart")
