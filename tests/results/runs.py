"""Trajectories for the tests of results: one run, a batch, and any that fits the rules."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from axode.results.columns import KINDS, Event
from axode.results.trajectory import Trajectory

COLUMNS = {
    "pitch": ("rad", "coordinate"),
    "base.qw": ("", "coordinate"),
    "base.qx": ("", "coordinate"),
    "base.qy": ("", "coordinate"),
    "base.qz": ("", "coordinate"),
    "pitch.rate": ("rad/s", "independent"),
    "left.rate": ("rad/s", "speed"),
    "left.torque": ("N m", "input"),
    "energy.kinetic": ("J", "energy"),
    "energy.potential": ("J", "energy"),
    "energy.supplied": ("J", "energy"),
    "energy.dissipated": ("J", "energy"),
    "energy.error": ("J", "energy"),
    "residual": ("m", "residual"),
}


def motion(time):
    """Smooth columns that are known at any time; the quaternion is unit, the energies balance."""
    half = 0.4 * time
    supplied, dissipated = 2 * (1 - np.cos(time)), 0.1 * time
    kinetic, error = 1 + np.sin(time) ** 2, 1e-6 * time
    return {
        "pitch": np.sin(time),
        "base.qw": np.cos(half),
        "base.qx": 0.6 * np.sin(half),
        "base.qy": 0.8 * np.sin(half),
        "base.qz": 0 * time,
        "pitch.rate": np.cos(time),
        "left.rate": 2 * np.cos(time),
        "left.torque": np.where(time < 0.5, 0.0, 3.0),
        "energy.kinetic": kinetic,
        "energy.potential": 1 + supplied - dissipated - kinetic + error,
        "energy.supplied": supplied,
        "energy.dissipated": dissipated,
        "energy.error": error,
        "residual": 1e-12 * time,
    }


def one(time=None, **changes) -> Trajectory:
    """One run of two seconds at 20 Hz, unless told otherwise."""
    time = np.linspace(0, 2, 41) if time is None else np.asarray(time, dtype=float)
    given = {
        "values": np.stack([motion(time)[name] for name in COLUMNS], axis=-1),
        "names": tuple(COLUMNS),
        "units": tuple(unit for unit, _ in COLUMNS.values()),
        "kinds": {name: kind for name, (_, kind) in COLUMNS.items()},
        "info": {"model": "balancer", "method": "rk4", "samples": 40, "parameters": {"mass": 0.1}},
        **changes,
    }
    return Trajectory(time=time, **given)


def batch(shape=(3,), time=None, lengths=None, **changes) -> Trajectory:
    """Copies of one run, each scaled by its number plus one; `lengths` samples of each."""
    single = one(time)
    scale = 1.0 + np.arange(np.prod(shape)).reshape(shape)
    values = scale[..., np.newaxis, np.newaxis] * single.values
    if lengths is not None:
        values[np.arange(len(single)) >= np.asarray(lengths)[..., np.newaxis]] = np.nan
    return one(time, values=values, **changes)


def same(first: Trajectory, second: Trajectory) -> bool:
    """Whether everything agrees, numbers to the bit."""
    arrays_agree = all(
        getattr(first, name).tobytes() == getattr(second, name).tobytes()
        and getattr(first, name).shape == getattr(second, name).shape
        for name in ("time", "values", "lengths")
    )
    plain = ("names", "units", "kinds", "events", "status", "statuses", "info", "quaternions")
    return arrays_agree and all(getattr(first, n) == getattr(second, n) for n in plain)


# any trajectory ----------------------------------------------------------------------------------

_words = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8)
_finite = st.floats(allow_nan=False, allow_infinity=False)
_doubles = st.integers(0, 2**64 - 1)  # every bit pattern: NaN with payload, -0.0, subnormal
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | _finite | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def trajectories(draw) -> Trajectory:
    """Anything the constructor accepts."""
    names = tuple(
        draw(st.lists(_words | st.sampled_from(["time", "run"]), max_size=4, unique=True))
    )
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    time = np.sort(draw(st.lists(_finite, min_size=1, max_size=5, unique=True)))
    size = (*shape, len(time), len(names))
    values = draw(arrays.arrays(np.uint64, size, elements=_doubles)).view(np.float64)
    event = st.builds(
        Event,
        _words,
        time=_finite,
        index_of_run=st.none() | st.integers(0, 3),
        state=st.dictionaries(_words, _finite),
    )
    return Trajectory(
        time=time[:: draw(st.sampled_from([1, -1]))],
        values=values,
        names=names,
        units=tuple(draw(_words) for _ in names),
        kinds={name: draw(st.sampled_from(KINDS)) for name in names},
        events=tuple(draw(st.lists(event, max_size=2))),
        status=draw(st.sampled_from(["", "finished", "interrupted"])),
        info=draw(st.dictionaries(_words, _json, max_size=3)),
    )
