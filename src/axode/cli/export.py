"""`axode export` and `axode ros`: a model for other programs, and parameters for ROS 2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer

from axode.cli.model_sources import Built
from axode.cli.options import AsJson, Texts, numbers, pairs, refuse, words
from axode.cli.output import check_writable, print_json, write_text
from axode.disk.atomic import write_atomically
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.model import Model

ENDINGS = {
    ".c": "C99 and its header, nothing but math.h",
    ".axm": "the compiled model, which axode.load_model and all verbs read",
    ".tex": "the equations as a LaTeX document",
    ".toml": "the mechanism itself",
    ".ptx": "a kernel for NVIDIA GPUs",
    ".fmu": "a functional mock-up unit for tools that read FMI 2 or 3",
    ".wasm": "WebAssembly and JavaScript for web pages and Node",
    ".tgz": "the same as a package of npm",
    ".urdf": "the mechanism for ROS and others, as far as URDF can say it",
    ".xml": "the mechanism for MuJoCo (MJCF)",
    ".sdf": "the mechanism for Gazebo, Drake and others",
}
FOLDER = "/"  # a CMake project
DESCRIPTIONS = (".toml", ".tex", ".urdf", ".xml", ".sdf")  # of the mechanism, not of its model


@dataclass(frozen=True)
class FormatOptions:
    """Options that some formats have, and others refuse."""

    rollout: str | None = None
    capability: str | None = None
    precision: str | None = None
    prefix: str | None = None
    fmi: str | None = None
    outputs: Texts = None
    start: Texts = None
    input: Texts = None
    step: float | None = None
    additions: bool = False

    def read(self, ending: str) -> dict[str, Any]:
        """Return the options of the format; those of other formats must not be given."""
        law = pairs("--input", self.input) or None
        c = {"prefix": self.prefix, "precision": self.precision, "input": law}
        ptx = ("rollout", "capability", "precision")
        formats: dict[str, dict[str, Any]] = {
            ".c": c,
            FOLDER: c,
            ".ptx": {name: getattr(self, name) for name in ptx},
            ".toml": {"additions": self.additions or None},
            ".fmu": {
                "fmi": self.fmi,
                "outputs": words(self.outputs) or None,
                "start": numbers("--start", self.start) or None,
                "step": self.step,
                "input": law,
            },
        }
        own = formats.get(ending, {})
        for other, options in formats.items():
            given = [name for name, v in options.items() if v is not None and name not in own]
            if given:
                raise typer.BadParameter(f"it is for {other} files", param_hint=f"--{given[0]}")
        return {name: v for name, v in own.items() if v is not None}


def export(
    *,
    built: Built,
    to: Path,
    functions: Texts = None,
    parameters: str | None = None,
    options: FormatOptions,
    as_json: AsJson = False,
) -> None:
    """Write a model for other programs: C, FMU, WebAssembly, PTX, LaTeX, TOML, URDF, MJCF, SDF.

    axode export caster_robot --to robot.c --functions inverse_dynamics

    axode export caster_robot --to robot.axm --parameters free

    axode export caster_robot --to robot.fmu --fmi 3.0

    axode export caster_robot --to robot/ --precision float32

    axode export seven_axis_arm --to robot.urdf

    Options:
        to FILE|FOLDER: File to write; its ending, .c, .axm, .fmu, .wasm, .tgz (npm), .tex, .toml,
            .ptx, .urdf, .xml (MJCF) or .sdf, chooses the format. A folder, without ending, becomes
            a CMake project of C99.
        functions NAME,NAME: Functions to export, or all; forward_dynamics by default, and all in an
            .axm file.
        parameters fixed|free: Parameters folded into the code, or arguments of it; fixed by
            default, free in an .fmu file.
        rollout rk4|dopri5: Integrator of whole runs to add to a .ptx file; none by default.
        capability NUMBER: Compute capability of the oldest GPU that runs the .ptx file; 7.5 by
            default.
        precision float64|float32: Precision of C and .ptx files; float64 by default.
        prefix TEXT: Prefix of all names in C; robot_ for robot.c by default.
        fmi 2.0|3.0: Version of FMI of an .fmu file; 2.0 by default.
        outputs NAME,NAME: Outputs of an .fmu file; coordinates, speeds, measures and energies by
            default.
        start NAME=VALUE: Start of an .fmu file; home at rest by default.
        input NAME=FORMULA: Law that is compiled into C and .fmu files, formulas of time t and of
            the state, instead of inputs; its gains are fixed.
        step SECONDS: Longest internal step of an .fmu file in co-simulation; 0.001 by default.
        additions: Write a .toml file that extends SOURCE, to add wheels, loops and motors there.
    """
    from axode.exports.export import format_as_name

    if to.suffix.lower() == ".html":
        raise typer.BadParameter(
            f"axode page {built.source} --out {to} writes a page that simulates, axode report a "
            "page about a run",
            param_hint="--to",
        )
    if mistaken := format_as_name(to, ENDINGS):
        raise typer.BadParameter(mistaken, param_hint="--to")
    project = not to.suffix or to.is_dir()
    if not project:
        check_writable(to, tuple(ENDINGS), "--to")
    if parameters is None:
        parameters = "free" if to.suffix.lower() == ".fmu" else "fixed"
    if parameters not in ("fixed", "free"):
        raise typer.BadParameter(
            f"'{parameters}' is neither fixed nor free", param_hint="--parameters"
        )
    ending, asked = FOLDER if project else to.suffix.lower(), words(functions)
    more = options.read(ending)
    if ending in DESCRIPTIONS:
        refuse(f"a {ending} file keeps its parameters", "parameters")
        written, arrays = _export_mechanism(built, to, asked, **more), {}
    else:
        model = built.model(cast(Literal["fixed", "free"], parameters))
        if asked == ("all",):
            asked = model.functions
        written = list(model.export(to, asked or None, **more))
        arrays = _arrays(model) | ({"u": []} if "input" in more else {})
    if as_json:
        print_json({"files": [str(path) for path in written], "arrays": arrays})
        return
    for path in written:
        print(f"wrote {path} ({path.stat().st_size} bytes)")
    for name, entries in arrays.items():
        print(f"  {name:<3}{', '.join(entries) or 'none'}")


def _export_mechanism(
    built: Built, to: Path, asked: tuple[str, ...], additions: bool = False
) -> list[Path]:
    ending = to.suffix.lower()
    if asked:
        raise typer.BadParameter(f"a {ending} file holds no functions", param_hint="--functions")
    if additions:
        write_text(to, built.additions_text(to))
        return [to]
    mechanism = built.mechanism()
    if ending == ".toml":
        mechanism.save(to)
        return [to]
    writers = {".urdf": mechanism.to_urdf, ".xml": mechanism.to_mjcf, ".sdf": mechanism.to_sdf}
    if ending in writers:
        writers[ending](to)
        return [to]
    from axode.cli.derive import document

    write_text(to, document(mechanism.derive()))
    return [to]


def _arrays(model: Model) -> dict[str, list[str]]:
    """Return the names in each array argument, in order."""
    free = [] if facts_of(model).fixed else list(model.parameters)
    return {
        "q": list(model.coordinates),
        "nu": list(model.independent),
        "u": list(model.inputs),
        "p": free,
    }


# parameters for ROS 2 -----------------------------------------------------------------------------


def ros(
    *,
    built: Built,
    speed: float | None = None,
    turn: float | None = None,
    friction: float = 0.6,
    share: float = 0.8,
    parameter: Texts = None,
    out: Path | None = None,
) -> None:
    """Write parameters for ROS 2: the wheel controller, and limits for Nav2.

    axode ros examples/diffdrive.toml

    axode ros examples/diffdrive.toml --speed 0.8 --turn 1.5 --out robot.yaml

    Options:
        speed NUMBER: Largest speed, in m/s; with turn, accelerations that the robot can give at all
            speeds up to these, for the velocity smoother of Nav2.
        turn NUMBER: Largest turn rate, in rad/s.
        friction NUMBER: Coefficient of friction of the wheels.
        share NUMBER: Part of friction, wheel load and motor torque that may be used.
        out FILE: File to write (.yaml); printed by default.
    """
    from axode.ros.controllers import controllers
    from axode.ros.limits import velocity_limits

    check_writable(out, (".yaml", ".yml"))
    if (speed is None) != (turn is None):
        raise typer.BadParameter("give both, or neither", param_hint="--speed, --turn")
    model = built.model()
    text = controllers(model)
    if speed is not None and turn is not None:
        values = numbers("--parameter", parameter) or None
        found = velocity_limits(model, speed, turn, friction, share=share, parameters=values)
        text += "\n" + found.nav2()
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode("utf-8"))
        print(f"wrote {out}")
