"""The code line and the paper line carry the same tag, in both directions.

A tag is a letter of the theory page and a number. ``\\tag{N3}`` in docs/theory numbers an equation;
``# (N3)`` or a docstring's ``\\tag{N3}`` in src/axode and ``(N3)`` in docs refer to it.
"""

import io
import re
import tokenize
from pathlib import Path

from house.tree import ROOT, relative, sources

TAG = re.compile(r"(?:\\tag\{|\()([SKCNDFHXL][1-9][0-9]*)[)}]")
HOMES = {
    "S": "spatial",
    "K": "kinematics",
    "C": "constraints",
    "N": "complement",
    "D": "dynamics",
    "F": "formulations",
    "H": "homotopy",
    "L": "contacts",
    "X": "derivatives",
}
NUMBER = re.compile(r"\\tag\{(\w+)\}")
THEORY = ROOT / "docs" / "theory"


def tags_in_page(text: str) -> dict[str, int]:
    """Tags of a theory page and the line where each first stands."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for tag in TAG.findall(line):
            found.setdefault(tag, number)
    return found


def tags_in_code(source: str) -> dict[str, int]:
    """Tags in comments and docstrings; a call such as ``f(S1)`` is not one."""
    found: dict[str, int] = {}
    if not TAG.search(source):
        return found
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and token.string.endswith(('"""', "'''"))
        if token.type == tokenize.COMMENT or is_docstring:
            for tag, line in tags_in_page(token.string).items():
                found.setdefault(tag, token.start[0] + line - 1)
    return found


def collect(paths: list[Path], reader) -> dict[str, str]:
    """Each tag and the first "file:line" where it stands."""
    found: dict[str, str] = {}
    for path in paths:
        for tag, line in reader(path.read_text()).items():
            found.setdefault(tag, f"{relative(path)}:{line}")
    return found


def missing(here: dict[str, str], there: dict[str, str], remedy: str) -> list[str]:
    """A sentence for each tag that stands here and not there."""
    alone = sorted(here.keys() - there.keys(), key=lambda tag: (tag[0], int(tag[1:])))
    return [f"({tag}) of {here[tag]}: " + remedy.format(HOMES[tag[0]]) for tag in alone]


def code_tags() -> dict[str, str]:
    tags = collect(sources(), tags_in_code)
    assert tags, "no line of src/axode carries an equation tag such as `# (N1)`"
    return tags


def numbered(text: str) -> dict[str, int]:
    """Numbers of equations on a page, and the line of each."""
    lines = enumerate(text.splitlines(), start=1)
    return {tag: number for number, line in lines for tag in NUMBER.findall(line)}


def theory_tags() -> dict[str, str]:
    tags = collect(sorted(THEORY.glob("*.md")), numbered)
    assert tags, "no page of docs/theory has an equation with a number such as `\\tag{N1}`"
    return tags


def test_every_tag_in_the_code_has_its_theory():
    faults = missing(code_tags(), theory_tags(), "write the equation in docs/theory/{}.md")
    assert not faults, "code lines without theory:\n  " + "\n  ".join(faults)


def test_every_tag_in_the_theory_has_its_code():
    remedy = "tag the line that computes it; its theory is in docs/theory/{}.md"
    faults = missing(theory_tags(), code_tags(), remedy)
    assert not faults, "equations without a code line:\n  " + "\n  ".join(faults)


def test_references_in_the_manual_lead_to_an_equation():
    pages = sorted((ROOT / "docs").rglob("*.md"))
    faults = missing(collect(pages, tags_in_page), theory_tags(), "no such equation in {}.md")
    assert not faults, "references to equations that are not there:\n  " + "\n  ".join(faults)


def test_an_equation_stands_on_the_page_of_its_letter():
    away = {tag: at for tag, at in theory_tags().items() if HOMES[tag[0]] not in at}
    assert not away, f"move them, or give them another letter: {away}"


def repeated(pages: list[tuple[str, str]]) -> list[str]:
    """A sentence for each number that two equations of the theory carry."""
    found: dict[str, list[str]] = {}
    for name, text in pages:
        for number, line in enumerate(text.splitlines(), start=1):
            for tag in NUMBER.findall(line):
                found.setdefault(tag, []).append(f"{name}:{number}")
    return [f"({tag}) stands at {', '.join(at)}" for tag, at in found.items() if len(at) > 1]


def test_every_equation_of_the_theory_has_a_number_of_its_own():
    pages = [(relative(path), path.read_text()) for path in sorted(THEORY.glob("*.md"))]
    faults = repeated(pages)
    assert not faults, "give one of them a number that is free:\n  " + "\n  ".join(faults)
    assert repeated([("a.md", "\\tag{N1}\n\\tag{N2}"), ("b.md", "\\tag{N1}")]) == [
        "(N1) stands at a.md:1, b.md:1"
    ]


def test_tags_are_read_strictly():
    source = 'def f():\n    r"""Text.\n\n    \\tag{N2}"""\n    return g(S1)  # (D12), see (F1)\n'
    assert tags_in_code(source) == {"N2": 4, "D12": 5, "F1": 5}
    assert tags_in_code('x = "(K1)"\ny = (N1)\n') == {}
    assert tags_in_page("(S1) (S0) (Y1) (N1a) N2 (n3) \\tag{C4}\n(S1)") == {"S1": 1, "C4": 1}


def test_a_missing_tag_is_named_with_its_remedy():
    here = {"N1": "docs/theory/complement.md:3", "D10": "x.md:1", "D9": "x.md:2"}
    assert missing(here, {"N1": "anywhere"}, "edit {}") == [
        "(D9) of x.md:2: edit dynamics",
        "(D10) of x.md:1: edit dynamics",
    ]
