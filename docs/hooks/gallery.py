"""Pages of the gallery, made by running each mechanism when the manual is built."""

import ast
import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from textwrap import dedent

from gallery_live import live
from gallery_pictures import caption, moving, still, taken
from mkdocs.structure.files import File

from axode import gallery
from axode.mechanism.topology import parameters_of
from axode.names import title_words

PLACE = "gallery"  # the entry of the navigation that these pages belong to
READABLE = 7000  # characters of TeX; longer equations are not printed on a page
SECTION = re.compile(r"^(?:Keyword )?Args:\n((?: .*\n?|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*?)(?: \[([^\]]*)\])?\.?$")


def on_config(config):
    """Put the pages where the navigation has `Gallery: gallery`."""
    pages = [{title_words(name): f"{PLACE}/{name}.md"} for name in gallery.NAMES]
    for entry in config.nav:
        if isinstance(entry, dict) and entry.get("Gallery") == PLACE:
            entry["Gallery"] = [f"{PLACE}/index.md", *pages]
    return config


def on_files(files, config):
    """Make the pages and their pictures."""
    for name in gallery.NAMES:
        images = {f"{PLACE}/{name}.png": still(name)}
        if taken(name).motion is not None:
            images[f"{PLACE}/{name}-motion.png"] = moving(name)
        files.append(File.generated(config, f"{PLACE}/{name}.md", content=_page(name)))
        files.append(File.generated(config, f"{PLACE}/{name}-live.html", content=live(name)))
        for place, image in images.items():
            files.append(File.generated(config, place, content=image))
    files.append(File.generated(config, f"{PLACE}/index.md", content=_index()))
    return files


def _index() -> str:
    cells = [
        f'<a class="card" href="{name}.html"><img src="{name}.png" alt="{words}" '
        f'loading="lazy"><span>{title_words(name)}</span><small>{words}</small></a>'
        for name, words in gallery.NAMES.items()
    ]
    lines = [
        "# Gallery",
        "",
        "Mechanisms that come with Axode, those of the five sources first. Each page was made by "
        "running it: its picture, a page on which you drive it, its parameters, the source that "
        "builds it, the result of the mobility analysis, and the equations.",
        "",
        f'<div class="cards">{"".join(cells)}</div>',
        "",
    ]
    return "\n".join(lines)


def _page(name: str) -> str:
    function = getattr(import_module(f"axode.gallery.{name}"), name)
    equations = function().derive(independent=taken(name).speeds)
    lines = [
        *("---", "hide:", "  - toc", "---", ""),  # leaves the width to the source and equations
        f"# {title_words(name)}",
        "",
        f"![{gallery.NAMES[name]}]({name}.png)",
        "",
        SECTION.sub("", inspect.getdoc(function) or "").strip(),
        "",
        *_live(name),
        *_motion(name),
        "```sh",
        f"axode view {name} --drive",
        f"axode simulate {name} --time 5",
        f"axode report {name}",
        f"axode page {name}",
        "```",
        "",
        "```python",
        "import axode as ax",
        "",
        f'model = ax.gallery.build("{name}").derive().compile()',
        "```",
        "",
        "## Parameters",
        "",
        f'Keyword arguments of `ax.gallery.build("{name}", ...)`, in SI units.',
        "",
        "| name | unit | default | meaning |",
        "|---|---|---|---|",
        *(row.line() for row in parameters(name)),
        "",
        "## Source",
        "",
        *_source(name),
        "",
        "## Mobility",
        "",
        "```text",
        str(equations.mobility),
        "```",
        "",
        "## Equations",
        "",
        *_equations(equations, taken(name).speeds),
        "",
    ]
    return "\n".join(lines)


def _live(name: str) -> list[str]:
    """The page on which it is driven, loaded when it is unfolded."""
    return [
        f'<details class="live"><summary>Drive it here</summary><iframe src="{name}-live.html" '
        f'loading="lazy" title="{title_words(name)}, simulated in this page"></iframe></details>',
        "",
        f"[Drive it on a page of its own]({name}-live.html): it is simulated in your browser.",
        "",
    ]


def _motion(name: str) -> list[str]:
    """The second picture and what it shows, if there is one."""
    if taken(name).motion is None:
        return []
    return [f"![{title_words(name)} at several instants]({name}-motion.png)", "", caption(name), ""]


