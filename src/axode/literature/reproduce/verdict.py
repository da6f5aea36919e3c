"""Verdicts: numbers that were found beside numbers that were wanted, and what to make of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["pass", "differs", "fails"]
STATUSES: tuple[Status, ...] = ("pass", "differs", "fails")  # from good to bad


@dataclass(frozen=True)
class Check:
    """One number compared with the expected one.

    Attributes:
        what: The quantity, as text.
        found: Value by Axode.
        wanted: What it should be; 0 for a difference that should be none.
        within: Largest difference that counts as none.
        unit: Unit of all of these; "" for none.
        of: Where a wanted number that is not 0 comes from: "printed", "closed form", ...
        why: Why the source's number is known to be another one; "" if it is not.
        explained: Largest difference that this accounts for.
    """

    what: str
    found: float
    wanted: float
    within: float
    unit: str = ""
    of: str = ""
    why: str = ""
    explained: float = 0.0

    @property
    def status(self) -> Status:
        """Passes, differs for a known reason, or fails."""
        difference = abs(self.found - self.wanted)
        if difference <= self.within:
            return "pass"
        known = bool(self.why) and difference <= self.explained
        return "differs" if known else "fails"

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.wanted == 0.0:
            size = f"{self.what} {self.found:.1e}{unit} (at most {self.within:.0e})"
        else:
            wanted = f"{self.of or 'wanted'} {self.wanted:.5g}{self._share()}"
            size = f"{self.what} {self.found:.5g}{unit} ({wanted})"
        return f"{size}: {self.why}" if self.status == "differs" else size

    def _share(self) -> str:
        """Return the relative error, unless it is negligible."""
        counted = self.within == 0.0  # of a count no share
        if self.status == "pass" or counted or not math.isfinite(self.found):
            return ""
        return f", {100 * (self.found - self.wanted) / abs(self.wanted):+.2g} %"


@dataclass(frozen=True)
class Verdict:
    """All checks of one item; prints as a line."""

    checks: tuple[Check, ...]

    @property
    def status(self) -> Status:
        """The worst of its checks; without any there is nothing to pass."""
        found = {check.status for check in self.checks} or {"fails"}
        return max(found, key=STATUSES.index)

    @property
    def sentence(self) -> str:
        """The numbers that are off, or else the first that agrees, and how many more do."""
        if not self.checks:
            return "nothing was compared"
        off = [check for check in self.checks if check.status != "pass"]
        shown = off or list(self.checks[:1])
        more = len(self.checks) - len(shown)
        agree = [f"{more} more agree" + "s" * (more == 1)] if more else []
        return "; ".join([*map(str, shown), *agree])

    def __str__(self) -> str:
        return f"{self.status}: {self.sentence}"


def worst(verdicts: Sequence[Verdict]) -> Status:
    """The worst status of several verdicts."""
    return max((verdict.status for verdict in verdicts), key=STATUSES.index, default="pass")
