"""The player of a run in a notebook: one frame that holds all it needs, of bounded size."""

import html
import json
import re

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, UnknownName
from axode.show.plot.choice import columns_of


@pytest.fixture(scope="module")
def run():
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    return ax.simulate(model, 1.0, start={"theta3": 0.3}, progress=False)


def held(shown: str) -> dict:
    """What the player in a cell plays."""
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1])
    return json.loads(re.search(r'id="playback">(.*?)</script>', page, re.DOTALL)[1])


def test_a_cell_survives_the_file_of_a_notebook(run, tmp_path):
    import nbformat

    player = run.player(height=400)
    shown = player._repr_html_()
    output = nbformat.v4.new_output("display_data", {"text/html": shown})
    cell = nbformat.v4.new_code_cell("run.player()", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "book.ipynb")
    again = nbformat.read(tmp_path / "book.ipynb", as_version=4)
    text = again.cells[0].outputs[0].data["text/html"]
    assert text == shown and "height: 400px" in text and 'sandbox="allow-scripts"' in text
    data = held(text)
    assert {signal["name"] for signal in data["signals"]} >= set(run.columns("independent"))
    assert repr(player).startswith(f"Player('{run.name}'")
    assert not re.search(r'(src|href)="(?!data:)', html.unescape(text).split("<script>")[0])


def test_signals_are_chosen_as_in_a_plot(run):
    data = held(run.player("theta3", "energy")._repr_html_())
    expected = [*columns_of(run, "theta3"), *run.columns("energy")]
    assert [signal["name"] for signal in data["signals"]] == expected
    with pytest.raises(UnknownName, match="theta9"):
        run.player("theta9")


def test_a_long_run_has_fewer_frames(run, monkeypatch):
    monkeypatch.setattr("axode.show.report.cell_player.COMPACT", 5_000)
    monkeypatch.setattr("axode.show.report.cell_player.FEWEST", 10)
    short = run.player("theta3")
    data = held(short._repr_html_())
    assert 10 <= len(data["time"]) * 3 // 16 < 51
    moving = sum(len(data[key]) for key in ("time", "poses"))
    assert moving <= 5_000 and len(short.page) < 400_000


def test_what_cannot_be_played_is_reported_with_the_remedy(run, tmp_path):
    with pytest.raises(InvalidArgument, match="height: from 240 to 4000 pixels, not 10"):
        run.player(height=10)
    with pytest.raises(InvalidArgument, match="player: names of signals are texts"):
        run.player(["theta3"])
    run.save(tmp_path / "run.npz")
    with pytest.raises(InvalidArgument, match=r"Remedy: run.player\(model=model\)"):
        ax.Trajectory.load(tmp_path / "run.npz").player()
    many = ax.simulate(run.model, 0.1, start={"theta3": np.array([0.1, 0.2])}, progress=False)
    with pytest.raises(InvalidArgument, match=r"Remedy: batch.run\(0\)"):
        many.player()
    assert many.run(1).player()._repr_html_().startswith("<iframe")
