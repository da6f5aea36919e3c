"""Ctrl-C ends every verb: soon, with exit code 130, without a traceback, results kept."""

from __future__ import annotations

import json
import random
import zlib

import numpy as np
import pytest

import axode as ax
from axode.cli import VERBS, run
from pressing import press

LONG = {  # commands that take long enough to be interrupted, one per verb
    "check": "check delta_robot",
    "derive": "derive four_bar --formulation lagrange --out a.tex",
    "compare": "compare five_bar",
    "simulate": "simulate wheeled_pendulum --time 1e5 --start theta3=0.3 --out run.npz",
    "sweep": "sweep wheeled_pendulum --over theta3=-0.1:0.1:999 --time 50 --workers 2 --out a.csv",
    "view": "view four_bar --no-browser --port 0 --drive",
    "report": "report wheeled_pendulum --time 20 --start theta3=0.3 --out page.html",
    "animate": "animate wheeled_pendulum --time 20 --start theta3=0.3 --out movie.gif",
    "page": "page tricycle --out page.html",
    "inverse": "inverse differential_drive --path circle:radius=2,speed=0.5",
    "feasible": "feasible tricycle --friction 0.5 --path circle:radius=2,speed=0.5",
    "export": "export six_legged_platform --to a.c",
    "linearize": "linearize wheeled_pendulum",
    "size": "size five_axis_arm --motion theta2=0.5*sin(2*t) --time 60",
    "lqr": "lqr wheeled_pendulum --states theta3,theta3_dot,surge",
    "kinematics": "kinematics dietmaier_platform",
    "reach": "reach seven_axis_arm --target link7=0.4,0.1,0.6",
    "design": "design planar_3rrr --vary l1=0.2:0.5 --poses x=-0.05:0.05:3 --samples 999",
    "workspace": "workspace flight_simulator --plot ws.png",
    "gallery": "gallery",
    "verify": "verify --out verified.json",
    "bench": "bench seven_axis_arm --out times.json",
    "doctor": "doctor",
    "reproduce": "reproduce --all --out again",
    "ros": "ros differential_drive --out robot.yaml",
    "completion": "completion fish",
}


def test_during_imports(tmp_path):
    ending = press(["gallery"], 0.04, tmp_path)
    assert ending.clean, ending.warned


def test_where_a_library_swallows_it(tmp_path):
    """A verb that catches everything, as destructors and callbacks of libraries do."""
    deaf = (
        "from axode.cli import literature as g, output\n"
        "def deaf():\n"
        "    print('deaf', flush=True)\n"
        "    while True:\n"
        "        try:\n"
        "            import time; time.sleep(0.01)\n"
        "        except BaseException: pass\n"
        "g._list_gallery = deaf"
    )
    ending = press(["gallery"], 0.1, tmp_path, before=f"exec({deaf!r})", wait_for="deaf")
    assert (ending.code, ending.warned) == (130, "interrupted\n")


def test_a_viewer_that_is_busy_is_closed_all_the_same(tmp_path):
    pytest.importorskip("viser", reason="pip install axode[view]")
    deaf = (
        "import time; from axode.show.viewer.viewer import Viewer as V; "
        "V.close = lambda viewer: time.sleep(30)"
    )
    command = ["view", "four_bar", "--no-browser", "--port", "0"]
    ending = press(command, 0.1, tmp_path, before=deaf, wait_for="Axode shows")
    assert (ending.code, ending.warned) == (0, "") and ending.seconds < 5


def test_what_was_simulated_is_written(tmp_path):
    noisy = (
        "from axode.problems.runs.session import Session as S; f = S.advance; "
        "S.advance = lambda *a, **k: (print('stepping', flush=True), f(*a, **k))[1]"
    )
    ending = press(LONG["simulate"].split(), 0.3, tmp_path, before=noisy, wait_for="stepping")
    assert (ending.code, ending.warned) == (130, "interrupted; what was computed is kept\n")
    time = ax.Trajectory.load(tmp_path / "run.npz").time
    assert np.all(np.isfinite(time)) and 0 < time[-1] < 1e5


def test_what_was_verified_and_timed_is_written(tmp_path, monkeypatch, capsys):
    from axode.cli import bench
    from axode.literature import acceptance

    made = iter([[], []])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(acceptance, "checks_of", lambda case: _next(made))
    assert run(["verify", "--out", "v.json"]) == 130
    assert "cases were not run" in capsys.readouterr().err
    assert json.loads((tmp_path / "v.json").read_text()) == []
    times = dict.fromkeys(("median", "min", "max"), 1e-6)
    row = {"operations": 3} | dict.fromkeys(("call", "scalar", "vector", "threads"), times)
    made = iter([{"function": "energy"} | row])
    monkeypatch.setattr(bench, "_function", lambda *arguments: _next(made))
    functions = ["--functions", "energy,mass_matrix", "--out", "b.json"]
    assert run(["bench", "chaplygin_sleigh", *functions]) == 130
    assert "interrupted; what was timed is kept" in capsys.readouterr().err
    (kept,) = json.loads((tmp_path / "b.json").read_text())["functions"]
    assert kept["function"] == "energy"


def _next(made):
    try:
        return next(made)
    except StopIteration:
        raise KeyboardInterrupt from None


def test_every_verb_is_tried():
    assert set(LONG) == {verb.__name__ for verb in VERBS}


@pytest.mark.soak
@pytest.mark.parametrize("verb", LONG)
@pytest.mark.parametrize("trial", range(8))
def test_at_any_time(tmp_path, verb, trial):
    drawn = random.Random(zlib.crc32(f"{verb}{trial}".encode()))
    after = drawn.uniform(0.03, drawn.choice([0.4, 3.0]))
    ending = press(LONG[verb].split(), after, tmp_path)
    closed = verb == "view" and ending.code == 0  # Ctrl-C is how it is closed
    assert ending.clean or closed, (after, ending.code, ending.warned)
    assert not list(tmp_path.glob("*.tmp*"))


@pytest.mark.soak
@pytest.mark.parametrize("trial", range(8))
def test_a_script_that_calls_in_a_loop(tmp_path, trial):
    """CasADi must not swallow it for good: the loop derives, compiles and simulates."""
    script = (
        "import axode as ax\n"
        "print('go', flush=True)\n"
        "while True:\n"
        "    model = ax.gallery.build('four_bar').derive().compile()\n"
        "    ax.simulate(model, 0.1, start={'theta1_dot': 1.0})\n"
    )
    after = random.Random(trial).uniform(0.1, 2.0)
    ending = press([], after, tmp_path, before=f"exec({script!r})", wait_for="go")
    assert ending.code != 0 and ending.seconds < 10
