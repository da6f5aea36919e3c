"""A rover with four fixed wheels turns on the spot: its wheels skid, and how fast it turns follows.

Compared with a closed form, and with MuJoCo where that is installed. Pictures go to out/.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax

OUT = Path("out")
RADIUS, A, B = 0.1, 0.3, 0.2  # [m] of wheels; half the wheelbase and half the track
RATE, GAIN = 4.0, 3.0  # [rad/s] that motors ask for, [N m s/rad]
SIDES = {"fl": -1, "rl": -1, "fr": 1, "rr": 1}


def rover(friction: float = 0.6) -> ax.Mechanism:
    """Build a deck on four driven wheels."""
    made = ax.Mechanism("rover")
    shape = ax.Box((0.7, 0.3, 0.08), at=(0, 0, 0.06))
    deck = made.add_body("deck", mass=10.0, inertia=(0.3, 0.4, 0.5), shape=shape)
    made.add_joint("base", ax.Floating(), parent=made.ground, child=deck)
    for name, x, y in (("fl", A, B), ("fr", A, -B), ("rl", -A, B), ("rr", -A, -B)):
        wheel = ax.Rolling(RADIUS, friction=friction)
        made.add_wheel(name, wheel, on=deck, at=(x, y, 0), mass=0.5, motor=True)
    made.set_home({"base.z": RADIUS})
    return made


def turn(s: Any) -> dict[str, Any]:
    """Torques of motors that turn the left wheels backwards and the right ones forwards."""
    return {name: GAIN * (side * RATE - s[f"{name}.rate"]) for name, side in SIDES.items()}


def closed_form(rate: float) -> float:
    """Yaw rate while all wheels slip, loaded alike, at a rate of the wheels."""
    return B * RADIUS * rate / (A**2 + B**2)


def in_mujoco(seconds: float) -> tuple[float, float, float]:
    """Yaw rate, wheel rate, and the share of time in which all wheels touch, in MuJoCo."""
    import mujoco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what MJCF cannot say
        model = mujoco.MjModel.from_xml_string(rover().to_mjcf().text)
    model.opt.timestep = 1e-3
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    dof = {name: int(model.joint(name).dofadr[0]) for name in SIDES}
    yaw, rates, touching = [], [], []
    while data.time < seconds:
        for name, side in SIDES.items():
            data.actuator(name).ctrl = GAIN * (side * RATE - data.qvel[dof[name]])
        mujoco.mj_step(model, data)
        if data.time > seconds / 2:
            yaw.append(float(data.qvel[5]))
            rates.append(np.mean([side * data.qvel[dof[n]] for n, side in SIDES.items()]))
            touching.append(len({int(c.geom1 + c.geom2) for c in data.contact[: data.ncon]}) == 4)
    return float(np.mean(yaw)), float(np.mean(rates)), float(np.mean(touching))


def main() -> None:
    """Turn for two seconds."""
    OUT.mkdir(exist_ok=True)
    run = ax.simulate(rover().derive().compile(), 2.0, input=turn, rtol=1e-7)
    rate = float(np.mean([side * run[f"{name}.rate"][-1] for name, side in SIDES.items()]))
    print(f"yaw rate {run['yaw_rate'][-1]:.6f} rad/s, wheels {rate:.4f} rad/s")
    print(f"closed form for these wheels: {closed_form(rate):.6f} rad/s")
    slip = [abs(float(run[f"fl.{way}_slip"][-1])) for way in ("longitudinal", "lateral")]
    print(f"front left slips at {slip[0]:.3f} m/s along and {slip[1]:.3f} m/s across")
    print(f"without scrubbing it would be {RADIUS * rate / B:.2f} rad/s")
    if find_spec("mujoco") is not None:
        yaw, rate, touching = in_mujoco(2.0)
        off = yaw / closed_form(rate) - 1
        print(
            f"MuJoCo: {yaw:.3f} rad/s, {off:+.0%} of the closed form for its wheels; "
            f"all four touch the ground {touching:.0%} of the time"
        )
    run.animate(OUT / "skid_steering.gif", forces=True, rate=20, size=(480, 320))


if __name__ == "__main__":
    main()
