"""Whatever is passed to the public functions: an error of ours with a remedy, at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode import gallery

JUNK: list[Any] = [
    np.zeros(0),
    "text",
    1e-15,
    1e-18,
    1e16,
    float("nan"),
    float("inf"),
    -1,
    0,
    None,
    [],
    {},
    "\ud800",
    10**400,
    object(),
    np.zeros((2, 0)),
    np.array("x"),
    1j,
    True,
    [1, 2, 3],
    b"x",
    np.zeros((2, 2, 2)),
    {"x": 1},
    {1: 2},
    [[1], [1, 2]],
]


@cache
def mechanism() -> ax.Mechanism:
    return gallery.build("wheeled_pendulum")


@cache
def model() -> ax.Model:
    return mechanism().derive().compile()


def rk4(**options: Any) -> ax.Trajectory:
    return ax.simulate(model(), **{"duration": 0.01, "method": "rk4", "step": 1e-3, **options})


def at_rest() -> np.ndarray:
    return np.zeros(len(model().independent))


def samples(values: Any, period: Any) -> ax.Trajectory:
    return rk4(input=ax.Sampled(values, period))


CALLS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda x, name=name: rk4(**{name: x})
        for name in (
            "duration",
            "step",
            "save_every",
            "t0",
            "rtol",
            "atol",
            "start",
            "input",
            "parameters",
            "method",
            "events",
            "threads",
            "target",
            "precision",
        )
    },
    "model": lambda x: ax.simulate(x, 1.0),
    "q": lambda x: model().forward_dynamics(x, at_rest()),
    "nu": lambda x: model().forward_dynamics(model().home, x),
    "u": lambda x: model().forward_dynamics(model().home, at_rest(), x),
    "t": lambda x: model().forward_dynamics(model().home, at_rest(), t=x),
    "sampled values": lambda x: samples(x, 0.1),
    "sampled period": lambda x: samples({model().inputs[0]: [0.0, 1.0]}, x),
    "assemble": lambda x: ax.assemble(model(), x),
    "linearize": lambda x: ax.linearize(model(), x),
    "inverse": lambda x: ax.inverse(model(), x),
    "sweep": lambda x: ax.sweep(model(), x),
    "load": ax.load,
    "load_model": ax.load_model,
    "Trajectory.load": lambda x: ax.Trajectory.load(x),
    "save": lambda x: None if isinstance(x, str) else model().save(x),
    "derive": lambda x: mechanism().derive(x),
    "independent": lambda x: mechanism().derive("recursive", x) if x is not None else None,
}


@pytest.mark.parametrize("call", CALLS)
def test_only_our_own_errors_come_out(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for junk in JUNK:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                CALLS[call](junk)
            except ax.AxodeError as error:
                str(error).encode()  # whoever prints it gets no UnicodeEncodeError
            except Exception as error:
                pytest.fail(f"{call} = {junk!r:.60}: {type(error).__name__}: {error}")


IMPOSSIBLE = [
    ({"save_every": 1e-12}, r"save_every: 1e-12 s makes 1e\+10 samples.*make it longer"),
    ({"step": 1e-18}, r"step: 1e-18 s is too short at t = 0\.01 s.*make it longer"),
    ({"t0": 1e16}, r"duration: 0\.01 s is too short at t = 1e\+16 s.*or t0 smaller"),
    ({"duration": 1e10}, r"step: 0\.001 s makes 1e\+13 steps.*or the duration shorter"),
    ({"rtol": "tight"}, r"rtol: expected a number, got 'tight'"),
    ({"duration": 10**400}, r"duration: expected a number of seconds, got a whole number of very"),
]


@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE)
def test_impossible_requests_get_a_remedy(options, message):
    with pytest.raises(ax.InvalidArgument, match=message):
        rk4(**options)
