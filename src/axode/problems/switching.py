"""Another choice of independent speeds, where the present one becomes singular."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.facts import Facts
from axode.codegen.library import SymbolicLibrary
from axode.codegen.model import Model, Options
from axode.problems.batch import Batch
from axode.problems.steps import RUNNING, SINGULAR

Array = npt.NDArray[np.float64]
BETTER = 3.0  # times the present pivot: what another choice must offer
GOOD = 0.2  # a pivot that is worth a change where the present one vanishes within a step
LOST = 1e-3  # a pivot below which the motion is no longer determined
ASK_AGAIN = 0.3  # of a pivot that has to do: below this another choice is sought again
NEAREST = 1e-6  # [s]: how near adaptive steps go to a configuration where rank is lost
HERE = 1e-2  # [rad or m] from where a model was made: another made here would be the same
MOST = 60  # models of one mechanism
INVOLVED = 0.2  # of the largest weight: smaller ones are not named


@dataclass(frozen=True)
class Choices:
    """The same mechanism on other independent speeds, or on the same ones solved for otherwise.

    Which rows are solved for which speeds first is chosen where a model is made, and may do badly
    elsewhere; a model that was made for other configurations is therefore not the last word.
    """

    made: list[tuple[Model, Array]] = field(default_factory=list)  # and where

    def best(
        self, model: Model, own: Model, q: Array, t: float, p: Array | None, options: Options
    ) -> tuple[Model, str]:
        """The model that does best at a configuration, and words for what is nearly lost there.

        Args:
            model: The present one.
            own: The one the user gave; it is not kept here, or it would never be forgotten.
            q, t, p: Configuration, time and parameters.
            options: Time and parameters, as models take them.
        """
        from axode.symbolic.equations import Equations
        from axode.symbolic.system import repartitioned, rows_at

        assert isinstance(model.library, SymbolicLibrary)
        equations = model.library.equations
        system = equations.system
        rows = rows_at(system, q, t, system.defaults if p is None else p)
        weak_rows, free = rows.weakest
        words = (
            f"{_weak(equations.rows, weak_rows)}, so that the speeds may also go along "
            f"{_direction(equations.speeds, free)}"
        )
        if rows.lost:
            return model, words
        present = smallest_pivot(model, q, options)
        models = [(own, own.home), *self.made]
        known = max((m for m, _ in models), key=lambda m: smallest_pivot(m, q, options))
        enough = smallest_pivot(known, q, options) > BETTER * present
        made_here = any(np.abs(at - q).max() < HERE for _, at in models)
        if enough or made_here or len(models) >= MOST:
            return known, words
        made = Equations(repartitioned(system, rows), equations.formulation)
        facts = replace(Facts.of(made, fixed=model.facts.fixed), home=model.facts.home)
        library = SymbolicLibrary(made, model.target, fixed=model.facts.fixed)
        self.made.append((Model(facts, library), q.copy()))
        return self.made[-1][0], words


_CHOICES: WeakKeyDictionary[Model, Choices] = WeakKeyDictionary()


def _weak(rows: tuple[str, ...], weights: Array) -> str:
    size = np.abs(weights)
    picked = [n for n, w in zip(rows, size, strict=True) if w > INVOLVED * size.max()]
    if len(picked) == 1:
        return f"the row {picked[0]} vanishes there"
    return f"the rows {', '.join(picked)} depend on each other there"


def _direction(names: tuple[str, ...], weights: Array) -> str:
    scaled = weights / weights[np.argmax(np.abs(weights))]
    pairs = zip(names, scaled.tolist(), strict=True)
    return ", ".join(f"{name} {w:+.2g}" for name, w in pairs if abs(w) > INVOLVED)


def smallest_pivot(model: Model, q: Array, options: Options) -> float:
    """Of all solves behind a model's speeds."""
    pivots = model.evaluate("pivots", {"q": q}, options)
    return float(np.abs(pivots).min(initial=1.0))


def near_singular(batch: Batch, run: int, own: Model) -> Model | None:
    """What to do with a run before whose next step a pivot becomes small.

    It changes to a model that does better there, which is returned; or it goes on as it is; or it
    ends, if no choice of speeds would do.

    Args:
        batch: Where it runs now.
        run: Its number there.
        own: The model the user gave.
    """
    model, b = batch.model, batch.buffers
    q, t = b["q"][run].copy(), float(b["t"][run, 0])
    near = float(b["near"][run, 0])  # in the step to come; negative where a pivot changes its sign
    if not isinstance(model.library, SymbolicLibrary):  # from a file: there is no other choice
        words = (f"the independent speeds {', '.join(model.independent)} no longer describe the "
                 "motion there; a model compiled from the mechanism changes them")  # fmt: skip
        return _go_on_or_end(batch, run, near, words)
    options = batch.options(run)
    p = None if batch.p is None else batch.p if batch.p.ndim == 1 else batch.p[run]
    choices = _CHOICES.setdefault(own, Choices())
    other, words = choices.best(model, own, q, t, p, options)
    if other is not model:
        present, offered = (smallest_pivot(m, q, options) for m in (model, other))
        if offered > max(BETTER * present, LOST) or (near < LOST and offered > GOOD):
            return other
    return _go_on_or_end(batch, run, near, words)


def _go_on_or_end(batch: Batch, run: int, near: float, words: str) -> Model | None:
    b = batch.buffers
    step = abs(float(b["h_s"][run, 0]))
    if near >= LOST:
        b["least_pivot"][run] = ASK_AGAIN * near
    elif batch.settings.adaptive and step > NEAREST:
        b["h"][run] = 0.5 * step  # the long step crosses it, a shorter one may not
    else:
        batch.resolve(run, SINGULAR, words)
        return None
    b["status"][run] = RUNNING
    return None
