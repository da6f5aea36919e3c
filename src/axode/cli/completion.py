"""`axode completion`: scripts with which shells complete commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from axode.cli.model_sources import ENDINGS

_CHOICES = re.compile(r"[a-z0-9_.:,]+(\|[a-z0-9_.:,]+)+")
_LISTED = re.compile(r": (\w+(?:, \w+)+)")
_ENDING = re.compile(r"(?<![\w.])\.[a-z]\w*")


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument()]) -> None:
    """Print a script that completes verbs, options, mechanisms and files in a shell.

    axode completion bash > ~/.local/share/bash-completion/completions/axode

    axode completion fish > ~/.config/fish/completions/axode.fish

    Options:
        shell bash|zsh|fish: Shell that reads the script.
    """
    from axode import gallery
    from axode.cli.commands import app

    commands: Any = typer.main.get_command(app)
    verbs, names = [describe(verb) for verb in commands.commands.values()], tuple(gallery.NAMES)
    fish = shell == "fish"
    print(fish_script(verbs, names) if fish else bash_script(verbs, names, shell), end="")


@dataclass(frozen=True)
class Completed:
    """What may stand in one place of a command.

    Attributes:
        flags: The option's names; none for arguments.
        about: What the option does.
        takes_value: Whether a value follows.
        words: Values by name.
        endings: Endings of files that may be given.
        folder: Whether a folder may be given.
        mechanisms: Whether a mechanism of the gallery may be given.
    """

    flags: tuple[str, ...]
    about: str
    takes_value: bool = True
    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    folder: bool = False
    mechanisms: bool = False


@dataclass(frozen=True)
class CompletedVerb:
    """A verb with its options, and what its arguments may be."""

    name: str
    about: str
    options: tuple[Completed, ...]
    argument: Completed


def describe(verb: Any) -> CompletedVerb:
    """Return what may follow a verb, read off the parameters that its help is made of."""
    options, argument = [], Completed((), "")
    for parameter in verb.params:
        values = _values(parameter.metavar or "", parameter.help or "")
        flags, about = (*parameter.opts, *parameter.secondary_opts), parameter.help or ""
        if parameter.param_type_name == "argument":
            argument = Completed((), "", **values)
        elif parameter.is_flag:
            options.append(Completed(flags, about, False))
        else:
            options.append(Completed(flags, about, **values))
    options.append(Completed(("--help",), "Show the help.", False))
    return CompletedVerb(verb.name, verb.help.splitlines()[0], tuple(options), argument)


def _values(place: str, about: str) -> dict[str, Any]:
    """Return what may be given, by the placeholder and the help."""
    if place == "SOURCE":
        return {"mechanisms": True, "endings": ENDINGS}
    if place == "NAME" and "Mechanism" in about:
        return {"mechanisms": True}
    if _CHOICES.fullmatch(place):
        return {"words": tuple(place.split("|"))}
    listed = _LISTED.search(about)
    if place.startswith("NAME") and listed:
        return {"words": tuple(listed[1].split(", "))}
    endings = tuple(dict.fromkeys(_ENDING.findall(about))) or (".json",)
    return {"endings": endings if "FILE" in place else (), "folder": "FOLDER" in place}


# bash and zsh ------------------------------------------------------------------------------------


def bash_script(verbs: Sequence[CompletedVerb], mechanisms: Sequence[str], shell: str) -> str:
    """Return a function of bash; zsh reads it too."""
    lines = [f"# Completion of axode for {shell}."]
    if shell == "zsh":
        lines += ["autoload -U +X compinit && compinit", "autoload -U +X bashcompinit"]
        lines += ["bashcompinit"]
    lines += [
        f'_axode_mechanisms="{" ".join(mechanisms)}"',
        "_axode_files() {  # files of some endings, and folders on the way to them",
        '    local word="$1" file ending; shift',
        "    compopt -o filenames 2>/dev/null",
        '    for file in "$word"*; do',
        '        if [ -d "$file" ]; then COMPREPLY+=("$file"); continue; fi',
        '        for ending in "$@"; do',
        '            case "$file" in *"$ending") [ -e "$file" ] && COMPREPLY+=("$file");; esac',
        "        done",
        "    done",
        "}",
        "_axode() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        "    local options=''",
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        COMPREPLY=($(compgen -W "{_names(verbs)}" -- "$word")); return',
        "    fi",
        '    case "${COMP_WORDS[1]}" in',
    ]
    for verb in verbs:
        lines += [f"    {verb.name})", '        case "$before" in']
        for option in verb.options:
            if option.takes_value:
                lines.append(f"        {'|'.join(option.flags)}) {_bash_values(option)}; return;;")
        flags = " ".join(flag for option in verb.options for flag in option.flags)
        lines += ["        esac", f'        options="{flags}"']
        lines.append(f'        [ "${{word#-}}" = "$word" ] && {{ {_bash_values(verb.argument)}; }}')
        lines.append("        ;;")
    lines += [
        "    esac",
        '    if [ "${word#-}" != "$word" ]; then',
        '        COMPREPLY=($(compgen -W "$options" -- "$word"))',
        "    fi",
        "}",
        "complete -F _axode axode",
    ]
    return "\n".join(lines) + "\n"


def _names(verbs: Sequence[CompletedVerb]) -> str:
    return " ".join([*(verb.name for verb in verbs), "--help", "--version"])


def _bash_values(place: Completed) -> str:
    steps = []
    if place.words or place.mechanisms:
        words = "$_axode_mechanisms" if place.mechanisms else " ".join(place.words)
        steps.append(f'COMPREPLY=($(compgen -W "{words}" -- "$word"))')
    if place.endings or place.folder:
        steps.append(" ".join(['_axode_files "$word"', *place.endings]))
    return "; ".join(steps) or ":"


# fish --------------------------------------------------------------------------------------------


def fish_script(verbs: Sequence[CompletedVerb], mechanisms: Sequence[str]) -> str:
    """Return lines that fish reads."""
    lines = [
        "# Completion of axode for fish.",
        f"set -g __axode_mechanisms {' '.join(mechanisms)}",
        "function __axode_files  # files of some endings, and folders on the way to them",
        "    set -l endings (string join '|' (string escape --style=regex -- $argv))",
        '    __fish_complete_path (commandline -ct) | string match -er "(?:/|$endings)\\t"',
        "end",
        "complete -c axode -f",
    ]
    for verb in verbs:
        here = f"-n '__fish_seen_subcommand_from {verb.name}'"
        about = _fish_quote(verb.about)
        lines.append(f"complete -c axode -n __fish_use_subcommand -a {verb.name} -d {about}")
        arguments = _fish_values(verb.argument)
        if arguments:
            lines.append(f"complete -c axode {here} -a {arguments}")
        for option in verb.options:
            text = option.about.split(";")[0].split(". ")[0]
            text = text.split(": ")[0] if option.words else text  # fish lists the words anyway
            for flag in option.flags:
                kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                taken = " -x" if option.takes_value else ""
                values = _fish_values(option) if option.takes_value else ""
                given = f" -a {values}" if values else ""
                what = _fish_quote(text)
                lines.append(f"complete -c axode {here} {kind}{taken}{given} -d {what}")
    return "\n".join(lines) + "\n"


def _fish_values(place: Completed) -> str:
    """Return what fish offers, as one word of its own; fish expands it when it completes."""
    parts = ["$__axode_mechanisms"] if place.mechanisms else list(place.words)
    if place.endings:
        parts.append(f"(__axode_files {' '.join(place.endings)})")
    if place.folder:
        parts.append("(__fish_complete_directories)")
    return _fish_quote(" ".join(parts)) if parts else ""


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
