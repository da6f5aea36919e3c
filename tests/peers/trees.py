"""One random tree, told to three libraries.

A tree is plain numbers (`TreeLink`), drawn from a seed. `to_axode`, `to_pinocchio` and `to_mujoco`
each build it with their own library's parts. The other libraries keep a frame a joint and hang
bodies on it; Axode's frames are the bodies'. So `Placed` remembers where each body lies in the
frame of the joint that moves it.
"""

from dataclasses import dataclass

import numpy as np

import axode as ax

GROUND = "ground"
GRAVITY = np.array([0.4, -0.7, -9.81])  # along no axis, so that no component goes untested

# what the joints of the two families of trees may be
PINOCCHIO_KINDS = (
    "revolute",
    "prismatic",
    "screw",
    "cylindrical",
    "universal",
    "spherical",
    "planar",
    "floating",
    "fixed",
)
MUJOCO_KINDS = tuple(kind for kind in PINOCCHIO_KINDS if kind != "screw")  # it has no helical joint

SPEEDS = {
    "revolute": 1,
    "prismatic": 1,
    "screw": 1,
    "cylindrical": 2,
    "universal": 2,
    "spherical": 3,
    "planar": 3,
    "floating": 6,
    "fixed": 0,
}


@dataclass(frozen=True)
class Placed:
    """Orientation and position of a frame in another."""

    R: np.ndarray
    p: np.ndarray

    def __matmul__(self, other: "Placed") -> "Placed":
        return Placed(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> "Placed":
        return Placed(self.R.T, -self.R.T @ self.p)

    @property
    def matrix(self) -> np.ndarray:
        return np.block([[self.R, self.p[:, None]], [np.zeros(3), 1.0]])


HERE = Placed(np.eye(3), np.zeros(3))


@dataclass(frozen=True)
class TreeLink:
    """A body and the joint that carries it."""

    name: str
    parent: str
    kind: str
    axis: np.ndarray
    second: np.ndarray  # of a universal joint
    pitch: float  # of a screw
    in_parent: Placed  # the joint's frame in the parent body
    in_child: Placed  # and in the body itself
    mass: float
    com: np.ndarray
    inertia: np.ndarray

    @property
    def body_in_joint(self) -> Placed:
        """The body's frame in the joint's moving frame."""
        return self.in_child.inverse()


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Uniform over all orientations."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else -Q


def random_unit(rng: np.random.Generator) -> np.ndarray:
    """A direction."""
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def random_inertia(rng: np.random.Generator) -> np.ndarray:
    """A tensor that a cloud of masses could have: positive, and obeying the triangle rule."""
    R = random_rotation(rng)
    second_moments = rng.uniform(0.02, 0.3, size=3)
    return R @ np.diag(second_moments.sum() - second_moments) @ R.T


def random_tree(seed: int, kinds: tuple[str, ...], size: int = 7) -> list[TreeLink]:
    """A branching tree of `size` bodies, parents first and each branch finished before the next.

    The first joint is of a kind that depends on the seed, so that every kind also stands at the
    root; a floating joint stands only there.
    """
    rng = np.random.default_rng(seed)
    links: list[TreeLink] = []
    path = [GROUND]  # the branch being grown
    for number in range(size):
        if number and rng.uniform() < 0.35:  # go back and start another branch
            path = path[: rng.integers(1, len(path) + 1)]
        kind = kinds[seed % len(kinds)] if number == 0 else str(rng.choice(kinds))
        if kind == "floating" and number:
            kind = "revolute"
        links.append(_random_link(rng, f"b{number}", path[-1], kind))
        path.append(f"b{number}")
    return links


def _random_link(rng: np.random.Generator, name: str, parent: str, kind: str) -> TreeLink:
    axis = random_unit(rng)
    second = np.cross(axis, random_unit(rng))
    return TreeLink(
        name,
        parent,
        kind,
        axis,
        second / np.linalg.norm(second),
        rng.uniform(-0.5, 0.5),
        Placed(random_rotation(rng), rng.uniform(-0.5, 0.5, 3)),
        Placed(random_rotation(rng), rng.uniform(-0.5, 0.5, 3)),
        rng.uniform(0.5, 3.0),
        rng.uniform(-0.3, 0.3, 3),
        random_inertia(rng),
    )


def to_axode(links: list[TreeLink]) -> ax.Mechanism:
    """The tree in Axode, a motor on every speed: u is the generalized force."""
    mechanism = ax.Mechanism("tree", gravity=GRAVITY)
    for link in links:
        mechanism.add_body(link.name, mass=link.mass, com=link.com, inertia=link.inertia)
        joint = mechanism.add_joint(
            f"{link.name}_joint",
            _axode_joint(link),
            parent=link.parent,
            child=link.name,
            at=link.in_parent.p,
            rotation=link.in_parent.R,
            child_at=link.in_child.p,
            child_rotation=link.in_child.R,
        )
        for speed in joint.speeds:
            mechanism.add_motor(speed, speed)
    return mechanism


def _axode_joint(link: TreeLink) -> object:
    match link.kind:
        case "revolute":
            return ax.Revolute(link.axis)
        case "prismatic":
            return ax.Prismatic(link.axis)
        case "screw":
            return ax.Screw(link.axis, link.pitch)
        case "cylindrical":
            return ax.Cylindrical(link.axis)
        case "universal":
            return ax.Universal(link.axis, link.second)
        case "spherical":
            return ax.Spherical()
        case "planar":
            return ax.Planar("z")
        case "floating":
            return ax.Floating()
        case _:
            return ax.Fixed()


def random_coordinates(links: list[TreeLink], rng: np.random.Generator) -> list[np.ndarray]:
    """Coordinates of each joint as Axode has them: quaternions w first, before positions."""
    found = []
    for link in links:
        quaternion = rng.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        if link.kind == "spherical":
            found.append(quaternion)
        elif link.kind == "floating":
            found.append(np.concatenate([quaternion, rng.uniform(-1, 1, 3)]))
        else:
            found.append(rng.uniform(-2, 2, SPEEDS[link.kind]))
    return found


def quaternion_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix of a unit quaternion w, x, y, z."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference, by the largest entry wanted."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"{found.shape} is not {wanted.shape}"
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
