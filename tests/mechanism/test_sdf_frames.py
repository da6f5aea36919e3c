"""Random SDF models against the same robots, built by hand from poses in the world."""

import numpy as np
import pytest

import axode as ax
from tests.mechanism.sdf_models import RandomModel, rotation, transform
from variants import further

TOLERANCE = 1e-11
SINGLE = {"revolute": ax.Revolute, "continuous": ax.Revolute, "prismatic": ax.Prismatic}


def by_hand(model):
    """The robot from its poses in the world."""
    robot = ax.Mechanism("hand")
    poses = {"world": np.eye(4)}
    for name, X, mass, com, inertia in model.links:
        robot.add_body(name, mass=mass, com=com, inertia=(inertia + inertia.T) / 2)
        poses[name] = X
    held = {child for _, _, _, child, *_ in model.joints}
    for name, *_ in model.links:
        if name not in held:
            robot.add_joint("base", ax.Floating(), parent="ground", child=name)
    for name, kind, parent, child, X, axes, pitch in model.joints:
        if kind in SINGLE:
            joint = SINGLE[kind](axes[0][0])
        elif kind == "screw":
            joint = ax.Screw(axes[0][0], pitch)
        elif kind == "universal":
            joint = ax.Universal(axes[0][0], axes[1][0])
        else:
            joint = ax.Spherical() if kind == "ball" else ax.Fixed()
        on = [np.linalg.inv(poses[end]) @ X for end in (parent, child)]
        robot.add_joint(
            name,
            joint,
            parent="ground" if parent == "world" else parent,
            child=child,
            at=on[0][:3, 3],
            rotation=on[0][:3, :3],
            child_at=on[1][:3, 3],
            child_rotation=on[1][:3, :3],
        )
        coordinates = [name] if len(axes) == 1 else [f"{name}.first", f"{name}.second"]
        for coordinate, (_, damping) in zip(coordinates, axes, strict=False):
            robot.add_damper(coordinate, coordinate, coefficient=damping)
    return robot


def quantities(robot, seed):
    """Poses, mass matrix and accelerations by name at a random state."""
    model = robot.derive(self_check=False).compile("interpreter")
    rng = np.random.default_rng(seed)
    q = dict.fromkeys(sorted(model.coordinates))
    q |= {name: rng.uniform(-1, 1) for name in q}
    for connection in robot.connections:
        quaternion = [n for n in connection.coordinates if n[-3:] in (".qw", ".qx", ".qy", ".qz")]
        length = np.linalg.norm([q[n] for n in quaternion])
        q |= {n: q[n] / length for n in quaternion}
    v = {name: rng.uniform(-1, 1) for name in sorted(model.independent)}
    q = [q[name] for name in model.coordinates]
    v = [v[name] for name in model.independent]
    bodies, speeds = np.argsort(model.bodies), np.argsort(model.independent)
    return [
        model.poses(q)[bodies],
        model.mass_matrix(q)[np.ix_(speeds, speeds)],
        model.forward_dynamics(q, v)[speeds],
    ]


CLOSING = {"ball": ax.Spherical(), "screw": ax.Screw((0.6, 0, 0.8), 0.2 / (2 * np.pi))}


@pytest.mark.parametrize("kind", CLOSING)
def test_a_joint_that_closes_a_loop_is_where_its_frame_is(kind, tmp_path):
    model = RandomModel(7, count=4, types=("universal", "revolute"))
    names = [name for name, *_ in model.links]
    wanted = by_hand(model)
    poses = {name: X for name, X, *_ in model.links}
    X = poses[names[1]] @ transform(rotation(0.1, 1.5708, -0.4), (0.3, -0.2, 0.1))
    on = [np.linalg.inv(poses[end]) @ X for end in (names[-1], names[0])]
    places = {"at": on[0][:3, 3], "rotation": on[0][:3, :3]}
    places |= {"child_at": on[1][:3, 3], "child_rotation": on[1][:3, :3]}
    wanted.add_loop("closing", CLOSING[kind], parent=names[-1], child=names[0], **places)
    # the same joint in the file, against the direction of the tree's joints
    closing = (
        f'<joint name="closing" type="{kind}"><parent>{names[-1]}</parent><child>{names[0]}</child>'
        f'<pose relative_to="{names[1]}">0.3 -0.2 0.1 0.1 1.5708 -0.4</pose>'
        "<axis><xyz>3 0 4</xyz></axis><screw_thread_pitch>0.2</screw_thread_pitch></joint>"
    )
    path = tmp_path / "robot.sdf"
    path.write_text(model.text.replace("</model></sdf>", closing + "</model></sdf>"))
    robot = ax.load(path)
    assert [loop.name for loop in robot.loops] == ["closing"]
    found = []
    for mechanism in (robot, wanted):
        equations = mechanism.derive(self_check=False)
        compiled = equations.compile("interpreter")
        q = np.zeros(len(compiled.coordinates))
        v = np.zeros(len(compiled.independent))
        found.append((compiled.independent, compiled.forward_dynamics(q, v)))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("special", [False, True], ids=["generic", "near right angles"])
@pytest.mark.parametrize("seed", [0, 1, further(2), further(3)])
def test_frames_mean_what_they_say(seed, special, tmp_path):
    model = RandomModel(seed, free=seed == 1, special=special)
    path = tmp_path / "robot.sdf"
    path.write_text(model.text)
    robot = ax.load(path)
    assert [c.name for c in robot.connections if c.name == "base"] == ["base"] * (seed == 1)
    for found, wanted in zip(
        quantities(robot, seed), quantities(by_hand(model), seed), strict=True
    ):
        scale = max(1.0, np.abs(wanted).max())
        assert np.abs(found - wanted).max() < TOLERANCE * scale
