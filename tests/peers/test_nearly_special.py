"""Chains whose geometry is special but for a little, as rounded files have it, against Pinocchio.

Axes that are nearly parallel meet far away, axes nearly opposite to z have no shortest turn to
speak of, and small inertia hides behind large: all of these must cost digits nowhere.
"""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import axode as ax
from tests.peers.pinocchio_tree import PinocchioTree
from tests.peers.trees import (
    GROUND,
    Placed,
    TreeLink,
    random_coordinates,
    random_inertia,
    random_rotation,
    random_unit,
    relative_error,
    to_axode,
)

# Condition numbers of the mass matrix reach 1e3; rounding leaves 1e-12.
TOLERANCE = 1e-11
SMALL = [10.0**-k for k in range(3, 17)]
Z = np.array([0.0, 0.0, 1.0])


def leaning(direction: np.ndarray, by: float, rng: np.random.Generator) -> np.ndarray:
    """A unit vector at an angle from another."""
    across = np.cross(direction, random_unit(rng))
    return np.cos(by) * direction + np.sin(by) * across / np.linalg.norm(across)


def chain(axes: list[np.ndarray], places: list[np.ndarray], seed: int) -> list[TreeLink]:
    """Revolute joints one after the other, all frames parallel to the world's at zero angles."""
    rng = np.random.default_rng(seed)
    links: list[TreeLink] = []
    for number, (axis, place) in enumerate(zip(axes, places, strict=True)):
        parent = links[-1].name if links else GROUND
        links.append(
            TreeLink(
                f"b{number}",
                parent,
                "revolute",
                axis,
                axis,
                0.0,
                Placed(np.eye(3), place),
                Placed(np.eye(3), np.zeros(3)),
                rng.uniform(0.5, 2.0),
                rng.uniform(-0.3, 0.3, 3),
                random_inertia(rng),
            )
        )
    return links


def errors(links: list[TreeLink], formulation: str = "recursive") -> dict[str, float]:
    """Relative differences between the two libraries at a random state, by quantity."""
    theirs = PinocchioTree(links)
    model, data, order = theirs.model, theirs.data, theirs.order
    ours = to_axode(links).derive(formulation).compile("interpreter")
    rng = np.random.default_rng(5)
    coordinates = random_coordinates(links, rng)
    q = np.concatenate(coordinates)
    v, v_dot, u = rng.uniform(-2, 2, (3, len(ours.independent)))
    their_q, their_v = theirs.q(coordinates), theirs.vector(v)
    M = pin.crba(model, data, their_q)
    M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(order, order)]
    pin.framesForwardKinematics(model, data, their_q)
    poses = np.array([data.oMf[model.getFrameId(body)].homogeneous for body in ours.bodies])
    inverse = pin.rnea(model, data, their_q, their_v, theirs.vector(v_dot))[order]
    direct = pin.aba(model, data, their_q, their_v, theirs.vector(u))[order]
    return {
        "mass matrix": relative_error(ours.mass_matrix(q), M),
        "poses": relative_error(ours.poses(q), poses),
        "inverse dynamics": relative_error(ours.inverse_dynamics(q, v, v_dot), inverse),
        "direct dynamics": relative_error(ours.forward_dynamics(q, v, u), direct),
    }


def assert_agree(links: list[TreeLink], formulation: str = "recursive") -> None:
    worst = errors(links, formulation)
    assert max(worst.values()) < TOLERANCE, worst


OFFSETS = [np.zeros(3), np.array([0.4, 0.1, 0.1]), np.array([0.3, -0.2, 0.5])]


@pytest.mark.parametrize("small", SMALL, ids=lambda x: f"{x:.0e}")
@pytest.mark.parametrize("sense", [1.0, -1.0], ids=["parallel", "opposite"])
@pytest.mark.parametrize("seed", range(2))
def test_axes_nearly_parallel(small: float, sense: float, seed: int):
    rng = np.random.default_rng(seed)
    first = Z if seed == 0 else random_unit(rng)
    second = leaning(sense * first, small, rng)
    assert_agree(chain([first, second, leaning(second, small, rng)], OFFSETS, seed))


@pytest.mark.parametrize("formulation", ["lagrange", "complement", "spatial_operators"])
@pytest.mark.parametrize("small", [1e-5, 1e-8, 1e-11])
def test_axes_nearly_parallel_in_other_formulations(formulation: str, small: float):
    rng = np.random.default_rng(1)
    assert_agree(
        chain([Z, leaning(Z, small, rng), leaning(Z, small, rng)], OFFSETS, 1), formulation
    )


