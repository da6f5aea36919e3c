"""Files, page and command line of reproductions."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from axode.literature.reproduce import SOURCES, Check, Verdict, catalogue, reproduce
from axode.literature.reproduce.item import FigureCurve, FigurePanel, Item, ItemResult, chosen
from axode.literature.reproduce.making import symbols

FAILING = Check("speed", 2.0, 1.0, 0.1, "m/s")
PASSING = Check("speed", 1.0, 1.0, 0.1, "m/s", "printed")
KNOWN = Check("speed", 2.0, 1.0, 0.1, "m/s", "printed", why="a misprint", explained=1.5)


def made_up(name: str, check: Check) -> Item:
    t = np.linspace(0.0, 1.0, 5)

    def compute() -> ItemResult:
        panel = FigurePanel(
            "Fig. 1: <made up>",
            "t [s]",
            "y [m]",
            (FigureCurve(t, t**2, "Axode"), FigureCurve(t, t, "printed", "printed")),
        )
        return ItemResult({"t [s]": t, "y [m]": t**2}, [panel], "A <caption> & more.", [check])

    return Item(name, "staicu", f"shows {name} & so on", compute)


@pytest.fixture
def shelf(monkeypatch) -> dict[str, Item]:
    """A catalogue of quick items, one of each verdict."""
    items = {
        name: made_up(name, check)
        for name, check in (("good", PASSING), ("known", KNOWN), ("bad", FAILING))
    }
    monkeypatch.setattr("axode.literature.reproduce.item.catalogue", lambda: items)
    return items


def test_everything_is_written(shelf, tmp_path):
    result = reproduce(out=tmp_path / "new" / "folder")
    assert [one.verdict.status for one in result.made] == ["pass", "differs", "fails"]
    assert not result.holds
    for one in result.made:
        assert one.table.read_text().splitlines()[0] == "t [s],y [m]"
        assert one.figure.read_bytes().startswith(b"\x89PNG")
    assert result.page == tmp_path / "new" / "folder" / "index.html"


def test_the_page_needs_nothing_else(shelf, tmp_path):
    text = reproduce(out=tmp_path).page.read_text()
    for name, item in shelf.items():
        assert f'id="{name}"' in text and f'href="#{name}"' in text and f'href="{name}.csv"' in text
        assert item.shows.replace("&", "&amp;") in text
    assert text.count("data:image/png;base64,") == 3
    assert "a misprint" in text and "A &lt;caption&gt; &amp; more." in text
    assert not re.search(r"https?://|<script|src=\"(?!data:)", text)


def test_captions_have_the_symbols_of_the_documents():
    plain = "theta_1_dot, tau_2 = 0.1 sin(pi t), M1 and A33, erratum A-7, six_legs, psi(t)"
    assert symbols(plain) == "θ̇₁, τ₂ = 0.1 sin(π t), M₁ and A₃₃, erratum A-7, six_legs, psi(t)"


def test_one_item_only(shelf, tmp_path):
    seen = []
    result = reproduce("good", tmp_path, report=seen.append)
    assert list(result.made) == seen and result.holds
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "good.csv",
        "good.png",
        "index.html",
    ]


def test_items_of_a_source_come_by_its_name():
    for source in SOURCES:
        found = chosen([source])
        assert found and {item.source for item in found} == {source}
    assert chosen(None) == list(catalogue().values())
    assert [item.id for item in chosen(["agv-lines", "agv-lines", "agv-circle"])] == [
        "agv-circle",
        "agv-lines",
    ]


def test_verdicts():
    assert Verdict((PASSING,)).status == "pass"
    assert str(Verdict((PASSING, KNOWN))) == (
        "differs: speed 2 m/s (printed 1, +1e+02 %): a misprint; 1 more agrees"
    )
    assert Verdict((KNOWN, FAILING)).status == "fails"
    assert str(Verdict(())) == "fails: nothing was compared"


# the command line --------------------------------------------------------------------------------


def test_without_arguments_the_ids_are_listed(capsys):
    assert run(["reproduce"]) == 0
    shown = capsys.readouterr().out
    for item in catalogue().values():
        assert item.id in shown and item.shows in shown


def test_a_verdict_a_line_and_the_page(shelf, tmp_path, capsys):
    assert run(["reproduce", "good", "known", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pass     good: speed 1 m/s (printed 1)"
    assert lines[1].startswith("differs  known: speed 2 m/s (printed 1")
    assert lines[-1] == str(tmp_path / "index.html")


def test_ids_and_all_are_not_given_together(capsys):
    assert run(["reproduce", "agv-lines", "--all"]) == 2
    assert "not both" in capsys.readouterr().err


def test_an_interrupted_call_leaves_a_page_of_what_it_made(shelf, tmp_path):
    def interrupt(one):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(["good", "known"], tmp_path, report=interrupt)
    text = (tmp_path / "index.html").read_text()
    assert 'id="good"' in text and 'id="known"' not in text


def test_a_failure_is_told_by_the_exit_code(shelf, tmp_path, capsys):
    assert run(["reproduce", "--all", "--out", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [item["verdict"] for item in told["items"]] == ["pass", "differs", "fails"]
    assert told["items"][2]["checks"][0]["found"] == 2.0


def test_an_unknown_id_lists_the_ids(tmp_path, capsys):
    assert run(["reproduce", "quasimoro-strait", "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert all(name in shown for name in catalogue())
    assert "Did you mean 'quasimoro-straight'?" in shown and "Traceback" not in shown


def test_a_folder_that_cannot_be_written(shelf, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert run(["reproduce", "good", "--out", str(tmp_path / "file" / "inside")]) == 1
    shown = capsys.readouterr().err
    assert "FileError: cannot write to the folder" in shown and "--out" in shown
    assert "Traceback" not in shown


def test_without_matplotlib_the_remedy_is_told(shelf, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ax.NotApplicable, match=r"pip install .*\[plot\]"):
        reproduce("good", tmp_path)


def test_help_opens_with_lines_that_run(capsys):
    assert run(["reproduce", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "axode reproduce --all" in shown
