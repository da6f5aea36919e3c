"""`axode derive`: the equations of motion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, mechanism_from
from axode.cli.shared import AsJson, check_writable, print_json, words, write_text

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

COUNTED = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "multipliers")


def derive(
    source: Source,
    option: Options = None,
    formulation: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Formulation: recursive, complement, multipliers, lagrange, ..."
        ),
    ] = "recursive",
    independent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,NAME", help="Independent speeds; chosen automatically by default."
        ),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Parts to print: I, C, bias, tau, gamma, delta, Theta, A, q_dot, energy; "
            "I, bias, tau, gamma, delta by default.",
        ),
    ] = None,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the equations as LaTeX and nothing else.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the equations as a LaTeX document (.tex)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Derive the equations of motion; print names, sizes and costs, and the equations if short.

    axode derive chaplygin_sleigh

    axode derive four_bar --formulation lagrange --out four_bar.tex
    """
    check_writable(out, (".tex",))
    if latex and as_json:
        raise typer.BadParameter("choose one of --latex and --json", param_hint="--latex")
    equations = mechanism_from(source, option).derive(formulation, words(independent) or None)
    parts = words(part) or None
    if out is not None:
        write_text(out, document(equations, parts))
    if latex:
        print(equations.latex(parts))
    elif as_json:
        print_json(_facts(equations) | {"latex": equations.latex(parts)})
    else:
        _show(equations, parts, out)


def document(equations: Equations, parts: tuple[str, ...] | None = None) -> str:
    """Return a LaTeX document with the equations on one page, as large as they need."""
    text = equations.latex(parts)
    lines = text.split("\\\\\n")
    heights = [1.0 + 0.6 * max(0, line.count(r" \\ ") - line.count(r"\qquad")) for line in lines]
    width = min(500, max(21, max(len(line) for line in lines) // 8))
    height = min(500, max(15, round(sum(heights))))
    page = f"margin=1cm, paperwidth={width}cm, paperheight={height}cm"
    return "\n".join(
        [
            f"% Equations of motion of {' '.join(equations.name.split())}, by Axode, formulation "
            f"'{equations.formulation}'.",
            r"\documentclass{article}",
            r"\usepackage{amsmath}",
            rf"\usepackage[{page}]{{geometry}}",
            r"\pagestyle{empty}",
            r"\begin{document}",
            r"\[",
            text,
            r"\]",
            r"\end{document}",
            "",
        ]
    )


def _facts(equations: Equations) -> dict[str, Any]:
    e = equations
    return {
        "name": e.name,
        "formulation": e.formulation,
        "coordinates": e.coordinates,
        "speeds": e.speeds,
        "independent": e.independent,
        "inputs": e.inputs,
        "parameters": e.parameters,
        "rows": e.rows,
        "measures": tuple(e.measures),
        "actuation": e.actuation,
        "operations": _operations(e),
    }


def _operations(equations: Equations) -> dict[str, int]:
    """Count the scalar operations of the usual functions, repeated terms once."""
    model = equations.compile("interpreter")
    asked = [name for name in COUNTED if name != "inverse_dynamics" or model.inputs]
    return {name: model.tape(name).n_operations for name in asked}


def _show(equations: Equations, parts: tuple[str, ...] | None, out: Path | None) -> None:
    from axode.cli.tables import show_entries, show_table
    from axode.printing.text import readable

    facts = _facts(equations)
    values = [f"{name} = {value:g}" for name, value in facts["parameters"].items()]
    groups = {word: facts[word] for word in ("coordinates", "speeds", "independent", "inputs")}
    groups |= {"parameters": values, "rows": facts["rows"]}
    entries = [
        (word, f"{len(names)}: {', '.join(names)}" if names else "none")
        for word, names in groups.items()
    ]
    show_entries(
        f"{equations.name}: I nu_dot + C nu = tau + gamma + delta, by '{equations.formulation}'",
        entries,
    )
    print()
    show_table(("function", ">operations"), [(n, str(c)) for n, c in facts["operations"].items()])
    lines = readable(equations, parts)
    if not lines and parts:
        lines = ["They are long, so here they are as LaTeX:", equations.latex(parts)]
    print("\n" + ("\n".join(lines) if lines else "The equations are long: --latex prints them."))
    if out is not None:
        print(f"wrote {out}")
