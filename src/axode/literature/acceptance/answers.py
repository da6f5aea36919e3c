"""Answers to a case: its adapter, and its run where it has one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from axode.errors import AxodeError, InvalidArgument
from axode.literature.acceptance.adapters import Adapter, Instant, adapter_of
from axode.literature.acceptance.case_runs import Run
from axode.literature.acceptance.cases import Case, Quantity


class Answers:
    """Answers to the quantities of one case.

    Raises:
        UnknownName: if no adapter knows the case's system.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.adapter: Adapter = adapter_of(case.system)(case)

    @cached_property
    def run(self) -> Run:
        """The motion, its intervals ending at every time that the case asks about."""
        stops = []
        for key in self.case.expected:
            try:
                asked = Quantity.of(key)
            except AxodeError:
                continue  # reported where it is asked for
            stops += [asked.at] if asked.at is not None else []
        return Run(self.adapter, stops)

    def of(self, quantity: Quantity) -> Any:
        """A quantity at the state, at the end of the run, at a time, or its extreme."""
        if self.case.t_end is None:
            if quantity.at is not None or quantity.extreme:
                raise InvalidArgument(f"'{quantity.name}': the case has no t_end, hence no run")
            return self.adapter.of(quantity.name, self.adapter.initial)
        if quantity.extreme:
            return self.run.extreme(quantity)
        return self.adapter.of(quantity.name, self._instant(quantity))

    def _instant(self, quantity: Quantity) -> Instant:
        return self.run.at(self.run.end if quantity.at is None else quantity.at)
