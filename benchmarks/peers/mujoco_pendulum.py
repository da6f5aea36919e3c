"""The wheeled pendulum of `mechanisms` in MuJoCo: the same masses, cylinders on a plane, friction.

MuJoCo's contacts are soft: wheels sink a little and creep. How much depends on its settings, which
are left as they are but for friction high enough not to slide.
"""

from __future__ import annotations

import mujoco
import numpy as np

from benchmarks.mechanisms import POLE, TRACK, WHEEL
from benchmarks.peers.mujoco_model import text

HALF_WIDTH = 0.01  # [m] of a wheel
FRICTION = 1.0
CYLINDER = f'type="cylinder" size="{WHEEL["radius"]} {HALF_WIDTH}" euler="90 0 0"'


def mujoco_pendulum(step: float) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The model with MuJoCo's own RK4, standing on the ground."""
    model = mujoco.MjModel.from_xml_string(document(step))
    return model, mujoco.MjData(model)


def document(step: float, geometry: str = CYLINDER, options: str = 'integrator="RK4"') -> str:
    """The model as MJCF, its wheels of any geometry."""
    mass, radius = WHEEL["mass"], WHEEL["radius"]
    moments = (mass * radius**2 / 4, mass * radius**2 / 2, mass * radius**2 / 4)
    wheels = "".join(
        f"""
        <body name="{side}" pos="0 {y} 0">
          <joint name="{side}" axis="0 1 0"/>
          <inertial pos="0 0 0" mass="{mass}" diaginertia="{text(moments)}"/>
          <geom {geometry} friction="{FRICTION}"/>
        </body>"""
        for side, y in (("left", TRACK / 2), ("right", -TRACK / 2))
    )
    return f"""
    <mujoco>
      <compiler inertiafromgeom="false"/>
      <option timestep="{step}" gravity="0 0 -9.81" {options}/>
      <worldbody>
        <geom type="plane" size="100 100 1" friction="{FRICTION}"/>
        <body name="pole" pos="0 0 {radius}">
          <freejoint/>
          <inertial pos="{text(POLE["com"])}" mass="{POLE["mass"]}"
                    diaginertia="{text(POLE["inertia"])}"/>
          {wheels}
        </body>
      </worldbody>
    </mujoco>"""


def start(
    model: mujoco.MjModel, data: mujoco.MjData, pitch: float, yaw_rate: float, surge: float
) -> None:
    """Leaning forward by `pitch`, turning and rolling without slip."""
    mujoco.mj_resetData(model, data)
    data.qpos[3:7] = [np.cos(pitch / 2), 0.0, np.sin(pitch / 2), 0.0]
    about = np.array([-np.sin(pitch), 0.0, np.cos(pitch)])  # the world's z in the pole's axes
    data.qvel[0], data.qvel[3:6] = surge, yaw_rate * about
    for side, y in (("left", TRACK / 2), ("right", -TRACK / 2)):
        joint = model.joint(side)
        data.qvel[joint.dofadr[0]] = (surge - yaw_rate * y) / WHEEL["radius"]
    mujoco.mj_forward(model, data)


def pitch_of(data: mujoco.MjData) -> float:
    """Lean of the pole from the vertical."""
    axis = data.body("pole").xmat.reshape(3, 3)[:, 2]
    heading = data.body("pole").xmat.reshape(3, 3)[:, 1]
    forward = np.array([heading[1], -heading[0], 0.0])
    return float(np.arctan2(axis @ forward, axis[2]))


def slip(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Largest speed of a wheel's lowest point along the ground [m/s]."""
    worst = 0.0
    velocity = np.zeros(6)
    for side in ("left", "right"):
        body = model.body(side).id
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
        worst = max(worst, contact_speed(velocity))
    return worst


def contact_speed(velocity: np.ndarray) -> float:
    """Speed along the ground at the lowest point, of an angular and a linear velocity."""
    at = velocity[3:] + np.cross(velocity[:3], [0.0, 0.0, -WHEEL["radius"]])
    return float(np.hypot(at[0], at[1]))
