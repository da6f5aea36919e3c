r"""Formulas as MathML when the manual is built, so that no page fetches or runs anything.

`pymdownx.arithmatex` marks TeX in the pages; here latex2mathml turns it into MathML, an equation's
``\tag{N2}`` becomes an anchor, and every ``(N2)`` in the prose a link to it. Rows of the errata get
anchors as well, and every ``A-7`` in the prose leads to its row. The mathematical font comes with
the package ziamath and is copied into the site.
"""

import html
import re
from pathlib import Path

import ziamath
from mkdocs.structure.files import File

from axode.printing.mathml import to_mathml

FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
HOMES = {
    "S": "spatial",
    "K": "kinematics",
    "C": "constraints",
    "N": "complement",
    "D": "dynamics",
    "F": "formulations",
    "H": "homotopy",
}
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
TAG = re.compile(r"\\tag\{(\w+)\}")
REFERENCE = re.compile(r"\(([SKCNDFH][1-9][0-9]*)\)")
ERRATUM = re.compile(r"\b([A-E]-[1-9][0-9]*)\b")
ERRATUM_ROW = re.compile(r'<td><a class="ref" href="errata.html#(\S+)">\1</a></td>')
# Where a reference is not one: code, links, formulas, and the inside of any other HTML tag.
CLOSED = re.compile(r"(<(pre|code|math|a|h1|h2|h3)\b.*?</\2>|<[^>]+>)", re.DOTALL)


def _display(match: re.Match[str]) -> str:
    tex = html.unescape(match[1])
    tags = TAG.findall(tex)
    formula = to_mathml(TAG.sub("", tex), "block")
    number = "".join(f'<a class="tag" href="#{tag}">({tag})</a>' for tag in tags)
    anchor = f' id="{tags[0]}"' if tags else ""
    return f'<div class="equation"{anchor}><div class="formula">{formula}</div>{number}</div>'


def _inline(match: re.Match[str]) -> str:
    return to_mathml(html.unescape(match[1]), "inline")


def _linked(text: str, page_url: str) -> str:
    up = "../" * page_url.count("/")
    folder = f"{up}theory/"

    def link(match: re.Match[str]) -> str:
        tag = match[1]
        return f'<a class="ref" href="{folder}{HOMES[tag[0]]}.html#{tag}">({tag})</a>'

    def links(prose: str) -> str:
        row = rf'<a class="ref" href="{up}errata.html#\1">\1</a>'
        return ERRATUM.sub(row, REFERENCE.sub(link, prose))

    pieces, last = [], 0
    for closed in CLOSED.finditer(text):
        pieces += [links(text[last : closed.start()]), closed.group()]
        last = closed.end()
    return "".join([*pieces, links(text[last:])])


def on_files(files, config):
    """Put the font beside the style sheet."""
    files.append(File.generated(config, f"assets/{FONT.name}", abs_src_path=str(FONT)))
    return files


def on_page_content(content, page, config, files):
    """Turn the marked TeX of a page into MathML and its equation numbers into links."""
    content = INLINE.sub(_inline, DISPLAY.sub(_display, content))
    content = _linked(content, page.url)
    if page.file.src_uri == "errata.md":
        content = ERRATUM_ROW.sub(r'<td id="\1">\1</td>', content)
    return content
