"""What the verbs share: the mechanism they are asked about, options, and how a result is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism

# 0 done, 1 the mechanism or the data is wrong, 2 the command is wrong
WRONG_DATA = 1

Source = Annotated[str, typer.Argument(help="A TOML file, or a name from the gallery.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print for machines.")]


def mechanism_from(source: str) -> Mechanism:
    """A mechanism from a file or from the gallery, whichever the word names."""
    from axode import gallery

    if source in gallery.NAMES and not Path(source).exists():
        return gallery.build(source)
    if source.endswith(".toml") or Path(source).exists():
        from axode.mechanism.files import load

        return load(source)
    return gallery.build(source)  # an error that lists the gallery


def print_json(value: Any) -> None:
    """For machines; what JSON has no word for is told as text."""
    print(json.dumps(value, indent=2, default=str))
