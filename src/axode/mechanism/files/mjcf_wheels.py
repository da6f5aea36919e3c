"""Bodies of an MJCF file that look like wheels: proposals, which nothing is done about."""

from __future__ import annotations

from typing import Any

import numpy as np

from axode.mechanism.files.mjcf_bodies import (
    BALL,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FREE,
    HINGE,
    PLANE,
    SPHERE,
    BodyReader,
    cleaned,
    rotated,
)
from axode.mechanism.files.mjcf_model import CompiledModel

PARALLEL = 1e-3  # [rad] between the axes of a wheel and of its hinge
ROUND = 1e-3  # difference of the semi-axes of an ellipsoid that rolls
NEAR = 0.1  # gap to the plane, and place beside the hinge, in parts of the radius
_GEOMS = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER)


def propose_wheels(compiled: CompiledModel, bodies: BodyReader, qpos: np.ndarray) -> list[str]:
    """Write the calls that would let round geoms roll which touch a plane at a configuration.

    Args:
        compiled: The model.
        bodies: The names of its bodies.
        qpos: MuJoCo's coordinates of the configuration.
    """
    model, mujoco = compiled.model, compiled.mujoco
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    planes = [_plane(data, g) for g in range(model.ngeom) if model.geom_type[g] == PLANE]
    calls: dict[str, str] = {}
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        touches = model.geom_contype[geom] or model.geom_conaffinity[geom]
        if int(model.geom_type[geom]) not in _GEOMS or not touches or not body:
            continue
        wheel = _wheel(model, geom, body)
        name = bodies.bodies[body]
        if wheel is None or name in calls:
            continue
        radius, axis = wheel
        centre = np.array(data.geom_xpos[geom])
        for point, normal in planes or [(np.zeros(3), np.array([0.0, 0.0, 1.0]))]:
            gap = float(normal @ (centre - point)) - radius
            if abs(gap) <= NEAR * radius:
                ground = _ground(point, normal)
                calls[name] = _call(name, radius, axis, cleaned(model.geom_pos[geom]), ground)
                break
    return list(calls.values())


def _plane(data: Any, geom: int) -> tuple[np.ndarray, np.ndarray]:
    R = np.array(data.geom_xmat[geom]).reshape(3, 3)
    return np.array(data.geom_xpos[geom]), R[:, 2]


def _wheel(model: Any, geom: int, body: int) -> tuple[float, np.ndarray | None] | None:
    """Radius and spin axis of a round geom whose joint lets it roll; no axis for a ball."""
    size, kind = np.array(model.geom_size[geom]), int(model.geom_type[geom])
    R = rotated(model.geom_quat[geom])
    joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
    if not joints:
        return None
    joint = joints[-1]
    if int(model.jnt_type[joint]) in (BALL, FREE):
        return (float(size[0]), None) if kind == SPHERE else None
    if int(model.jnt_type[joint]) != HINGE:
        return None
    axis = np.array(model.jnt_axis[joint])
    radius = float(size[0])
    if kind == ELLIPSOID:
        k = int(np.argmax(np.abs(R.T @ axis)))
        others = np.delete(size, k)
        if abs(others[0] - others[1]) > ROUND * others[0]:
            return None
        own, radius = R[:, k], float(others[0])
    else:
        own = axis if kind == SPHERE else R[:, 2]
    beside = np.cross(axis, np.array(model.geom_pos[geom]) - np.array(model.jnt_pos[joint]))
    if np.linalg.norm(np.cross(axis, own)) > PARALLEL or np.linalg.norm(beside) > NEAR * radius:
        return None
    return radius, axis


def _ground(point: np.ndarray, normal: np.ndarray) -> str:
    if np.allclose(normal, (0, 0, 1)) and not point[2]:
        return ""
    written = ", ".join(_triple(vector) for vector in (cleaned(point), cleaned(normal)))
    first, _, second = written.partition("), ")
    return f", ground=ax.Plane(point={first}), normal={second})"


def _call(name: str, radius: float, axis: np.ndarray | None, at: Any, ground: str) -> str:
    wheel = f"ax.Ball({radius:g})" if axis is None else f"ax.Rolling({radius:g})"
    place = f", at={_triple(at)}" if any(at) else ""
    spin = "" if axis is None else f", axis={_triple(cleaned(axis))}"
    return f"robot.add_contact({name!r}, {wheel}, body={name!r}{place}{spin}{ground})"


def _triple(vector: Any) -> str:
    return "(" + ", ".join(f"{x:.9g}" for x in vector) + ")"
