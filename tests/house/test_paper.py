"""The draft of a paper, the recipe and the citation claim what was measured, and what is true."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAPER = " ".join((ROOT / "docs" / "paper" / "paper.md").read_text(encoding="utf-8").split())


def results(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def claimed(pattern):
    found = re.search(pattern, PAPER)
    assert found, pattern
    return [float(number) for number in found.groups()]


def measured(section, what, against):
    return next(
        target["measured"]
        for target in results(f"2026-11-16-{section}")["targets"]
        if target["what"] == what and target["against"] == against
    )


def test_speeds_are_those_of_the_files():
    arm = ("Pinocchio C++, aba", "7-dof arm, direct: Axode")
    legs = ("Pinocchio C++, constraintDynamics", "6-UPS, platform twist, direct: Axode")
    found = [
        measured("machine", f"{what}, {kind}", peer)
        for peer, what in (arm, legs)
        for kind in ("scalar", "SIMD")
    ]
    said = claimed(r"arm are ([\d.]+) times .* samples, and (\d+) times in vectors")
    said += claimed(r"legs is (\d+) and (\d+) times as fast")
    assert [round(x, 1 if k == 0 else 0) for k, x in enumerate(found)] == said
    steps = [
        measured("simulate", f"simulate: Axode rk4, {runs}", "MuJoCo RK4")
        for runs in ("one run", "4096 runs")
    ]
    assert [round(x) for x in steps] == claimed(
        r"advances (\d+) times .* run and (\d+) times for 4096"
    )
    compiling = measured("machine", "compile 6-UPS direct, batch", "")
    assert round(compiling, 1) == claimed(r"the platform takes ([\d.]+) s")[0]
    conditions = results("2026-11-16-machine")["conditions"]
    generation = claimed(r"AMD Zen (\d), AVX-512, 16 November 2026")[0]
    assert conditions["processor"].startswith(f"AMD EPYC (znver{generation:.0f})")


def test_agreement_with_the_oracle_is_that_of_the_soak():
    soak = results("2026-11-19-soak-4000")
    families = soak["families"].values()
    count, agree, refused = claimed(
        r"Of (\d+) random mechanisms.*?, (\d+) agreed with the oracle, (\d+)"
    )
    assert count == soak["mechanisms"] == sum(family["count"] for family in families)
    assert agree == sum(family["agree"] for family in families)
    assert count - agree - refused == sum(family["failed"] for family in families) == 1


def test_peers_are_those_of_the_page_on_trust():
    trust = (ROOT / "docs" / "develop" / "trust.md").read_text(encoding="utf-8")
    agree, files, still, refused = claimed(
        r"(\d+) of (\d+) files agree with MuJoCo.*?, (\d+) hold nothing that moves and (\d+) are"
    )
    assert f"{files:.0f} MJCF files" in trust
    row = f"{agree:.0f} files agree, mass matrix to 2e-15, bias to 8e-16; {still:.0f} hold nothing"
    assert row in trust and f"{refused:.0f} are refused with a list" in trust


def test_recipe_and_citation_agree_with_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    run = re.search(r"\n  run:\n((?:    - .*\n)+)", recipe)
    needs = {line.removeprefix("    - ").replace(" ", "") for line in run[1].splitlines()}
    python = f"python{project['requires-python'].replace(' ', '')}"
    assert needs == {need.replace(" ", "") for need in project["dependencies"]} | {python}
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    init = (ROOT / "src" / "axode" / "__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{citation["version"]}"' in init
    assert citation["license"] == project["license"]


def test_the_workflow_runs_what_exists():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    commands = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([\w-]+)", commands):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"\b(?:tests|requirements|dist)/[\w./-]*\w", commands):
        assert path.startswith("dist") or (ROOT / path).exists(), path
    matrix = jobs["quick"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert matrix["python"] == named
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}