@pytest.mark.parametrize("small", SMALL, ids=lambda x: f"{x:.0e}")
@pytest.mark.parametrize("end", [1.0, -1.0], ids=["+z", "-z"])
def test_axes_nearly_vertical(small: float, end: float):
    rng = np.random.default_rng(7)
    axes = [random_unit(rng), leaning(end * Z, small, rng), random_unit(rng)]
    assert_agree(chain(axes, OFFSETS, 7))


@pytest.mark.parametrize("small", SMALL, ids=lambda x: f"{x:.0e}")
def test_axes_nearly_perpendicular_and_nearly_meeting(small: float):
    rng = np.random.default_rng(11)
    x = np.array([1.0, 0.0, 0.0])
    axes = [leaning(Z, small, rng), leaning(x, small, rng), leaning(Z, small, rng)]
    places = [np.zeros(3), small * rng.normal(size=3), np.array([0.5, 0.0, small])]
    assert_agree(chain(axes, places, 11))


@pytest.mark.parametrize("digits", range(3, 10))
def test_frames_rounded_as_files_are(digits: int):
    """Right angles and unit axes written with a few digits."""
    rng = np.random.default_rng(digits)
    links = chain(
        [Z, Z, Z, Z], [np.round(rng.normal(size=3) / 3, digits) for _ in range(4)], digits
    )
    right = np.round(np.pi / 2, digits)
    turned = []
    for number, link in enumerate(links):
        c, s = np.cos((-1) ** number * right), np.sin((-1) ** number * right)
        R = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        turned.append(
            replace(link, in_parent=Placed(R, link.in_parent.p), axis=Z if number < 2 else R.T @ Z)
        )
    assert_agree(turned)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3])
def test_small_and_large_robots(scale: float):
    """Lengths in micrometres or kilometres: what is small is so against the robot."""
    rng = np.random.default_rng(2)
    links = [
        replace(
            link,
            in_parent=Placed(random_rotation(rng), scale * link.in_parent.p),
            com=scale * link.com,
            inertia=scale**2 * link.inertia,
        )
        for link in chain([random_unit(rng) for _ in range(3)], OFFSETS, 2)
    ]
    worst = errors(links)
    assert max(worst.values()) < TOLERANCE, worst


@pytest.mark.parametrize("small", [1e-6, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("turned", [False, True], ids=["aligned", "turned"])
def test_tiny_inertia_about_the_axis_of_a_heavy_link(small: float, turned: bool):
    """A thin rod that spins about itself: its small moment is all that its joint feels."""
    rng = np.random.default_rng(4)
    R = random_rotation(rng) if turned else np.eye(3)
    links = chain([Z, Z], [np.zeros(3), np.array([0.2, 0.0, 0.0])], 4)
    links[1] = replace(
        links[1], axis=R @ Z, com=R @ Z * 0.3, inertia=R @ np.diag([1.0, 1.0, small]) @ R.T
    )
    theirs = PinocchioTree(links)
    model = to_axode(links).derive(self_check=not turned).compile("interpreter")
    coordinates = random_coordinates(links, rng)
    M = pin.crba(theirs.model, theirs.data, theirs.q(coordinates))
    found = model.mass_matrix(np.concatenate(coordinates))[1, 1]
    # in turned axes the data themselves hold the moment to a few units of rounding only, which the
    # self-check refuses to promise nine digits of
    assert abs(found - M[1, 1]) < (1e-14 if turned else 1e-12 * M[1, 1]), (found, M[1, 1])


def test_an_axis_of_parameters_with_seven_digits_is_a_unit_axis():
    rounded = 0.7071068
    models = []
    for axis in (
        (rounded, 0.0, rounded),
        (ax.Parameter("x", rounded), 0.0, ax.Parameter("z", rounded)),
    ):
        bot = ax.Mechanism("leaning")
        body = bot.add_body("body", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
        bot.add_joint("hinge", ax.Revolute(axis), parent=bot.ground, child=body)
        models.append(bot.derive().compile("interpreter"))
    numeric, parametric = (model.poses([0.7]) for model in models)
    np.testing.assert_allclose(parametric, numeric, atol=1e-15)
