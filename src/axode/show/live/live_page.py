"""A mechanism in one file that simulates it: WebAssembly, a picture, curves and controls."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import re
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments, renamed_keywords
from axode.disk.atomic import write_atomically
from axode.errors import AxodeError, InvalidArgument, NotApplicable, UnknownName
from axode.exports.web_module import script, web_module
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.scene.scene import floor_normal
from axode.model.model import Model
from axode.model.model_parts import facts_of, model_on_cpu, require_ideal
from axode.names import title_words
from axode.numerics.tolerances import NEGLIGIBLE
from axode.problems.arguments import number
from axode.problems.assemble.assemble import assemble
from axode.problems.inputs.inputs import plan_input
from axode.problems.inputs.laws import model_under
from axode.problems.runs.settings import DEFAULT_STEP
from axode.problems.simulate.scenario import Scenario
from axode.problems.simulate.simulate import simulate
from axode.problems.steps.compiled import rollout_program
from axode.show.driving_axes import STEERING_ANGLE, driving_axes, motor_coordinates
from axode.show.motion import scene_with
from axode.show.viewer.drive import Motors
from axode.show.web.scene_data import asset, body_index, scene_data
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
ENDINGS = (".html", ".htm")
FUNCTIONS = ("state_rate", "input_force")  # that the motors of a page need
LONGEST = 3000  # operations of forces that are signals of a page: more make the file too large
TURN, TURN_IN_LOOP = 1.5, 0.5  # [rad] to either side of the start, of a slider of an angle
SLIDE, SLIDE_IN_LOOP = 0.2, 0.05  # sizes of the mechanism, of a slider of a length
LIVELY = 4.0  # times a brisk torque: the most of a motor without a limit
TRIAL = 2.0  # [s] of a law, to see which signals move
NEARBY = 1e-2  # [s] of motion to a configuration that is not special
CURVES = 3  # signals that are shown first
KEYS = {
    "ahead": "I K, &#8593; &#8595; or W S: ahead and back",
    "turn": "J L, &#8592; &#8594; or A D: turn",
    "sideways": "U O or Q E: sideways",
}
PAD = (  # a button for each place of a field of three by three
    *(("sideways+", "&#8624;", "left sideways"), ("ahead+", "&#8593;", "ahead")),
    *(("sideways-", "&#8625;", "right sideways"), ("turn+", "&#8634;", "turn left")),
    *(("ahead-", "&#8595;", "back"), ("turn-", "&#8635;", "turn right")),
)


@renamed_keywords(law="input")
@stoppable
def page(
    what: Mechanism | Equations | Model | Scenario,
    path: str | PathLike[str],
    *,
    input: Any = None,
    start: Any = None,
    title: str | None = None,
    signals: str | list[str] | tuple[str, ...] = (),
    step: float | None = None,
    parameters: Mapping[str, float] | None = None,
    play: bool = False,
    keys: Mapping[str, str] | None = None,
) -> Path:
    """Write a self-contained page that simulates a mechanism: one file, no server, no network.

    Args:
        what: A mechanism, its equations or its model, or a `Scenario`, whose input is the law and
            whose start, parameters and step are taken. Parameters that are not fixed have sliders.
        path: The file, which ends in .html.
        input: Law as `simulate` takes it, compiled into the page; a box switches it off. Without
            one, keys and sliders drive the motors.
        start: State to begin with, as `assemble` takes it; home at rest unless given.
        title: Title of the page; the mechanism's name in words unless given.
        signals: Names of the curves that are shown first; unless given, some measures, speeds and
            coordinates that move.
        step: Length of the Runge-Kutta steps, 1 ms unless given [s].
        parameters: Values of parameters that are not the defaults.
        play: Whether it runs as soon as it is open.
        keys: Parameters that the law reads and that keys change while they are held, by "ahead",
            "sideways" and "turn": the wanted speeds of a robot that its law keeps upright.

    Raises:
        InvalidArgument: for a path of another ending, or a law that a page cannot evaluate.
        UnknownName: for parameters, signals or keys that do not exist.
        FileError: if the file cannot be written.
    """
    check_arguments(page, locals())
    place = Path(path)
    if place.suffix.lower() not in ENDINGS:
        raise InvalidArgument(f"path: a page ends in {' or '.join(ENDINGS)}, not '{place.name}'")
    if isinstance(what, Scenario):
        given: Mapping[str, Any] = dict(what.options)
        input = given.get("input") if input is None else input
        start = given.get("start") if start is None else start
        step = given.get("step") if step is None else step
        parameters = given.get("parameters") if parameters is None else parameters
        what = what.model
    step = DEFAULT_STEP if step is None else number("step", step, "a number of seconds")
    if not (math.isfinite(step) and step > 0):
        raise InvalidArgument(f"step: expected a positive number of seconds, got {step}")
    if isinstance(what, Mechanism):
        what = what.derive()
    # free parameters have sliders
    model = model_on_cpu(what) if isinstance(what, Model) else what.compile()
    require_ideal("page", model)
    wide = model_under(input, model)  # with what the law remembers
    shown = [signals] if isinstance(signals, str) else signals
    names = [wide.signals.resolve(name).name for name in shown]
    programs = {"advance": rollout_program(wide, "rk4", None)}
    constant = _constant_inputs(wide, input)
    if constant is None:
        programs["advance_law"] = rollout_program(wide, "rk4", input)
    begun = None
    if constant is None or wide is not model:
        law = {"input": input, "start": start, "parameters": dict(parameters or {}) or None}
        begun = Scenario(model, TRIAL, step=step, method="rk4", **law)
    if begun is not None and wide is not model:
        start = begun.starts.q[0], begun.starts.nu[0, : len(model.independent)]
    data = {
        **_data(model, start, dict(parameters or {}), names, begun),
        **_keys(model, input, dict(keys or {})),
        "law": input is not None,
        "law_program": constant is None,
        "held": constant or [],
        "step": step,
        "play": play,
    }
    if begun is not None and wide is not model:
        data["start"]["nu"] = begun.starts.nu[0].tolist()
    write_atomically(place, _page_text(wide, title, data, programs).encode())
    return place


def _page_text(
    model: Model, title: str | None, data: dict[str, Any], programs: dict[str, Any]
) -> str:
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise NotApplicable(f"page: '{model.name}' has numbers that are not finite") from None
    name, count = title or title_words(model.name), len(model.bodies)
    mobility = len(model.independent) - len(facts_of(model).memory)
    bodies = "1 body" if count == 1 else f"{count} bodies"
    return asset("live", "live.html").format(
        title=html.escape(name),
        lead=html.escape(f"{bodies}, mobility {mobility}, {model.actuation}."),
        style=asset("live", "live.css"),
        panels="\n".join(_panels(model, data)),
        data=_packed(text.encode()),
        module=_packed(web_module(model, programs, FUNCTIONS, longest=LONGEST)),
        script=_scripts(),
        version=sys.modules["axode"].__version__,
    )


def _constant_inputs(model: Model, law: Any) -> list[float] | None:
    """Inputs that a law holds constant; None if it must be computed in every step."""
    plan = plan_input(model, law)
    if plan.callback is not None:
        raise InvalidArgument("input: a Callback runs in Python, not in a page; give a formula")
    if plan.sampled is not None or plan.batch:
        raise InvalidArgument("input: a page takes one law, not samples or many; give a formula")
    return None if plan.constant is None else plan.constant.tolist()


def _keys(model: Model, law: Any, keys: dict[str, str]) -> dict[str, Any]:
    """Parameters that keys change, and by how much."""
    if keys and (law is None or facts_of(model).fixed):
        raise InvalidArgument("keys: they change parameters, free ones, that a law reads")
    for axis, name in keys.items():
        if axis not in KEYS:
            raise UnknownName("a page", "key", axis, KEYS)
        if name not in model.parameters:
            raise UnknownName(f"model '{model.name}'", "parameter", name, model.parameters)
    keyed = {name: abs(model.parameters[name]) or 1.0 for name in keys.values()}
    return {"keys": keys, "keyed": keyed}


def _packed(data: bytes) -> str:
    """Bytes as text, compressed: the same bytes give the same text."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")


