"""How the gallery's pictures are taken: viewpoints, and motions at the speeds of the sources."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.image import imsave
from robot_pictures import coordinates, instants

import axode as ax
from axode import gallery
from axode.literature.reproduce import angeles, arms_with_load, valencia
from axode.show.render.painter import camera_of, picture

WIDTH, HEIGHT = 640, 420
WIDE = (960, 480)  # of a motion
Motion = Callable[[Any], Any]  # from a model to its run


@dataclass(frozen=True)
class Taken:
    """How a mechanism is shown.

    Attributes:
        options: Arguments of `gallery.build` for its pictures.
        pose: Coordinates of the still picture that are not at home.
        view: Azimuth and elevation of the camera [degrees].
        speeds: Independent speeds of its source, on which the page writes the equations.
        motion: What it does in the second picture.
        times: Instants that are shown [s].
        above: Azimuth and elevation of the camera there [degrees].
        words: What it does, for the caption.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    pose: Mapping[str, float] = field(default_factory=dict)
    view: tuple[float, float] | None = None
    speeds: tuple[str, ...] | None = None
    motion: Motion | None = None
    times: tuple[float, ...] = ()
    above: tuple[float, float] = (-55, 30)
    words: str = ""


def driven(start: Mapping[str, float], torques: Mapping[str, Any], end: float) -> Motion:
    """Motion under torques."""
    return lambda model: ax.simulate(
        model, end, start=dict(start), input=dict(torques), save_every=0.05, progress=False
    )


def asked(motion: Mapping[str, str], end: float) -> Motion:
    """A motion that is given over time."""
    return lambda model: ax.inverse_dynamics(model, dict(motion), times=end, save_every=0.05)


def around(radius: float, speed: float, forward: str, start: Mapping[str, float]) -> Motion:
    """A circle driven at constant speed."""

    def run(model: Any) -> Any:
        path = ax.paths.circle(radius, speed=speed)
        return ax.paths.follow(model, path, forward=forward, start=dict(start), save_every=0.05)

    return run


def rolled(model: Any) -> Any:
    """The disk of Saha and Angeles on its steady circle, leaning by 0.3 rad."""
    lean, turn, p = 0.3, 1.2, model.parameters
    balance = p["A"] * turn**2 * math.sin(lean) * math.cos(lean) - p["m"] * p["g"] * p["R"] * (
        math.sin(lean)
    )
    spin = balance / ((p["C"] + p["m"] * p["R"] ** 2) * turn * math.cos(lean))
    start = {
        "base.z": p["R"] * math.cos(lean),
        "base.qw": math.cos(lean / 2),
        "base.qx": math.sin(lean / 2),
        "base.wy": spin,
        "base.wz": turn * math.cos(lean),
    }
    return ax.simulate(model, 5.3, start=start, save_every=0.05, progress=False)


PUSHED = {f"tau_{side}{k}": size / 3 for side, size in (("R", 10.0), ("L", 8.0)) for k in (1, 2, 3)}
PULSES = {name: f"{valencia.TORQUE}" for name in valencia.TORQUES}
HALF = (0.0, 0.25, 0.5)

