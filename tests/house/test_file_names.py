"""A file name occurs once in the package, or its folder makes the difference obvious."""

from collections import defaultdict
from pathlib import PurePath

from house.tree import PACKAGE, sources

COMMAND = "the command line's file for the verb of the same name"

# Names that may occur in two folders, and why.
SHARED = {
    "compare": COMMAND,
    "export": COMMAND,
    "feasible": COMMAND,
    "inverse": COMMAND,
    "kinematics": "the tree in motion, and the command line's file for the verb",
    "linearize": COMMAND,
    "workspace": COMMAND,
    "simulate": COMMAND,
    "sweep": COMMAND,
    "cooperating_arms": "the mechanism of the gallery, and the source's own method for it",
}
EVERY_FOLDER = ("__init__", "__main__", "base")  # base: the abstract class of a folder's family


def collisions(paths: list[PurePath]) -> dict[str, list[str]]:
    """Base names that occur more than once, each with its paths."""
    found = defaultdict(list)
    for path in paths:
        if path.stem not in EVERY_FOLDER:
            found[path.stem].append(path.as_posix())
    return {name: places for name, places in found.items() if len(places) > 1}


def package_files() -> list[PurePath]:
    return [path.relative_to(PACKAGE) for path in sources()]


def test_a_base_name_occurs_once():
    faults = {
        name: places
        for name, places in collisions(package_files()).items()
        if name not in SHARED or len(places) > 2
    }
    assert not faults, f"rename one file of each pair by what it holds: {faults}"


def test_shared_names_are_still_shared():
    unused = SHARED.keys() - collisions(package_files())
    assert not unused, f"take {unused} off SHARED in tests/house/test_file_names.py"
    for name, reason in SHARED.items():
        folders = {PurePath(place).parts[0] for place in collisions(package_files())[name]}
        assert reason != COMMAND or "cli" in folders, name


def test_a_collision_is_seen():
    paths = [PurePath("a/x.py"), PurePath("b/x.py"), PurePath("a/__init__.py"), PurePath("b/y.py")]
    assert collisions([*paths, PurePath("b/__init__.py")]) == {"x": ["a/x.py", "b/x.py"]}
