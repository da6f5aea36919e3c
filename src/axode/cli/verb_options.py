"""Options of the current verb: known ones, those given, and those that have no effect."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_known: set[str] = set()
_given: set[str] = set()
_RENAMED = {"reach": {"--near": "--start"}}  # former names of options by verb


class Verb(TyperCommand):
    """A verb that remembers which of its options were given; others have their defaults."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; former names of options work for one version."""
        for old, new in _RENAMED.get(self.name or "", {}).items():
            if any(one.partition("=")[0] == old for one in args):
                typer.echo(f"{old} is now {new}, and will be removed in the next version", err=True)
                args = [re.sub(f"^{old}(?==|$)", new, one) for one in args]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, with placeholders instead of Python's types."""
        found = super().get_params(ctx)
        for parameter in found:
            if getattr(parameter, "is_flag", True):  # flags, and arguments
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        _known.clear()
        _given.clear()
        for name in ctx.params:
            _known.add(name)
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                _given.add(name)
        return super().invoke(ctx)


class Verbs(TyperGroup):
    """All verbs; Ctrl-C is `typer.Abort`, as some versions of Typer would leave without a word."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the command line."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            raise typer.Abort from None

    def invoke(self, ctx: Any) -> Any:
        """Run the verb that is named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None


def options_of_verb() -> set[str]:
    """Return the names of all options of the current verb."""
    return set(_known)


def refuse(reason: str, *options: str) -> None:
    """Refuse options that would mean nothing here.

    Args:
        reason: Why they mean nothing.
        options: Names of the verb's arguments.

    Raises:
        typer.BadParameter: naming those that were given.
    """
    found = [f"--{name.replace('_', '-')}" for name in options if name in _given]
    if found:
        raise typer.BadParameter(reason, param_hint=" and ".join(found))
