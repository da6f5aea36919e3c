"""The page on GPUs: what it shows for a machine with a GPU runs on one that is emulated."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from emulated_gpu import DeviceArray, install

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "gpu.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ON_A_GPU = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_what_is_shown_for_a_gpu_runs(tmp_path, monkeypatch):
    install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    exec("\n".join(PYTHON.findall(PAGE)), names)
    model = names["model"]
    q, nu, u = (
        np.ones((5, n)).view(DeviceArray)
        for n in (len(model.coordinates), len(model.independent), len(model.inputs))
    )
    stream = SimpleNamespace(cuda_stream=0)
    names |= {
        "q": q,
        "nu": nu,
        "u": u,
        "out": np.zeros_like(nu),
        "speeds": np.linspace(0.1, 0.5, 5),
        "torch": SimpleNamespace(cuda=SimpleNamespace(current_stream=lambda: stream)),
    }
    blocks = ON_A_GPU.findall(PAGE)
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, names)
    assert len(names["run"].final["base.x"]) == 5
    wanted = names["cart"].derive().compile("interpreter").forward_dynamics(q, nu, u)
    assert np.allclose(names["nu_dot"], wanted) and np.allclose(names["out"], wanted)
