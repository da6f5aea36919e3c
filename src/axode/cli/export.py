"""`axode export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from axode.cli.model_sources import Options, Source, mechanism_from, model_from
from axode.cli.shared import AsJson, print_json, words, writable, write_text

if TYPE_CHECKING:
    from axode.model.model import Model

ENDINGS = {
    ".c": "C99 and its header, nothing but math.h",
    ".axm": "the compiled model, which axode.load_model and all verbs read",
    ".tex": "the equations as a LaTeX document",
    ".toml": "the mechanism itself",
    ".ptx": "a kernel for NVIDIA GPUs",
}


def export(
    source: Source,
    to: Annotated[
        Path, typer.Option(help="The file to write: .c, .axm, .tex, .toml or .ptx says what.")
    ],
    option: Options = None,
    functions: Annotated[
        list[str] | None,
        typer.Option(
            help="Of the model, between commas, or all; .axm has all, others "
            "forward_dynamics unless given."
        ),
    ] = None,
    parameters: Annotated[
        str, typer.Option(help="fixed folds them into the code, free leaves them arguments.")
    ] = "fixed",
    rollout: Annotated[
        str | None, typer.Option(help="rk4 or dopri5 adds whole runs to a .ptx file.")
    ] = None,
    capability: Annotated[
        str | None, typer.Option(help="Oldest GPU that a .ptx file is for; 7.5 unless given.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="float64 or float32, of a .ptx file.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(help="What names in a .c file begin with; robot_ in robot.c unless given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a model for other programs: C, a model file, LaTeX, TOML, a GPU kernel.

    axode export caster_robot --to robot.c --functions inverse_dynamics

    axode export caster_robot --to robot.axm --parameters free
    """
    writable(to, tuple(ENDINGS), "--to")
    if parameters not in ("fixed", "free"):
        raise typer.BadParameter(
            f"'{parameters}' is neither fixed nor free", param_hint="--parameters"
        )
    ending, asked = to.suffix.lower(), words(functions)
    more = _of_kernels(ending, rollout, capability, precision)
    if prefix is not None:
        if ending != ".c":
            raise typer.BadParameter("it is for .c files", param_hint="--prefix")
        more["prefix"] = prefix
    if ending in (".toml", ".tex"):
        written, arrays = _described(source, option, to, ending, asked), {}
    else:
        model = model_from(source, option, cast(Literal["fixed", "free"], parameters))
        written = _compiled(model, to, asked, more)
        arrays = _arrays(model)
    if as_json:
        print_json({"files": [str(path) for path in written], "arrays": arrays})
        return
    for path in written:
        print(f"wrote {path} ({path.stat().st_size} bytes)")
    for name, entries in arrays.items():
        print(f"  {name:<3}{', '.join(entries) or 'none'}")


def _of_kernels(ending: str, *given: str | None) -> dict[str, str]:
    """Options that only kernels have, by name."""
    names = ("rollout", "capability", "precision")
    found = {name: value for name, value in zip(names, given, strict=True) if value is not None}
    if found and ending != ".ptx":
        raise typer.BadParameter("it is for .ptx files", param_hint=f"--{next(iter(found))}")
    return found


def _described(
    source: str, option: Options, to: Path, ending: str, asked: tuple[str, ...]
) -> list[Path]:
    if asked:
        raise typer.BadParameter(f"a {ending} file holds no functions", param_hint="--functions")
    mechanism = mechanism_from(source, option)
    if ending == ".toml":
        mechanism.save(to)
        return [to]
    from axode.cli.derive import document

    write_text(to, document(mechanism.derive()))
    return [to]


def _compiled(model: Model, to: Path, asked: tuple[str, ...], more: dict[str, Any]) -> list[Path]:
    from axode.errors import UnknownName

    if asked == ("all",):
        asked = model.functions
    for name in asked:
        if name.partition("_by_")[0] not in model.functions:
            raise UnknownName(f"model '{model.name}'", "function", name, model.functions)
    return list(model.export(to, asked or None, **more))


def _arrays(model: Model) -> dict[str, list[str]]:
    """What the arguments hold, in order."""
    free = [] if model.facts.fixed else list(model.parameters)
    return {
        "q": list(model.coordinates),
        "nu": list(model.independent),
        "u": list(model.inputs),
        "p": free,
    }
