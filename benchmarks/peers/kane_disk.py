"""A rolling disk by Kane's method in SymPy: yaw, lean, spin, and three angular speeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def kane_disk(
    mass: float, radius: float, across: float, along: float, gravity: float
) -> Callable[..., list[np.ndarray]]:
    """Derive the equations and make a function of numbers of them.

    Axes that yaw about z by q1 and lean about x by q2 have the disk's axis as y; q3 turns the disk
    about it. The speeds u are the disk's angular velocity along these leaning axes.

    Args:
        mass, radius: [kg, m]
        across, along: Moments of inertia across and along the disk's axis [kg m^2].
        gravity: Downwards [m/s^2].

    Returns:
        A function of q, u and u_dot that gives the mass matrix, the forcing, the acceleration of
        the centre in the world's axes and the angular velocity of the leaning axes in their own.
    """
    import sympy as sm
    import sympy.physics.mechanics as me

    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    L = Y.orientnew("L", "Axis", [q[1], Y.x])
    D = L.orientnew("D", "Axis", [q[2], L.y])
    w = D.ang_vel_in(N)
    kinematic = [w.dot(axis) - rate for axis, rate in zip((L.x, L.y, L.z), u, strict=True)]
    rates = sm.solve(kinematic, [x.diff() for x in q])
    w_L = L.ang_vel_in(N).subs(rates).simplify()
    L.set_ang_vel(N, w_L)
    D.set_ang_vel(N, u[0] * L.x + u[1] * L.y + u[2] * L.z)
    contact = me.Point("contact")
    contact.set_vel(N, 0)
    centre = contact.locatenew("centre", radius * L.z)
    centre.v2pt_theory(contact, N, D)
    inertia = me.inertia(L, across, along, across)
    disk = me.RigidBody("disk", centre, D, mass, (inertia, centre))
    method = me.KanesMethod(N, q_ind=q, u_ind=u, kd_eqs=kinematic)
    method.kanes_equations([disk], [(centre, -mass * gravity * N.z)])
    acceleration = centre.vel(N).dt(N).subs(rates)
    results = [method.mass_matrix, method.forcing, acceleration.to_matrix(N), w_L.to_matrix(L)]
    return sm.lambdify([q, u, [x.diff() for x in u]], results, cse=True)
