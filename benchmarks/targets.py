"""What was promised beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Target:
    """One promise: a number to reach, or not to exceed if `at_most`."""

    what: str
    wanted: float
    measured: float | None
    unit: str = "times"
    at_most: bool = False
    against: str = ""

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: "not measured"}[self.met]

    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        sign = "≤" if self.at_most else "≥"
        measured = "-" if self.measured is None else f"{self.measured:.3g} {self.unit}"
        return (
            self.what,
            self.against,
            f"{sign} {self.wanted:g} {self.unit}",
            measured,
            self.verdict,
        )

    def data(self) -> dict[str, object]:
        """For JSON."""
        return {
            "what": self.what,
            "against": self.against,
            "wanted": self.wanted,
            "measured": self.measured,
            "unit": self.unit,
            "at_most": self.at_most,
            "verdict": self.verdict,
        }


def targets_table(targets: Sequence[Target]) -> Table:
    """All of them, the verdict last."""
    shown = Table(title="Targets")
    for name in ("what", "against", "target", "measured", ""):
        shown.add_column(name)
    for target in targets:
        style = {True: "green", False: "bold red", None: "dim"}[target.met]
        shown.add_row(*target.cells()[:-1], f"[{style}]{target.verdict}[/]")
    return shown
