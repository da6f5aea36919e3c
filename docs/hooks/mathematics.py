r"""Formulas as MathML when the manual is built, so that no page fetches or runs anything.

`pymdownx.arithmatex` marks TeX in the pages; here latex2mathml turns it into MathML, an equation's
``\tag{N2}`` becomes an anchor, and every ``(N2)`` in the prose a link to it. The mathematical font
comes with the package ziamath and is copied into the site.
"""

import html
import re
from pathlib import Path

import ziamath
from latex2mathml.converter import convert
from mkdocs.structure.files import File

FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
HOMES = {
    "S": "spatial",
    "K": "kinematics",
    "C": "constraints",
    "N": "complement",
    "D": "dynamics",
    "F": "formulations",
}
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
TAG = re.compile(r"\\tag\{(\w+)\}")
REFERENCE = re.compile(r"\(([SKCNDF][1-9][0-9]*)\)")
# Where a reference is not one: code, links, formulas, and the inside of any other HTML tag.
CLOSED = re.compile(r"(<(pre|code|math|a|h1|h2|h3)\b.*?</\2>|<[^>]+>)", re.DOTALL)

# What latex2mathml does not know, or knows better by another name.
REWRITES = (
    (re.compile(r"\\(begin|end)\{aligned\}"), r"\\\1{split}"),
    (re.compile(r"\\mathrm\{([^{}]*)\}"), r"\\text{\1}"),
)
# What browsers want said: accents close to their letter, a bold unit matrix, no empty names, space
# after a function's name and none after a sign.
CORRECTIONS = (
    (re.compile(r"<mover>(?=<m(?:i|row)>(?:<mi>)?[^<]*(?:</mi>)?</m(?:i|row)><mo)"),
     '<mover accent="true">'),
    (re.compile(r'<mn mathvariant="bold">1</mn>'), "<mi>\U0001d7cf</mi>"),
    (re.compile(r"<mi />"), "<mrow></mrow>"),
    (re.compile(r"(<mi>(?:sin|cos|tan)</mi>)(?=<mi>)"), r'\1<mspace width="0.167em" />'),
    (re.compile(r"(<mo>&#x0003D;</mo>|<mo>&#x0002C;</mo>|&#x00028;</mo>|<mspace[^>]*/>)"
                r"<mo>&#x02212;</mo>"), r'\1<mo form="prefix">&#x02212;</mo>'),
)  # fmt: skip


def to_mathml(tex: str, display: str) -> str:
    """TeX to MathML; refuses what the converter would print as it stands."""
    for pattern, replacement in REWRITES:
        tex = pattern.sub(replacement, tex)
    mathml = convert(tex.strip(), display=display)
    for pattern, replacement in CORRECTIONS:
        mathml = pattern.sub(replacement, mathml)
    unknown = re.search(r"\\[A-Za-z]+", html.unescape(mathml))
    if unknown:
        raise ValueError(f"latex2mathml does not know {unknown.group()} in: {tex}")
    return mathml


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

    pieces, last = [], 0
    for closed in CLOSED.finditer(text):
        pieces += [REFERENCE.sub(link, text[last : closed.start()]), closed.group()]
        last = closed.end()
    return "".join([*pieces, REFERENCE.sub(link, text[last:])])


def on_files(files, config):
    """Put the font beside the style sheet."""
    files.append(File.generated(config, f"assets/{FONT.name}", abs_src_path=str(FONT)))
    return files


def on_page_content(content, page, config, files):
    """Turn the marked TeX of a page into MathML and its equation numbers into links."""
    content = INLINE.sub(_inline, DISPLAY.sub(_display, content))
    return _linked(content, page.url)
