"""Compiled models on a machine that has NumPy and llvmlite alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.errors import DISPENSABLE, NotApplicable, naming_packages

SRC = Path(ax.__file__).parents[1]
PROGRAM = """
import json, sys
sys.path.insert(0, {src!r})
for name in {missing!r}:
    sys.modules[name] = None
import numpy as np
import axode as ax

model = ax.load_model(sys.argv[1])
start = {{"theta3": 0.3}}
run = ax.simulate(model, 0.5, start=start, progress=False)
stiff = ax.simulate(model, 0.2, start=start, method="radau9", progress=False)
law = ax.simulate(model, 0.2, start=start, input=lambda s: {{"M1": -s["theta3"]}}, progress=False)
stepper = model.stepper(step=1e-3, start=start)
stepper.step(steps=200)
swept = ax.sweep(model, 0.1, start={{"theta3": [0.1, 0.2]}},
                 outputs={{"most": ("max", "theta3")}}, progress=False)
many = model.forward_dynamics(np.tile(model.home, (7, 1)), np.zeros((7, 3)))
run.save(sys.argv[2])
refused = {{}}
for name, ask in {{
    "derive": lambda: ax.gallery.build("wheeled_pendulum").derive(),
    "linearize": lambda: ax.linearize(model),
    "report": lambda: run.report(sys.argv[2] + ".html"),
    "view": lambda: ax.view,
    "Equations": lambda: ax.Equations,
}}.items():
    try:
        ask()
        refused[name] = "done"
    except ax.NotApplicable as error:
        refused[name] = str(error)
from axode.cli import main
try:
    main(["doctor"])
except SystemExit as left:
    refused["command line"] = left.code
print(json.dumps({{
    "final": list(dict(run.final).values()), "stiff": list(dict(stiff.final).values()),
    "law": list(dict(law.final).values()), "swept": list(map(float, swept["most"])),
    "many": np.asarray(many[0] if isinstance(many, tuple) else many).tolist(),
    "steps": list(map(float, stepper.q)), "refused": refused,
}}))
"""


@pytest.fixture(scope="module")
def model():
    return ax.gallery.build("wheeled_pendulum").derive().compile()


@pytest.mark.slow
def test_models_run_with_numpy_and_llvmlite_alone(model, tmp_path):
    """With the bits of a complete installation; the rest is refused with the remedy."""
    model.save(tmp_path / "robot.axm")
    code = PROGRAM.format(src=str(SRC), missing=[*DISPENSABLE])
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path / "robot.axm"), str(tmp_path / "run.npz")],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "AXODE_CACHE": "off"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    got = json.loads(done.stdout)
    start = {"theta3": 0.3}
    run = ax.simulate(model, 0.5, start=start, progress=False)
    stiff = ax.simulate(model, 0.2, start=start, method="radau9", progress=False)
    law = ax.simulate(model, 0.2, start=start, input=lambda s: {"M1": -s["theta3"]}, progress=False)
    for name, expected in (("final", run), ("stiff", stiff), ("law", law)):
        np.testing.assert_array_equal(got[name], list(dict(expected.final).values()))
    stepper = model.stepper(step=1e-3, start=start)
    stepper.step(steps=200)
    assert got["steps"] == list(map(float, stepper.q))
    assert np.isfinite(got["many"]).all() and got["swept"][0] < got["swept"][1]
    assert (tmp_path / "run.npz").exists()
    refused = got["refused"]
    assert refused.pop("command line") == 1
    assert "this needs typer" in done.stderr or "this needs rich" in done.stderr
    assert "Traceback" not in done.stderr
    for name, text in refused.items():
        assert "this needs casadi" in text or "this needs scipy" in text, (name, text)
        assert "Remedy: pip install casadi scipy" in text


def test_other_missing_packages_keep_their_errors():
    with pytest.raises(ModuleNotFoundError, match="somewhere"), naming_packages():
        raise ModuleNotFoundError("No module named 'somewhere'", name="somewhere")
    remedy = r"needs tomli-w.*\n  Remedy: pip install tomli-w"
    with pytest.raises(NotApplicable, match=remedy), naming_packages():
        raise ModuleNotFoundError("No module named 'tomli_w'", name="tomli_w")
