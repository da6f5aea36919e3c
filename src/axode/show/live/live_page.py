"""A mechanism in one file that simulates it: WebAssembly, a picture, curves and controls."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.scene.scene import floor_normal
from axode.model.exports.web_module import script, web_module
from axode.model.model import Model
from axode.problems.arguments import number
from axode.problems.assemble.assemble import assemble
from axode.problems.steps.compiled import rollout_program
from axode.show.driving_axes import STEERING_ANGLE, driving_axes
from axode.show.motion import scene_with
from axode.show.viewer.servo import Motors
from axode.show.web.scene_data import body_index, scene_data

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

ENDINGS = (".html", ".htm")
STEP = 1e-3  # [s]
FUNCTIONS = ("state_rate", "input_force")  # that the motors of a page need
LONGEST = 3000  # operations of forces that are signals of a page: more make the file too large
LIVELY = 4.0  # times a brisk torque: the most of a motor without a limit
CURVES = 3  # signals that are shown first
KEYS = {
    "ahead": "&#8593; &#8595; or W S: ahead and back",
    "turn": "&#8592; &#8594; or A D: turn",
    "sideways": "Q E: sideways",
}
PAD = (  # a button for each place of a field of three by three
    *(("sideways+", "&#8624;", "left sideways"), ("ahead+", "&#8593;", "ahead")),
    *(("sideways-", "&#8625;", "right sideways"), ("turn+", "&#8634;", "turn left")),
    *(("ahead-", "&#8595;", "back"), ("turn-", "&#8635;", "turn right")),
)


def page(
    what: Mechanism | Equations | Model,
    path: str | PathLike[str],
    *,
    law: Any = None,
    start: Any = None,
    title: str | None = None,
    signals: list[str] | tuple[str, ...] = (),
    step: float = STEP,
    parameters: Mapping[str, float] | None = None,
    play: bool = False,
) -> Path:
    """Write a page that simulates a mechanism by itself: one file, no server, no network.

    Args:
        what: A mechanism, its equations or its model. Parameters that are not fixed have sliders.
        path: The file, which ends in .html.
        law: Input as `simulate` takes it, compiled into the page; a box switches it off. Without
            one, keys and sliders drive the motors.
        start: State to begin with, as `assemble` takes it; home at rest unless given.
        title: Title of the page; the mechanism's name unless given.
        signals: Names of the curves that are shown first; some measures and coordinates unless
            given.
        step: Length of the Runge-Kutta steps [s].
        parameters: Values of parameters that are not the defaults.
        play: Whether it runs as soon as it is open.

    Raises:
        InvalidArgument: for a path of another ending, or a law that only Python can evaluate.
        FileError: if the file cannot be written.
    """
    place = Path(path)
    if place.suffix.lower() not in ENDINGS:
        raise InvalidArgument(f"path: a page ends in {' or '.join(ENDINGS)}, not '{place.name}'")
    step = number("step", step, "a number of seconds")
    if not (math.isfinite(step) and step > 0):
        raise InvalidArgument(f"step: expected a positive number of seconds, got {step}")
    write_atomically(
        place,
        page_text(
            as_model(what),
            law=law,
            start=start,
            title=title,
            signals=tuple(signals),
            step=step,
            parameters=dict(parameters or {}),
            play=play,
        ).encode(),
    )
    return place


def as_model(what: Mechanism | Equations | Model) -> Model:
    """A model with free parameters, of whatever was given."""
    if isinstance(what, Mechanism):
        what = what.derive()
    return what.on_cpu() if isinstance(what, Model) else what.compile()


def page_text(
    model: Model,
    *,
    law: Any,
    start: Any,
    title: str | None,
    signals: tuple[str, ...],
    step: float,
    parameters: dict[str, float],
    play: bool,
) -> str:
    """The page as text; the arguments are those of `page`."""
    programs = {"advance": rollout_program(model, "rk4", None)}
    if law is not None:
        programs["advance_law"] = rollout_program(model, "rk4", law)
    data = {
        **_data(model, start, parameters, [model.signals.resolve(s).name for s in signals]),
        "law": law is not None,
        "step": step,
        "play": play,
    }
    name = title or model.name.replace("_", " ")
    return _file("live", "live.html").format(
        title=html.escape(name),
        lead=html.escape(_lead(model)),
        style=_file("live", "live.css"),
        panels="\n".join(_panels(model, data)),
        data=_packed(json.dumps(data, separators=(",", ":")).encode()),
        module=_packed(web_module(model, programs, FUNCTIONS, longest=LONGEST)),
        script=_scripts(),
        version=sys.modules["axode"].__version__,
    )


def _packed(data: bytes) -> str:
    """Bytes as text, compressed: the same bytes give the same text."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")


def _scripts() -> str:
    """All JavaScript of a page as one module."""
    around = re.sub(r"^export (?=class)", "", script(), flags=re.MULTILINE)
    around = around[: around.index("/** Load the module")]
    texts = [_file("web", "scene.js"), _file("web", "curves.js"), around, _file("live", "live.js")]
    return "\n".join(text.replace('"use strict";\n', "") for text in texts).replace("</", "<\\/")


