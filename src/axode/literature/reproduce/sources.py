"""Everything that can be reproduced, by source."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from axode.errors import UnknownName
from axode.literature.reproduce.item import Item

# key: the document; its items stand in the file of the same name
SOURCES = {
    "angeles": "Angeles, Fundamentals of Robotic Mechanical Systems, chapter 12",
    "saha_angeles": "Saha and Angeles, J. Applied Mechanics 58, 1991",
    "staicu": "Staicu, Rev. Roum. Sci. Techn. - Méc. Appl. 56(2), 2011",
    "yesiloglu": "Yesiloglu, Temeltas and Kaynak, two-wheeled cart as cooperating manipulators",
    "valencia": "Valencia, Aviles and Mauledoux, J. Eng. Applied Sci. 12, 2017",
}


def catalogue() -> dict[str, Item]:
    """All items by id, in the order of the sources."""
    modules = (import_module(f"axode.literature.reproduce.{source}") for source in SOURCES)
    return {item.id: item for module in modules for item in module.ITEMS}


def chosen(ids: Iterable[str] | None) -> list[Item]:
    """Items by id or by source, each once, in the catalogue's order; all of them for None.

    Raises:
        UnknownName: for the first that is neither, listing the ids.
    """
    items = catalogue()
    if ids is None:
        return list(items.values())
    wanted = list(ids)
    for name in wanted:
        if name not in items and name not in SOURCES:
            raise UnknownName("axode reproduce", "id", name, (*items, *SOURCES))
    return [item for item in items.values() if item.id in wanted or item.source in wanted]
