"""Runs the notebooks of the course again: python docs/hooks/notebooks.py [NAME ...].

No Jupyter is needed. A cell keeps what it prints, the text of its last expression, and figures.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COLOURS = 64
DPI = 80


def executed(book: dict[str, Any], *, pictures: bool = True) -> Iterator[tuple[int, list[Any]]]:
    """Run the cells of a notebook in their order; yield the place of each and its outputs."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    for place, cell in enumerate(book["cells"]):
        if cell["cell_type"] == "code":
            yield place, _run("".join(cell["source"]), names, pictures)


def _run(source: str, names: dict[str, Any], pictures: bool) -> list[Any]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    made: list[Any] = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        made.append({"name": "stdout", "output_type": "stream", "text": lines})
    if isinstance(value, Figure):
        data = {"text/plain": ["a figure"]}
        if pictures:
            data["image/png"] = base64.b64encode(_png(value)).decode()
        made.append({"data": data, "metadata": {}, "output_type": "display_data"})
    elif value is not None:
        data = {"text/plain": str(value).splitlines(keepends=True)}
        shown = {"data": data, "execution_count": None, "metadata": {}}
        made.append({**shown, "output_type": "execute_result"})
    return made


def _png(figure: Figure) -> bytes:
    """A figure in few colours, so that the notebook stays small."""
    drawn, kept = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI)
    with Image.open(drawn) as image:
        fewer = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        fewer.save(kept, format="PNG", optimize=True)
    return kept.getvalue()


def text_of(outputs: list[Any]) -> str:
    """What the outputs of a cell say in words."""
    parts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return "".join(line for part in parts for line in part)


def main(names: list[str]) -> None:
    """Run notebooks and write them back with their outputs."""
    for path in sorted(EXAMPLES.glob("course_*.ipynb")):
        if names and path.stem not in names:
            continue
        book = json.loads(path.read_text(encoding="utf-8"))
        for place, outputs in executed(book):
            book["cells"][place]["outputs"] = outputs
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
