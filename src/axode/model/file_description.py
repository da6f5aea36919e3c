"""What a model file holds so that runs can change rows and speeds: the description itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any

from axode.disk.typed import as_dataclass
from axode.errors import AxodeError, FileError, collect_warnings
from axode.mechanism.description_cache import NoDigest, digest_of
from axode.mechanism.elements.bodies import Mesh
from axode.mechanism.topology import parameters_of, speed_units
from axode.symbolic.constraints.row_numbers import RowNumbers

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.model.metadata import Facts
    from axode.symbolic.equations import Equations


@dataclass(frozen=True)
class FileDescription:
    """A mechanism as a document of a mechanism file, and the numbers of its rows.

    Attributes:
        rows: Numbers of all rows at the configurations at which the mechanism was derived.
        document: Tables of the mechanism file, without meshes.
        name, formulation, speeds, parameters: Those of the model.
    """

    rows: RowNumbers
    document: dict[str, Any]
    name: str
    formulation: str
    speeds: tuple[str, ...]
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, equations: Equations, rows: RowNumbers) -> FileDescription | None:
        """Describe a mechanism, exactly; None if a file cannot hold it."""
        from axode.mechanism.files.toml.toml_writer import document_of

        mechanism = equations.mechanism
        bare = _without_meshes(mechanism)
        with contextlib.suppress(AxodeError, NoDigest, RecursionError):
            document = document_of(bare)
            speeds, parameters = tuple(speed_units(mechanism)), tuple(parameters_of(mechanism))
            again = _mechanism(document, mechanism.name)
            same = digest_of(_without_meshes(again)) == digest_of(bare)
            if same and parameters == tuple(parameters_of(again)):
                form = equations.formulation
                return cls(rows, document, mechanism.name, form, speeds, parameters)
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the description in JSON's own types."""
        return {"rows": asdict(self.rows), "document": self.document}

    @classmethod
    def from_json(cls, data: Any, facts: Facts) -> FileDescription:
        """Read what `to_json` returned.

        Raises:
            FileError: for what is no description, or not that of the model.
        """
        if not isinstance(data, dict) or set(data) != {"rows", "document"}:
            raise FileError("its mechanism has other entries than rows and document")
        if not isinstance(data["document"], dict):
            raise FileError("its mechanism is no table")
        rows = as_dataclass(RowNumbers, data["rows"], "rows")
        for fault in chain(rows.faults, _disagreements(rows, facts)):
            raise FileError(f"its rows have {fault}")
        parameters = tuple(name for name, _ in facts.parameters)
        names = facts.name, facts.formulation, facts.speeds, parameters
        return cls(rows, data["document"], *names)

    @property
    def is_usable(self) -> bool:
        """True where equations can be derived: CasADi may be missing where files are read."""
        with contextlib.suppress(ImportError):
            return find_spec("casadi") is not None
        return False

    @cached_property
    def equations(self) -> Equations:
        """Equations on the rows and speeds of the model.

        Raises:
            FileError: if the description is not that of the model.
        """
        from axode.model.function_source import SymbolicLibrary
        from axode.symbolic.equations import derive

        own, mechanism = self.rows.own, _mechanism(self.document, self.name)
        known = tuple(speed_units(mechanism)), tuple(parameters_of(mechanism))
        if known != (self.speeds, self.parameters):
            raise FileError(f"the file of model '{self.name}' holds another mechanism")
        independent = [self.speeds[j] for j in own.independent]
        with collect_warnings([]):  # they were issued when the mechanism was derived
            equations = derive(mechanism, self.formulation, independent, self_check=False)
        found = SymbolicLibrary(equations, "cpu", fixed=False).row_numbers
        if found.names != self.rows.names:
            raise FileError(f"the file of model '{self.name}' holds another mechanism")
        return equations if found.own == own else equations.on(own)


def _without_meshes(mechanism: Mechanism) -> Mechanism:
    """A mechanism without shapes that are files on this machine."""
    kept = {b.name: tuple(s for s in b.shapes if type(s) is not Mesh) for b in mechanism.bodies}
    return replace(mechanism, bodies=[replace(b, shape=kept[b.name]) for b in mechanism.bodies])


def _mechanism(document: dict[str, Any], name: str) -> Mechanism:
    from axode.mechanism.files.toml.toml_reader import mechanism_from

    return mechanism_from(document, {}, f"the file of model '{name}'", name)


def _disagreements(rows: RowNumbers, facts: Facts) -> Iterator[str]:
    """What rows and metadata of a file say differently."""
    if rows.speeds != len(facts.speeds):
        yield "other speeds than the model"
    elif tuple(rows.names[r] for r in rows.own.rows) != facts.rows:
        yield "other names than those of the model"
    elif tuple(facts.speeds[j] for j in rows.own.independent) != facts.independent:
        yield "other independent speeds than the model"
    elif any(len(q) != len(facts.coordinates) for q in rows.samples):
        yield "configurations of other sizes"
