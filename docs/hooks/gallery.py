"""Pages of the gallery, made by running each mechanism when the manual is built."""

import inspect
import io
from importlib import import_module

from matplotlib.image import imsave
from mkdocs.structure.files import File

from axode import gallery
from axode.show.render.picture import picture

PLACE = "gallery"  # what the navigation says where these pages belong
READABLE = 7000  # characters of TeX that are still worth a look
LONGEST = 40  # rows of a table of parameters


def on_config(config):
    """Put the pages where the navigation has `Gallery: gallery`."""
    pages = [{name.replace("_", " ").capitalize(): f"{PLACE}/{name}.md"} for name in gallery.NAMES]
    for entry in config.nav:
        if isinstance(entry, dict) and entry.get("Gallery") == PLACE:
            entry["Gallery"] = [f"{PLACE}/index.md", *pages]
    return config


def on_files(files, config):
    """Make the pages and their pictures."""
    for name in gallery.NAMES:
        text, image = _page(name)
        files.append(File.generated(config, f"{PLACE}/{name}.md", content=text))
        files.append(File.generated(config, f"{PLACE}/{name}.png", content=image))
    files.append(File.generated(config, f"{PLACE}/index.md", content=_index()))
    return files


def _index() -> str:
    cells = [
        f'<a class="card" href="{name}.html"><img src="{name}.png" alt="{words}" '
        f'loading="lazy"><span>{name}</span><small>{words}</small></a>'
        for name, words in gallery.NAMES.items()
    ]
    lines = [
        "# Gallery",
        "",
        "Mechanisms that come with Axode, those of the five sources first. Each page was made by "
        "running it: the picture, what the mobility analysis says, and the equations.",
        "",
        f'<div class="cards">{"".join(cells)}</div>',
        "",
    ]
    return "\n".join(lines)


def _page(name: str) -> tuple[str, bytes]:
    function = getattr(import_module(f"axode.gallery.{name}"), name)
    mechanism = function()
    equations = mechanism.derive()
    model = equations.compile()
    lines = [
        f"# {name}",
        "",
        f"![{gallery.NAMES[name]}]({name}.png)",
        "",
        *_described(inspect.getdoc(function) or ""),
        "",
        "```sh",
        f"axode view {name} --drive",
        f"axode simulate {name} --time 5",
        f"axode report {name}",
        "```",
        "",
        "```python",
        "import axode as ax",
        "",
        f'model = ax.gallery.build("{name}").derive().compile()',
        "```",
        "",
        "## Mobility",
        "",
        "```text",
        str(equations.mobility),
        "```",
        "",
        "## Equations",
        "",
        *_equations(equations),
        "",
        *_parameters(equations),
    ]
    stream = io.BytesIO()
    imsave(
        stream, picture(model.scene, model.poses(model.home), width=640, height=420), format="png"
    )
    return "\n".join(lines), stream.getvalue()


def _described(text: str) -> list[str]:
    """A docstring as Markdown: its arguments become a list."""
    head, _, arguments = text.partition("\nArgs:\n")
    items = []
    for line in inspect.cleandoc(arguments).splitlines() if arguments else []:
        if line.startswith(" "):
            items[-1] += " " + line.strip()
        elif ":" in line:
            names, _, words = line.partition(":")
            items.append(f"- `{names}`: {words.strip()}")
    return [head, *(["", *items] if items else [])]


def _equations(equations) -> list[str]:
    tex = equations.latex()
    if len(tex) > READABLE:
        return [
            f"Written out they fill {len(tex):,} characters of TeX; "
            f"`axode derive {equations.name} --latex` prints them."
        ]
    return [rf"\[{tex}\]"]


def _parameters(equations) -> list[str]:
    rows = list(equations.parameters.items())[:LONGEST]
    if not rows:
        return []
    table = [f"| `{name}` | {value:.6g} |" for name, value in rows]
    return ["## Parameters", "", "| name | default |", "|---|---:|", *table]
