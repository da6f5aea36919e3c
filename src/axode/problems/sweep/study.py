"""A study: what a sweep computes, divided into chunks, and what distinguishes it from others."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.problems.steps.compiled import is_audited, tape_of
from axode.problems.sweep.accumulate import Output
from axode.problems.sweep.chunk import SweepJob
from axode.problems.sweep.ground_quantities import LOAD, GroundQuantity
from axode.problems.sweep.sweep_rows import SweepRows
from axode.results.sweep_store import SweepManifest

TIMES = ("crossing", "rising", "falling")  # kinds of outputs that are times


def column_units(
    model: Model, outputs: Mapping[str, Output], groups: Mapping[str, str]
) -> dict[str, str]:
    """SI units by name, where they are known: not those of functions and of parameters.

    A swept value with the name of an output gets its group as prefix: `start.pitch`.

    Args:
        model: Owner of the signals.
        outputs: What is kept of every run.
        groups: By name of what is swept: "start", "parameter", "gain" or "input".
    """
    made = {name: _unit(model, output) for name, output in outputs.items()}
    for name, group in groups.items():
        if group in ("start", "input") and model.signals.names().accepts(name):
            own = f"{group}.{name}" if name in outputs else name
            made[own] = model.signals.resolve(name).unit
    return {name: unit for name, unit in made.items() if unit}


def _unit(model: Model, output: Output) -> str:
    if output.how in TIMES:
        return "s"
    what = output.what
    if isinstance(what, GroundQuantity):
        unit = "N" if what.name.endswith(f".{LOAD}") else ""
    else:
        unit = model.signals.resolve(what).unit if isinstance(what, str) else ""
    if output.how != "integral":
        return unit
    if unit:
        return f"{unit} s"
    return "" if isinstance(what, int) else "s"


DYNAMICS = ("state_rate", "projection", "pivots", "residual", "measures")  # that distinguish models


@dataclass(frozen=True)
class Study:
    """A job, its rows, and how they are divided into chunks."""

    job: SweepJob
    rows: SweepRows
    chunk: int

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.rows.count // self.chunk)

    def span(self, number: int) -> tuple[int, int]:
        """First row of a chunk, and the first after it."""
        return number * self.chunk, min((number + 1) * self.chunk, self.rows.count)

    def info(self) -> dict[str, Any]:
        """Describe the study for its result, in JSON's own types."""
        job, settings = self.job, self.job.settings
        return {
            "model": job.model.name,
            "runs": self.rows.count,
            **settings.steps_taken(),
            "energy_tolerance": settings.energy_tolerance if is_audited(job.model) else None,
            "target": settings.place.target,
            "precision": settings.place.precision,
            "units": column_units(job.model, job.outputs, self.rows.samples.groups),
            "kinds": {name: output.how for name, output in job.outputs.items()},
        }

    def manifest(self) -> SweepManifest:
        """Describe the study so that a sweep is resumed with the same one only."""
        job, rows, settings = self.job, self.rows, self.job.settings
        study = {
            "model": {"name": job.model.name, "sha256": self._hash_model()},
            "duration": settings.duration,
            **settings.steps_taken(),
            "t0": settings.t0,
            "target": settings.place.target,
            "precision": settings.place.precision,
            "start": _describe_start(rows),
            "parameters": _describe(rows.parameters or {}),
            "input": _describe_input(job, rows),
            "gathered": {n: _describe_output(o, job) for n, o in job.outputs.items()},
            "samples": rows.samples.describe(),
        }
        recorded = self.info() | {
            "axode": sys.modules["axode"].__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
        }
        return SweepManifest(
            study, rows.shape, self.chunk, rows.samples.groups, tuple(job.outputs), recorded
        )

    def _hash_model(self) -> str:
        model = self.job.model
        digest = hashlib.sha256(json.dumps(facts_of(model).to_json(), sort_keys=True).encode())
        for name in DYNAMICS:
            if name in model.functions:
                digest.update(tape_of(model, name).digest.encode())
        return digest.hexdigest()


def _describe_start(rows: SweepRows) -> dict[str, Any]:
    start = rows.start
    if start.q is None:
        return _describe(start.named)
    return _describe({"q": start.q, "nu": start.nu})


def _describe_input(job: SweepJob, rows: SweepRows) -> Any:
    if job.input is not None:
        shared = {} if job.gains is None else {"gains": _describe({"": job.gains})[""]}
        return {"function": job.input.digest, **shared}
    if rows.inputs is not None:
        return _describe(rows.inputs)
    plan = rows.plan
    if plan.sampled is None:
        return _describe({"u": plan.constant})
    s = plan.sampled
    numbers = {"period": s.period, "start": s.start, "between": s.between}
    return numbers | _describe({"samples": s.table})


def _describe_output(output: Output, job: SweepJob) -> list[Any]:
    if isinstance(output.what, str):
        return [output.how, output.what]
    if isinstance(output.what, int):
        assert job.functions is not None
        return [output.how, output.what, job.functions.digest]
    return [output.how, output.what.name, list(output.what.friction)]


def _describe(values: Mapping[str, Any]) -> dict[str, Any]:
    """Describe numbers by name: single ones as they are, arrays by shape and digest."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        array = np.asarray(value, dtype="<f8")
        if array.size == 1 and not array.ndim:
            made[name] = float(array)
        else:
            content = np.ascontiguousarray(array).tobytes()
            made[name] = [*array.shape, hashlib.sha256(content).hexdigest()]
    return made