def _scripts() -> str:
    """All JavaScript of a page as one module."""
    around = re.sub(r"^export (?=class)", "", script(), flags=re.MULTILINE)
    around = around[: around.index("/** Load the module")]
    texts = [asset("web", "scene.js"), asset("web", "curves.js"), around, asset("live", "live.js")]
    return "\n".join(text.replace('"use strict";\n', "") for text in texts).replace("</", "<\\/")


# data --------------------------------------------------------------------------------------------


def _data(
    model: Model, start: Any, parameters: dict[str, float], signals: list[str], law: Scenario | None
) -> dict[str, Any]:
    model.parameter_vector(parameters)  # an error that lists them
    free = {} if facts_of(model).fixed else dict(facts_of(model).parameters) | parameters
    options: dict[str, Any] = {"parameters": free} if free else {}
    state = assemble(model, start, parameters=free or None)
    scene = scene_with(model, free)
    motors = Motors(model, scene.size)
    torques = motors.most_torques(state.q, options) if motors.count else np.zeros(0)
    limits = facts_of(model).limits
    rates = motors.rate_names(state.q, options) if motors.count else []
    places = motor_coordinates(model, state.q, options)
    axes = [asdict(axis) for axis in driving_axes(model, scene, state.q, options)]
    settable = places and not axes and min(places) >= 0
    loops = bool(facts_of(model).residual_rows)
    turn = TURN_IN_LOOP if loops else TURN
    slide = scene.size * (SLIDE_IN_LOOP if loops else SLIDE)
    return {
        "scene": scene_data(scene),
        "touches": _touches(scene, model.poses(state.q, **options)),
        "start": {"q": state.q.tolist(), "nu": state.nu.tolist()},
        "axes": axes,
        "angle": STEERING_ANGLE,
        "mode": "position" if settable else "speed",
        "push": 0.5,
        "motors": [
            {
                "name": name,
                "label": facts_of(model).motor_names[k],
                "unit": motors.units[k],
                "rate_name": rates[k],
                "rate_unit": motors.rate_units[k],
                "rate": float(motors.most_rates[k]),
                "torque": float(torques[k]),
                # what is lively has no limit of its own
                "most": LIVELY * float(torques[k]) if limits[k] is None else limits[k],
                "coordinate": places[k],
                "centre": float(model.home[places[k]]) if places[k] >= 0 else 0.0,
                "reach": slide if motors.units[k] == "N" else turn,
            }
            for k, name in enumerate(motors.names)
        ],
        "parameters": [_slider(name, value) for name, value in free.items()],
        "signals": signals or _first_signals(model, state.q, options, law),
    }


