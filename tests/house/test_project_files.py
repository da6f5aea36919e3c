"""Files that have to agree with each other, and things that no file may hold."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import axode
from house.tree import ROOT, relative, tracked_files

# Written with [x] where x would do, so that this file does not find itself.
FOREIGN = {
    "a path of one machine": re.compile(
        r"(?<![\w.~-])/(?:hom[e]|User[s])/\w+|(?<![\w.~-])/(?:roo[t]|wor[k])/|\b[A-Z]:\\User[s]\\"
    ),
    "a package registry": re.compile(
        r"\b(?:py[p]i|pythonh[o]sted|np[m]js|ana[c]onda)\.(?:org|com|io)\b"
        r"|--(?:extra-)?index-ur[l]|--find-lin[k]s|\bPIP_(?:EXTRA_)?INDEX_UR[L]\b"
        r"|\bartifact[o]ry\b|://[\w.:-]+/simple\b"
    ),
}
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([\w.!+]+)$")
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def foreign_matter(text: str) -> list[str]:
    """What in the text speaks of a machine or of a registry, with its line."""
    return [
        f"line {number}: {kind}, {match.group()!r}"
        for number, line in enumerate(text.splitlines(), start=1)
        for kind, pattern in FOREIGN.items()
        for match in pattern.finditer(line)
    ]


def pins(text: str) -> dict[str, str]:
    """Packages and versions of a lock; any line but ``name==version`` is a fault."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = PIN.match(line)
            assert match, f"a lock's {line!r} is not `name==version`; run `make lock`"
            found[canonicalize_name(match[1])] = match[2]
    return found


def unmet(requirements: list[str], locked: dict[str, str]) -> list[str]:
    """Requirements that the lock does not hold, or holds in a version that does not fit."""
    wanted = map(Requirement, requirements)
    return [
        str(item)
        for item in wanted
        if not item.specifier.contains(
            locked.get(canonicalize_name(item.name), "0"), prereleases=True
        )
    ]


def unreleased(text: str) -> list[str]:
    """Headings of the changelog's first section, which has to be [Unreleased]."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    assert len(parts) > 1 and parts[1].startswith("[Unreleased]\n"), (
        "CHANGELOG.md: the first section has to be `## [Unreleased]`"
    )
    return re.findall(r"^### (.+)$", parts[1], flags=re.MULTILINE)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_no_file_speaks_of_a_machine_or_a_registry():
    faults = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        faults += [f"{relative(path)}, {fault}" for fault in foreign_matter(text)]
    assert not faults, "remove:\n  " + "\n  ".join(faults)


@pytest.mark.parametrize(
    "parts",
    [
        ("see /ho", "me/ann/robot.toml"),
        ("'/ro", "ot/x'"),
        ("(/wo", "rk/notes)"),
        ("C:", "\\Users\\ann"),
        ("https://py", "pi.org/simple"),
        ("--index-", "url http://localhost"),
        ("http://10.0.0.1:80", "/simple"),
    ],
)
def test_foreign_matter_is_seen(parts):
    assert foreign_matter("".join(parts))


def test_plain_text_is_not_foreign():
    assert foreign_matter("force/work/power, /usr/bin/env, docs/home/x, a/root/b") == []


def test_versions_agree():
    wanted = axode.__version__
    assert project()["dynamic"] == ["version"]  # which pyproject.toml takes from there
    citation = re.search(r"^version: *(\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation and citation[1].strip("\"'") == wanted, (
        f"CITATION.cff: write `version: {wanted}`, as src/axode/__init__.py has it"
    )


def of_extra(name: str) -> list[str]:
    """Requirements of an extra, and of the extras of the project that it names."""
    found = []
    for text in project()["optional-dependencies"][name]:
        item = Requirement(text)
        named = sorted(item.extras) if item.name == "axode" else []
        found += [x for extra in named for x in of_extra(extra)] if named else [text]
    return found


@pytest.mark.parametrize(("layer", "around"), [("demo", "test"), ("test", "dev"), ("dev", "dev")])
def test_the_locks_hold_what_the_project_requires(layer, around):
    required = project()["dependencies"] + of_extra(layer)
    locked, larger = (
        pins((ROOT / "requirements" / f"{x}.txt").read_text()) for x in (layer, around)
    )
    assert not unmet(required, locked), f"run `make lock`: {unmet(required, locked)}"
    assert locked.items() <= larger.items(), "run `make lock`: layers differ in versions"


def test_a_stale_lock_is_seen():
    locked = pins("# why\nnumpy==1.26.4\npyyaml==6.0\n")
    assert unmet(["numpy>=2", "PyYAML"], locked) == ["numpy>=2"]
    assert unmet(["scipy>=1"], {}) == ["scipy>=1"]
    for line in ("numpy", "numpy>=1", "-e .", "numpy==1 --hash=sha256:0", "axode @ file:///x"):
        with pytest.raises(AssertionError, match="make lock"):
            pins(line)


def test_changelog_has_an_unreleased_section():
    headings = unreleased((ROOT / "CHANGELOG.md").read_text())
    strange = set(headings) - SECTIONS
    assert not strange, f"CHANGELOG.md: {strange} is none of {sorted(SECTIONS)}"


def test_a_changelog_without_one_is_seen():
    assert unreleased("# C\n\n## [Unreleased]\n\n### Fixed\n\n- x\n") == ["Fixed"]
    for text in ("# C\n", "## [0.1.0]\n\n## [Unreleased]\n", "see ## [Unreleased]\n"):
        with pytest.raises(AssertionError, match="Unreleased"):
            unreleased(text)
