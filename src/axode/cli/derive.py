"""`axode check`, `derive` and `compare`: what a mechanism can do, and its equations of motion."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from axode.cli.model_sources import Built
from axode.cli.options import WRONG_DATA, AsJson, Result, Texts, numbers, refuse, words
from axode.cli.output import (
    check_writable,
    format_number,
    print_json,
    show_entries,
    show_table,
    write_text,
)
from axode.errors import UnknownName, first_of

if TYPE_CHECKING:
    from axode.problems.compare import Comparison
    from axode.symbolic.equations import Equations


def check(*, built: Built, twists: bool = False, result: Result) -> None:
    """Analyse a mechanism: mobility, redundant constraints, actuation, additions.

    axode check examples/rover.toml

    axode check caster_robot

    axode check caster_robot --twists

    Options:
        twists: Count the constraints on the twists of bodies as well.
    """
    equations = built.equations()
    report = equations.mobility
    on_twists = equations.twist_redundancy if twists else None
    additions = built.additions()
    more: dict[str, object] = {"holonomic": report.holonomic, "integrable": report.integrable}
    changed = asdict(additions) if additions else {}

    def show() -> None:
        title, *lines = str(report).splitlines()
        entries = [(line[2:17].strip(), line[17:]) for line in lines]
        names = {"file": "extends", "added": "added", "removed": "removed"}
        entries += on_twists.entries() if on_twists else []
        for key, value in changed.items():
            entries.append((names[key], value if key == "file" else first_of(value) or "nothing"))
        show_entries(title, entries)

    more |= {"twists": asdict(on_twists)} if on_twists else {}
    data = asdict(report) | more | ({"additions": changed} if additions else {})
    result.deliver(data, show)


# derive -------------------------------------------------------------------------------------------


LETTER = 0.24  # [cm], of most formulas on average
MATRIX = re.compile(r"\\begin\{bmatrix\}(.*?)\\end\{bmatrix\}")
UNSEEN = str.maketrans("", "", " {}_^&\\")
COUNTED = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "multipliers")


@dataclass(frozen=True)
class Printed:
    """What of the equations is printed, how, and where to."""

    part: Texts = None
    state: Texts = None
    input: Texts = None
    steps: bool = False
    latex: bool = False
    out: Path | None = None
    as_json: AsJson = False

    def show_steps(self, equations: Equations, built: Built) -> None:
        """Print a worked derivation, or write it to a file."""
        from axode import gallery

        given = numbers("--input", self.input) if self.input is not None else None
        made = equations.derivation(numbers("--state", self.state) or None, given)
        if self.out is not None:
            ready = built.source in gallery.NAMES and not built.option
            made.save(self.out, f'ax.gallery.build("{built.source}")' if ready else None)
            print(f"{made!r}\nwrote {self.out}")
        else:
            print(made.latex() if self.latex else made)

    def show_values(self, equations: Equations) -> None:
        """Print parts as numbers at a state."""
        import numpy as np

        from axode.printing.parts import default_parts, part_values
        from axode.problems.assemble.assemble import assemble

        given = numbers("--input", self.input)
        for name in given:
            if name not in equations.inputs:
                raise UnknownName("the model", "input", name, equations.inputs)
        start = assemble(equations.compile("interpreter"), numbers("--state", self.state))
        u = np.array([given.get(name, 0.0) for name in equations.inputs])
        parts = words(self.part) or default_parts(equations)
        found = part_values(equations, parts, start.q, start.nu, u)
        if self.as_json:
            print_json([asdict(part) for part in found])
            return
        for part in found:
            heads = ("", *(f">{column}" for column in part.columns))
            rows = [
                [name, *map(format_number, row)]
                for name, row in zip(part.rows, part.values, strict=True)
            ]
            show_table(heads, rows, title=f"{part.name}: {part.what}")
            print()


def derive(
    *, built: Built, formulation: str = "recursive", independent: Texts = None, printed: Printed
) -> None:
    """Derive the equations of motion; print names, sizes and costs, and the equations if short.

    axode derive chaplygin_sleigh

    axode derive four_bar --formulation lagrange --out four_bar.tex

    axode derive rolling_disk --steps --out rolling_disk.html

    axode derive caster_robot --part T,Theta --state psi=1,theta1_dot=3

    axode derive wheeled_pendulum --independent theta1_dot,theta2_dot,theta3_dot --part I

    Options:
        formulation NAME: Formulation: recursive, complement, multipliers, lagrange, virtual_work,
            spatial_operators, pseudo_joints, reduced_order, legs.
        independent NAME,NAME: Independent speeds; chosen automatically by default. Combinations of
            speeds by formula: 'v [m/s] = r/2*(theta1_dot + theta2_dot)'.
        part NAME,NAME: Parts to print: I, C, bias, tau, gamma, delta, Theta, Theta_dot, T, T_dot,
            U, A, lambda, q_dot, energy, integrals, I_tree and others; the terms of the equations by
            default. With --state also v, v_dot, nu_dot, twists, poses, M, W, A_t and others.
        state NAME=VALUE: Print numbers at this state: coordinates, speeds or measures, the others
            home at rest.
        input NAME=VALUE: Inputs at that state; zero by default.
        steps: Derive the equations step by step, each with its matrix, its rank and its numbers at
            a state; the formulation decides on the way.
        latex: Print the equations as LaTeX and nothing else.
        out FILE: File for the equations as a LaTeX document (.tex); of --steps also a page (.html)
            or a notebook (.ipynb).
    """
    out, as_json, latex = printed.out, printed.as_json, printed.latex
    check_writable(out, (".tex", ".html", ".ipynb") if printed.steps else (".tex",))
    if printed.steps and (printed.part or as_json):
        refuse("--steps prints all parts as text", *(["part"] if printed.part else ["json"]))
    if latex and as_json:
        raise typer.BadParameter("choose one of --latex and --json", param_hint="--latex")
    equations = built.mechanism().derive(formulation, words(independent) or None)
    if printed.steps:
        printed.show_steps(equations, built)
        return
    if printed.state is not None or printed.input is not None:
        if latex or out is not None:
            refuse("numbers at a state are printed or given as --json", "latex", "out")
        printed.show_values(equations)
        return
    parts = words(printed.part) or None
    if out is not None:
        write_text(out, document(equations, parts))
    if latex:
        print(equations.latex(parts))
    elif as_json:
        print_json(_facts(equations) | {"latex": equations.latex(parts)})
    else:
        _show_equations(equations, parts, out)


def document(equations: Equations, parts: tuple[str, ...] | None = None) -> str:
    """Return a LaTeX document with the equations, on pages as wide as the longest line needs."""
    text = equations.latex(parts)
    body = text.removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    width = max(21, round(3 + LETTER * max(map(_letters, body.split(" \\\\\n")))))
    return "\n".join(
        [
            f"% Equations of motion of {' '.join(equations.name.split())}, by Axode, formulation "
            f"'{equations.formulation}'.",
            r"\documentclass[fleqn]{article}",
            r"\usepackage{amsmath}",
            rf"\usepackage[margin=1cm, paperwidth={width}cm, paperheight=29.7cm]{{geometry}}",
            r"\pagestyle{empty}",
            r"\setlength{\mathindent}{0pt}",
            r"\renewcommand{\arraystretch}{1.3}",
            r"\allowdisplaybreaks",
            r"\begin{document}",
            r"\begin{align*}",
            body,
            r"\end{align*}",
            r"\end{document}",
            "",
        ]
    )


def _letters(line: str) -> int:
    """Letters across a line of LaTeX, at most: above and below a fraction are counted together."""
    line = MATRIX.sub(_widest_row, line)
    styles = r"d*dot|mathrm|mathbf|mathsf|boldsymbol|text|operatorname"
    line = re.sub(rf"\\(t?frac|left|right|{styles}|[,;])", "", line)
    line = re.sub(r"\\(sin|cos|tan|ln|exp|arc|min|max|sqrt)", r"\1", line)
    return len(re.sub(r"\\[a-zA-Z]+", "x", line).translate(UNSEEN))


def _widest_row(matrix: re.Match[str]) -> str:
    """The longest entries of all columns of a matrix, beside each other."""
    rows = [row.split(" & ") for row in matrix[1].split(r" \\ ")]
    return " MM ".join(max(column, key=len) for column in zip(*rows, strict=True))


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
    return {name: model.operations(name) for name in asked}


def _show_equations(equations: Equations, parts: tuple[str, ...] | None, out: Path | None) -> None:
    from axode.printing.mathml import law, readable

    facts = _facts(equations)
    values = [f"{name} = {value:g}" for name, value in facts["parameters"].items()]
    groups = {word: facts[word] for word in ("coordinates", "speeds", "independent", "inputs")}
    groups |= {"parameters": values, "rows": facts["rows"]}
    entries = [
        (word, f"{len(names)}: {', '.join(names)}" if names else "none")
        for word, names in groups.items()
    ]
    show_entries(f"{equations.name}: {law(equations)}, by '{equations.formulation}'", entries)
    print()
    show_table(("function", ">operations"), [(n, str(c)) for n, c in facts["operations"].items()])
    lines = readable(equations, parts)
    if not lines and parts:
        lines = ["They are long, so here they are as LaTeX:", equations.latex(parts)]
    print("\n" + ("\n".join(lines) if lines else "The equations are long: --latex prints them."))
    if out is not None:
        print(f"wrote {out}")


# compare ------------------------------------------------------------------------------------------


def compare(*, built: Built, formulation: Texts = None, result: Result) -> None:
    """Derive a mechanism by every formulation and compare the results.

    axode compare caster_robot

    axode compare examples/fourbar.toml

    Options:
        formulation NAME,NAME: Formulations to compare: recursive, complement, multipliers,
            lagrange, virtual_work, spatial_operators, pseudo_joints, reduced_order, legs; all by
            default.
    """
    from axode.problems.compare import compare as compare_formulations

    found = compare_formulations(built.mechanism(), words(formulation) or None)
    data = asdict(found) | {"agrees": found.agrees}
    result.deliver(data, lambda: _show_comparison(found))
    if not found.agrees:
        raise typer.Exit(WRONG_DATA)


def _show_comparison(result: Comparison) -> None:
    from axode.cli.output import on_terminal

    if not on_terminal():
        print(result)
        return
    rows: list[tuple[str, ...]] = []
    for rival in result.rivals:
        if rival.refused:
            rows.append((rival.name, "-", "", "", "", rival.refused.splitlines()[0]))
        else:
            counts = (f"{n}" for n in rival.operations)
            rows.append(
                (rival.name, f"{rival.worst:.1e}", *counts, f"{rival.seconds * 1e3:.0f}", "")
            )
    show_table(
        ("formulation", ">difference", ">direct", ">inverse", ">ms", ""),
        rows,
        title=f"{result.mechanism}: difference from '{result.reference}', operations, time",
        note="All agree." if result.agrees else "They do NOT agree.",
    )
