"""Rival derivations of one physics, with one signature; they must agree."""

from __future__ import annotations

from axode.symbolic.formulations.base import AbstractFormulation
from axode.symbolic.formulations.deficient_arms import (
    PseudoJointFormulation,
    ReducedOrderFormulation,
)
from axode.symbolic.formulations.explicit_complement import ComplementFormulation
from axode.symbolic.formulations.lagrange import LagrangeFormulation
from axode.symbolic.formulations.legs import LegsFormulation
from axode.symbolic.formulations.multipliers import MultiplierFormulation
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.formulations.spatial_operators import SpatialOperatorFormulation
from axode.symbolic.formulations.virtual_work import VirtualWorkFormulation

FORMULATIONS: dict[str, type[AbstractFormulation]] = {
    formulation.name: formulation
    for formulation in (
        RecursiveFormulation,
        ComplementFormulation,
        MultiplierFormulation,
        LagrangeFormulation,
        VirtualWorkFormulation,
        SpatialOperatorFormulation,
        PseudoJointFormulation,
        ReducedOrderFormulation,
        LegsFormulation,
    )
}