def _slider(name: str, value: float) -> dict[str, Any]:
    low, high = sorted((0.2 * value, 3.0 * value)) if value else (-1.0, 1.0)
    return {"name": name, "value": value, "low": low, "high": high}


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


def _first_signals(
    model: Model, q: Array, options: dict[str, Any], law: Scenario | None
) -> list[str]:
    """Choose the main signals among those that move: measures, speeds, then coordinates that are
    not of a quaternion.

    Under a law those move that do so in its first seconds, without one those that can.
    """
    hidden = {model.coordinates[k] for four in facts_of(model).quaternions for k in four}
    measures = [s.name for s in model.signals.of_kind("measure") if ".contact." not in s.name]
    speeds = [s.name for s in model.signals.of_kind("independent")]
    others = [s.name for s in model.signals.of_kind("coordinate") if s.name not in hidden]
    names = [*measures, *speeds, *others]
    moving = _moved_by(law) if law is not None else _movable(model, q, options)
    return ([name for name in names if name in moving] or names)[:CURVES]


def _moved_by(law: Scenario) -> set[str]:
    """Return the signals that change in a trial run, none if it fails."""
    with warnings.catch_warnings(), suppress(AxodeError):
        warnings.simplefilter("ignore")
        run = simulate(law, progress=False)
        ends = {name: (np.nanmin(run[name]), np.nanmax(run[name])) for name in run.names}
        return {
            n for n, (low, high) in ends.items() if high - low > NEGLIGIBLE * max(1.0, abs(high))
        }
    return set()


def _movable(model: Model, q: Array, options: dict[str, Any]) -> set[str]:
    """Return independent speeds, and the coordinates and measures that they change nearby."""
    n = len(model.independent)
    along = model.rates(q, np.linspace(1.0, 2.0, n), **options) if n else np.zeros_like(q)
    near = q + NEARBY * along  # where nothing is special
    still = model.rates(near, np.zeros(n), **options)
    moves = np.abs(model.rates(near, np.eye(n), **options) - still).max(axis=0, initial=0.0)
    found = {*model.independent}
    found |= {
        name for name, rate in zip(model.coordinates, moves, strict=True) if rate > NEGLIGIBLE
    }
    if model.measure_names:
        by = model.measures_jacobian(near, np.zeros(n), **options)
        rates = model.rates(near, np.eye(n), **options) - still
        change = np.concatenate([by[:, : len(q)] @ rates.T, by[:, len(q) :]], axis=1)
        sizes = np.abs(change).max(axis=1, initial=0.0)
        found |= {
            m for m, size in zip(model.measure_names, sizes, strict=True) if size > NEGLIGIBLE
        }
    return found


# panels ------------------------------------------------------------------------------------------


def _panels(model: Model, data: dict[str, Any]) -> list[str]:
    axes = dict.fromkeys([*(axis["name"] for axis in data["axes"]), *data["keys"]])
    panels = []
    if axes:
        panels.append(_section("Drive", _pad(list(axes))))
    if data["law"] or not data["motors"]:
        box = '<label class="plain"><input id="law" type="checkbox" checked> law on</label> '
        push = '<button id="push" type="button" title="Changes the speeds at random. Key: P">'
        content = f"{box if data['law'] else ''}{push}Push</button>"
        panels.append(_section("Law" if data["law"] else "Motion", content))
    if data["motors"]:
        panels.append(_section("Motors", _motors(data)))
    else:
        panels.append('<div id="motors" hidden></div>')
    if data["parameters"]:
        rows = '<div id="parameters"></div>'
        again = '<button id="defaults" type="button">Defaults</button>'
        panels.append(_section("Parameters", rows + again))
    else:
        panels.append('<div id="parameters" hidden></div>')
    return panels


def _section(heading: str, content: str) -> str:
    name = heading.lower()
    return (
        f'<section class="{name}" aria-labelledby="of-{name}"><h2 id="of-{name}">{heading}</h2>'
        f"{content}</section>"
    )


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
    modes = {"position": "angle or length", "speed": "speed", "torque": "torque or force"}
    if any(motor["coordinate"] < 0 for motor in data["motors"]):
        del modes["position"]
    options = "".join(f'<option value="{mode}">{text}</option>' for mode, text in modes.items())
    return (
        f'<label class="plain">Set <select id="mode">{options}</select></label>'
        '<div id="motors"></div>'
        + ("" if data["axes"] else '<p class="hint">I K: move one motor. J L: which.</p>')
    )
