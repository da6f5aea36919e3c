"""Rival derivations of one physics, with one signature; they must agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from axode.symbolic.formulations.base import AbstractFormulation

_CLASSES = {
    "recursive": "recursive.RecursiveFormulation",
    "complement": "explicit_complement.ComplementFormulation",
    "multipliers": "multipliers.MultiplierFormulation",
    "lagrange": "lagrange.LagrangeFormulation",
    "virtual_work": "virtual_work.VirtualWorkFormulation",
    "spatial_operators": "spatial_operators.SpatialOperatorFormulation",
    "pseudo_joints": "deficient_arms.PseudoJointFormulation",
    "reduced_order": "deficient_arms.ReducedOrderFormulation",
    "legs": "legs.LegsFormulation",
}


class _Formulations(Mapping[str, type[AbstractFormulation]]):
    """Formulations by name, imported when they are first asked for."""

    def __getitem__(self, name: str) -> type[AbstractFormulation]:
        module, _, found = _CLASSES[name].partition(".")
        formulation: type[AbstractFormulation] = getattr(
            import_module(f"{__name__}.{module}"), found
        )
        return formulation

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


FORMULATIONS = _Formulations()
