"""Inertia of the links, and its regrouping across joints (D).

Inertia of a link without effect on its revolute joint can be moved to the link before it: a mass on
the axis, a first moment along it, equal moments about the two axes across it. Moving these inward,
leaf to root, leaves each link fewer parameters and changes no joint force; the book-keeping is done
once, on constants.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from axode.mechanism.elements.bodies import Body
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    RigidInertia,
    Values,
    add_up,
    symbolic_scalar,
    symbolic_vector,
    turn_tensor,
)
from axode.symbolic.tree.kinematics import Tree


def body_tensor(body: Body, values: Values) -> SX:
    """A body's central inertia in its own axes."""
    xx, yy, zz, xy, xz, yz = (symbolic_scalar(e, values) for e in body.inertia.entries)
    return ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))


def link_inertias(tree: Tree) -> list[RigidInertia]:
    """Inertia of every link about its frame's origin: the sum of its bodies.

    A wheel turned into its link's axes is symmetric to sixteen digits; exactly symmetric, it does
    not feel its own spin angle.
    """
    parts: list[list[RigidInertia]] = [[] for _ in tree.links]
    for body in tree.mechanism.bodies:
        link = tree.body_link[body.name]
        if link == ROOT:
            continue
        pose = tree.body_pose[body.name]
        tensor = turn_tensor(pose.R, body_tensor(body, tree.values), ideal=body.inertia.ideal)
        centre = pose.point(symbolic_vector(body.com, tree.values))
        mass = symbolic_scalar(body.mass, tree.values)
        parts[link].append(RigidInertia.at_centre(mass, centre, tensor))
    return [_total(own) for own in parts]


def _total(parts: list[RigidInertia]) -> RigidInertia:
    """Sum the bodies of a link; products of inertia that cancel do so exactly."""
    total = sum(parts, RigidInertia.zero())
    moment = add_up([part.moment for part in parts], total.moment)
    products = add_up([part.tensor for part in parts], total.tensor)
    tensor = products - ca.diag(ca.diag(products)) + ca.diag(ca.diag(total.tensor))
    return RigidInertia(total.mass, moment, tensor)


def link_spreads(tree: Tree) -> list[SX]:
    """Sum of m c^2 over the mass centres of each link's bodies: see `coriolis_matrix`."""
    spreads = [SX(0) for _ in tree.links]
    for body in tree.mechanism.bodies:
        link = tree.body_link[body.name]
        if link != ROOT:
            c = tree.body_pose[body.name].point(symbolic_vector(body.com, tree.values))
            spreads[link] += symbolic_scalar(body.mass, tree.values) * ca.dot(c, c)
    return spreads


def regrouped(tree: Tree, inertias: list[RigidInertia]) -> list[RigidInertia]:
    r"""Inertias with everything moved inward that the link's own joint cannot feel.

    Through a revolute about z: :math:`m`, :math:`h_z` and
    :math:`\operatorname{diag}(I_{yy}, I_{yy}, 0)`, which turning about z does not change; through a
    prismatic: all of :math:`I`.                                                  \tag{D1}
    """
    links = list(inertias)
    for i in reversed(range(len(links))):
        link, own = tree.links[i], links[i]
        moved = link.joint.regroupable(own)
        if moved is None:
            continue
        links[i] = RigidInertia(
            own.mass - moved.mass, own.moment - moved.moment, own.tensor - moved.tensor
        )
        if link.parent != ROOT:  # the moved part is blind to the joint's own turn
            inward = moved.moved(link.rotation_at_rest, link.p)
            links[link.parent] = links[link.parent] + inward
    return links


def without_spin(tree: Tree, regrouped_inertias: list[RigidInertia]) -> Tree:
    """The tree with the spin angles of balanced wheels left out, for the recursions.

    A leaf that turns about its own axis of symmetry has the same inertia in axes that do not spin
    with it, so its vectors may be kept in those: the recursions then hold no angle of it.  (D17)
    """
    occupied = {link.parent for link in tree.links} | _attached(tree)
    links = []
    for i, link in enumerate(tree.links):
        own = regrouped_inertias[i]
        if link.turns_only and i not in occupied and own.is_axial:
            link = replace(link, rotation=link.rotation_at_rest)
        links.append(link)
    return replace(tree, links=tuple(links), _poses={})


def _attached(tree: Tree) -> set[int]:
    """Links to which something other than a joint of the tree is fastened off their axis."""
    mechanism = tree.mechanism
    bodies = {body for loop in mechanism.loops for body in (loop.parent, loop.child)}
    bodies |= {body for strut in mechanism.struts for body in (strut.parent, strut.child)}
    bodies |= {wrench.body for wrench in mechanism.wrenches}
    bodies |= {contact.plane.on for contact in mechanism.contacts}
    return {tree.body_link[body] for body in bodies}
