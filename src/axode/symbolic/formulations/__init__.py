"""Rival derivations of one physics, with one signature; they must agree."""

from __future__ import annotations

from axode.symbolic.formulations.base import AbstractFormulation
from axode.symbolic.formulations.complement import ComplementFormulation
from axode.symbolic.formulations.lagrange import LagrangeFormulation
from axode.symbolic.formulations.multipliers import MultiplierFormulation
from axode.symbolic.formulations.recursive import RecursiveFormulation

FORMULATIONS: dict[str, type[AbstractFormulation]] = {
    formulation.name: formulation
    for formulation in (
        RecursiveFormulation, ComplementFormulation, MultiplierFormulation, LagrangeFormulation,
    )
}  # fmt: skip