@dataclass(frozen=True)
class Row:
    """One entry of a docstring's arguments: names that share a unit and a meaning."""

    names: tuple[str, ...]
    unit: str
    defaults: tuple[object, ...]
    meaning: str

    def line(self) -> str:
        """The row of a Markdown table."""
        names = ", ".join(f"`{name}`" for name in self.names)
        defaults = ", ".join(map(_default, self.defaults))
        unit = re.sub(r"\^(\d)", r"<sup>\1</sup>", self.unit).replace(" ", "&nbsp;")
        return f"| {names} | {unit} | {defaults} | {self.meaning} |"


def parameters(name: str) -> list[Row]:
    """What the function of a mechanism takes, read from its signature and its docstring.

    Entries are `name: Meaning [unit].` in the sections `Args` and `Keyword Args`; defaults of the
    latter are those of the mechanism. Parameters that another mechanism of the gallery documents
    are taken from there.
    """
    function = getattr(import_module(f"axode.gallery.{name}"), name)
    defaults = _defaults(function)
    rows: list[Row] = []
    for names, unit, meaning in _entries(inspect.getdoc(function) or ""):
        if all(each in defaults for each in names):
            rows.append(Row(names, unit, tuple(defaults[each] for each in names), meaning))
        else:  # **values: what other mechanisms document
            rows += [
                row
                for other in re.findall(r"`(\w+)`", meaning)
                for row in parameters(other)
                if set(row.names) <= defaults.keys() - {each for row in rows for each in row.names}
            ]
    return rows


def _defaults(function) -> dict[str, object]:
    """Values that a mechanism has unless others are given, with each of its switches on as well."""
    options = {
        item.name: item.default
        for item in inspect.signature(function).parameters.values()
        if item.kind is not item.VAR_KEYWORD
    }
    switches = [{name: True} for name, value in options.items() if value is False]
    built = [parameters_of(function(**switch)) for switch in ({}, *switches)]
    values = {name: value.default for one in reversed(built) for name, value in one.items()}
    return {**values, **options}


def _entries(text: str) -> list[tuple[tuple[str, ...], str, str]]:
    """Names, unit and meaning of the entries of a docstring."""
    found = []
    for section in SECTION.findall(text):
        joined = re.sub(r"\n\s{2,}", " ", dedent(section).strip())
        for line in joined.splitlines():
            names, meaning, unit = ENTRY.match(line).groups()
            found.append((tuple(names.split(", ")), unit or "", meaning))
    return found


def _default(value: object) -> str:
    if isinstance(value, bool):
        return f"`{value}`"
    if isinstance(value, tuple):
        return f"({', '.join(map(_default, value))})"
    return f"{value:.4g}"


def _source(name: str) -> list[str]:
    """The file of a mechanism: its function without the docstring, then the functions it calls."""
    module = import_module(f"axode.gallery.{name}")
    text = inspect.getsource(module)
    lines, shown, rest, end = text.splitlines(), [], [], 0
    for node in ast.parse(text).body:
        piece = lines[end : node.end_lineno]
        end = node.end_lineno
        if isinstance(node, ast.Expr) or getattr(node, "module", "") == "__future__":
            continue
        if not isinstance(node, ast.FunctionDef):
            shown += piece
        elif node.name == name:
            document = node.body[0]
            cut = len(piece) - (node.end_lineno - document.lineno + 1)
            shown += piece[:cut] + piece[len(piece) - (node.end_lineno - document.end_lineno) :]
        else:
            rest += piece
    page = ["```python", *"\n".join(shown).strip().splitlines(), "```"]
    if rest:
        hidden = ["```python", *"\n".join(rest).strip().splitlines(), "```"]
        page += ["", '??? example "The functions that it calls"', ""]
        page += [f"    {line}".rstrip() for line in hidden]
    borrowed = r"gallery(?:\.{0} import| import .*\b{0}\b)"
    others = [one for one in gallery.NAMES if re.search(borrowed.format(one), text)]
    if others:
        page += ["", f"See also {' and '.join(f'[{one}]({one}.md)' for one in others)}."]
    return page


def _equations(equations, speeds) -> list[str]:
    tex = equations.latex()
    on = []
    if speeds:
        names = ", ".join(f"`{speed}`" for speed in speeds)
        on = [f"On the speeds of the source: `derive(independent=[...])` with {names}.", ""]
    if len(tex) > READABLE:
        return [
            *on,
            f"Written out they fill {len(tex):,} characters of TeX; "
            f"`axode derive {equations.name} --latex` prints them.",
        ]
    return [*on, rf"\[{tex}\]"]