TAKEN = {
    "six_legged_platform": Taken(
        motion=asked(angeles.MOTION, 1.0),
        times=HALF,
        above=(-55, 22),
        words="out in half a second and back in another, as in `axode reproduce six-legs`",
    ),
    "flight_simulator": Taken(
        motion=asked(angeles.MOTION, 1.0),
        times=HALF,
        above=(-55, 22),
        words="out in half a second and back in another, as in `axode reproduce flight-simulator`",
    ),
    "caster_robot": Taken(
        pose={"psi": 2.6},
        view=(-66, 9),
        motion=around(math.sqrt(2.0**2 - 0.12**2), 0.8, "-y", {"psi": -math.pi / 2}),
        times=(0.0, 0.8, 1.6, 2.4),
        above=(-70, 30),
        words="a circle of 2 m at 0.8 m/s, caster ahead, as in `axode reproduce agv-circle`",
    ),
    "two_caster_robot": Taken(
        pose={"psi1": 2.3, "psi2": 2.0},
        view=(-120, 10),
        motion=around(1.2, 0.8, "y", {"psi1": math.pi / 2, "psi2": math.pi / 2}),
        times=(0.0, 0.9, 1.8, 2.7),
        above=(-95, 40),
        words="a circle of 1.2 m at 0.8 m/s, casters behind",
    ),
    "delta_array": Taken(
        motion=driven({"theta2_dot": 1.0}, angeles.DELTA_HISTORY, 6.0),
        times=(0.0, 1.5, 3.0, 4.5, 6.0),
        above=(-20, 40),
        words="under the torques of `axode reproduce delta-torques`",
    ),
    "mecanum_platform": Taken(
        motion=asked({"x": "0.25 * t", "y": "-0.2 * sin(1.5 * t)", "sigma": "0.3 * t"}, 4.0),
        times=(0.0, 1.0, 2.0, 3.0, 4.0),
        above=(-80, 45),
        words="ahead, to either side and turning at the same time",
    ),
    "rolling_disk": Taken(
        motion=rolled,
        times=(0.0, 0.8, 1.6, 2.4, 3.2, 4.0),
        above=(-60, 35),
        words="its steady circle, as in `axode reproduce disk`",
    ),
    "wheeled_pendulum": Taken(
        speeds=("phi1_dot", "phi2_dot", "theta3_dot"),
        view=(-35, 8),
        motion=driven({}, {f"M{k}": "0.1 * sin(pi * t) * (t < 1)" for k in (1, 2)}, 12.0),
        times=(0.0, 6.0, 12.0),
        above=(-60, 15),
        words="12 s of the source's rectilinear motion, a pulse of 0.1 N m in its first second",
    ),
    "cooperating_arms": Taken(
        motion=asked(arms_with_load.MOTION, 1.0),
        times=HALF,
        above=(-75, 15),
        words="out in half a second and back in another, as in `axode reproduce arms-methods`",
    ),
    "two_wheeled_cart": Taken(speeds=("q1_dot", "q2_dot", "pitch_rate")),
    "five_axis_arm": Taken(
        options=valencia.ARM,
        motion=driven(valencia.HANGING, PULSES, 1.5),
        times=(0.0, 0.5, 1.0, 1.5),
        above=(-100, 15),
        words="lifted by the source's 2 N m on four axes, as in `axode reproduce arm-pulses`",
    ),
    "six_wheel_platform": Taken(
        options={"separate": True, **valencia.PLATFORM},
        view=(-55, 35),
        motion=driven({"theta": valencia.HEADING}, PUSHED, 5.0),
        times=(0.0, 1.7, 3.3, 5.0),
        above=(-20, 45),
        words="turning under the source's 10 N m on the right and 8 N m on the left",
    ),
}


def taken(name: str) -> Taken:
    """How a mechanism is shown; from the usual viewpoint unless `TAKEN` has it."""
    return TAKEN.get(name, Taken())


def still(name: str) -> bytes:
    """Picture of a mechanism as a PNG."""
    how = taken(name)
    model = gallery.build(name, **how.options).derive(self_check=False).compile("interpreter")
    q = model.home
    for coordinate, value in how.pose.items():
        q[model.coordinates.index(coordinate)] = value
    poses, turned = model.poses(q), {}
    if how.view is not None:
        turned = dict(zip(("azimuth", "elevation"), np.radians(how.view), strict=True))
    camera = camera_of(model.scene, poses, WIDTH / HEIGHT, **turned)
    stream = io.BytesIO()
    image = picture(model.scene, poses, camera=camera, width=WIDTH, height=HEIGHT)
    imsave(stream, image, format="png")
    return stream.getvalue()


def moving(name: str) -> bytes | None:
    """Picture of a mechanism at several instants of a motion as a PNG, if it has one."""
    how = taken(name)
    if how.motion is None:
        return None
    model = gallery.build(name, **how.options).derive(self_check=False).compile("interpreter")
    azimuth, elevation = how.above
    image = instants(
        model,
        coordinates(how.motion(model), how.times),
        size=WIDE,
        azimuth=azimuth,
        elevation=elevation,
    )
    stream = io.BytesIO()
    image.quantize(160, dither=0).save(stream, format="png", optimize=True)
    return stream.getvalue()


def caption(name: str) -> str:
    """Sentence about the motion of a mechanism."""
    how = taken(name)
    times: Sequence[str] = [f"{t:g}" for t in how.times]
    return f"At {', '.join(times[:-1])} and {times[-1]} s: {how.words}."
