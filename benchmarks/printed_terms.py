"""Terms of printed equations of the sources' mechanisms: `python -m benchmarks.printed_terms`.

Each entry, definition and common factor is a term, and so is each sign between two others, but for
those in angles. Entries that are zero, and those that are printed as equal to others, are none.
Columns: I, C, C nu, gamma, and I with C nu, whose definitions they share. `--write` puts the
numbers into the table of docs/sources/printed.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import axode as ax

PAGE = Path(__file__).parents[1] / "docs" / "sources" / "printed.md"

MECHANISMS = (
    "four_bar",
    "six_legged_platform",
    "flight_simulator",
    "caster_robot",
    "two_caster_robot",
    "delta_array",
    "mecanum_platform",
    "rolling_disk",
    "wheeled_pendulum",
    "cooperating_arms",
    "two_wheeled_cart",
    "five_axis_arm",
    "six_wheel_platform",
    "mobile_manipulator",
)
PARTS = (("I",), ("C",), ("bias",), ("gamma",), ("I", "bias"))
MATRIX = re.compile(r"(.*?)(?:\\, )?\\begin\{bmatrix\}(.*?)\\end\{bmatrix\}", re.DOTALL)
ANGLE = re.compile(r"\\(?:sin|cos)(?:\^\{\d\})?\\left\([^()]*\\right\)")
SIGN = re.compile(r" [+-] ")


def lines_of(latex: str) -> list[str]:
    """Lines of an aligned environment."""
    return latex.split("\\\\\n")


def count_terms(line: str) -> int:
    """Count the terms on the right-hand side of a line."""
    right = ANGLE.sub("a", line.partition("&=")[2].replace(r"\end{aligned}", "")).strip()
    if not right or right in ("0", r"\mathbf{0}"):
        return 0
    if found := MATRIX.fullmatch(right):
        entries = re.split(r" & | \\\\ ", found[2])
        written = [entry for entry in entries if entry.strip() != "0"]
        factor = found[1].strip()
        outside = 1 + len(SIGN.findall(factor)) if factor else 0
        return outside + sum(1 + len(SIGN.findall(entry)) for entry in written)
    return 1 + len(SIGN.findall(right))


def printed_terms(equations: ax.Equations, parts: tuple[str, ...]) -> int:
    """Count the terms of parts as they are printed, definitions included."""
    heading = {*map(str.strip, lines_of(equations.latex(("q_dot",))))}
    lines = [line for line in lines_of(equations.latex(parts)) if line.strip() not in heading]
    return sum(count_terms(line) for line in lines if not line.startswith(r"\mathbf{v} &="))


def row_of(page: str, name: str) -> str:
    """Return the row of a mechanism in the table."""
    return next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))


def numbers_of(row: str) -> list[int]:
    """Return the numbers of a row: what is printed now."""
    return [int(number) for number in re.findall(r"→ (\d+)", row)]


def main() -> None:
    """Print the numbers of all mechanisms; write them into the table if asked."""
    page = PAGE.read_text(encoding="utf-8")
    for name in MECHANISMS:
        equations = ax.gallery.build(name).derive(self_check=False)
        numbers = [printed_terms(equations, parts) for parts in PARTS]
        print("  ".join([f"{name:20}", *(f"{number:5}" for number in numbers)]), flush=True)
        left, row = iter(numbers), row_of(page, name)
        page = page.replace(row, re.sub(r"→ \d+", lambda _: f"→ {next(left)}", row))  # noqa: B023
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