def _file(folder: str, name: str) -> str:
    return resources.files(f"axode.show.{folder}").joinpath(name).read_text(encoding="utf-8")


def _lead(model: Model) -> str:
    count = len(model.bodies)
    bodies = "1 body" if count == 1 else f"{count} bodies"
    return f"{bodies}, mobility {len(model.independent)}, {model.actuation}."


# data --------------------------------------------------------------------------------------------


def _data(
    model: Model, start: Any, parameters: dict[str, float], signals: list[str]
) -> dict[str, Any]:
    model.parameter_vector(parameters)  # an error that lists them
    free = {} if model.facts.fixed else dict(model.facts.parameters) | parameters
    options: dict[str, Any] = {"parameters": free} if free else {}
    state = assemble(model, start, parameters=free or None)
    scene = scene_with(model, free)
    motors = Motors(model, scene.size)
    torques = motors.most_torques(state.q, options) if motors.count else np.zeros(0)
    limits = model.facts.limits
    return {
        "scene": scene_data(scene),
        "touches": _touches(scene, model.poses(state.q, **options)),
        "start": {"q": state.q.tolist(), "nu": state.nu.tolist()},
        "axes": [asdict(axis) for axis in driving_axes(model, scene, state.q, options)],
        "angle": STEERING_ANGLE,
        "mode": "speed",
        "push": 0.5,
        "motors": [
            {
                "name": name,
                "unit": motors.units[k],
                "rate_unit": motors.rate_units[k],
                "rate": float(motors.most_rates[k]),
                "torque": float(torques[k]),
                "most": _most(float(torques[k]), limits[k]),
            }
            for k, name in enumerate(motors.names)
        ],
        "parameters": [_slider(name, value) for name, value in free.items()],
        "signals": signals or _first_signals(model),
    }


def _most(brisk: float, limit: float | None) -> float:
    """Largest torque that keys and sliders may ask for; what is lively has no limit of its own."""
    return LIVELY * brisk if limit is None else limit


def _slider(name: str, value: float) -> dict[str, Any]:
    low, high = sorted((0.2 * value, 3.0 * value)) if value else (-1.0, 1.0)
    return {"name": name, "value": value, "low": low, "high": high, "unit": ""}


def _touches(scene: Any, poses: Any) -> list[dict[str, Any]]:
    """Wheels on floors of the ground, which leave tracks."""
    return [
        {
            "body": body_index(scene, touch.body),
            "at": list(touch.at),
            "radius": touch.radius,
            "normal": floor_normal(scene, scene.floors[touch.floor], poses).tolist(),
        }
        for touch in scene.touches
        if body_index(scene, scene.floors[touch.floor].body) < 0
    ]


def _first_signals(model: Model) -> list[str]:
    """Signals that say most: measures, then coordinates that are not parts of a quaternion."""
    hidden = {model.coordinates[k] for four in model.facts.quaternions for k in four}
    measures = [s.name for s in model.signals.of_kind("measure")]
    speeds = [s.name for s in model.signals.of_kind("independent")]
    others = [s.name for s in model.signals.of_kind("coordinate") if s.name not in hidden]
    return [*measures, *speeds, *others][:CURVES]


# panels ------------------------------------------------------------------------------------------


def _panels(model: Model, data: dict[str, Any]) -> list[str]:
    axes = [axis["name"] for axis in data["axes"]]
    panels = []
    if axes:
        panels.append(_section("Drive", _pad(axes)))
    if data["motors"]:
        panels.append(_section("Motors", _motors(data)))
    elif data["law"]:
        panels.append(_section("Law", _law()))
    if data["parameters"]:
        panels.append(_section("Parameters", '<div id="parameters"></div>'))
    else:
        panels.append('<div id="parameters" hidden></div>')
    if not data["motors"]:
        panels.append('<div id="motors" hidden></div>')
    return panels


def _section(heading: str, content: str) -> str:
    return f'<section class="{heading.lower()}"><h2>{heading}</h2>{content}</section>'


def _pad(axes: list[str]) -> str:
    buttons = "".join(
        f'<button type="button" data-hold="{name}" aria-label="{words}">{sign}</button>'
        if name[:-1] in axes
        else "<span></span>"
        for name, sign, words in PAD
    )
    keys = "; ".join(KEYS[axis] for axis in axes)
    return f'<div class="pad">{buttons}</div><p class="hint">Hold: {keys}.</p>'


def _motors(data: dict[str, Any]) -> str:
    law = _law() if data["law"] else ""
    return (
        f'{law}<label class="plain">Set <select id="mode"><option value="speed">speed</option>'
        '<option value="torque">torque or force</option></select></label><div id="motors"></div>'
    )


def _law() -> str:
    return (
        '<label class="plain"><input id="law" type="checkbox" checked> law</label> '
        '<button id="push" type="button" title="Key: P">Push</button>'
    )
