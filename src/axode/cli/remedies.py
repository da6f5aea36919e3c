"""What errors recommend in Python, as flags of the command line."""

from __future__ import annotations

import re

from axode.cli.model_sources import BUILD_OPTIONS
from axode.cli.verb_options import options_of_verb

# arguments of Python, ahead of a value, as in method='rk4' or derive(independent=[...])
_ARGUMENT = re.compile(r"(?<![-\w.])([a-z_]+)=(?=[\[{('\".\w])")
# what a verb does with another word than Python
_OTHERS = {
    r'input="hold"': "--hold",
    r"lin\.reduced\(": "--states NAME,NAME",
    r"samples=\{": "--table FILE",
    r"compile\(parameters='free'\)": "axode export --parameters free",
    r"save_every=": "--every",
    r"mechanism\.save\(": "axode export --to FILE.toml",
}


def flags_for(message: str) -> list[str]:
    """Return the flags of the current verb for the arguments that a message names."""
    own = options_of_verb()
    found = [
        flag
        for pattern, flag in _OTHERS.items()
        if re.search(pattern, message) and (not flag.startswith("--") or _known(flag, own))
    ]
    for name in _ARGUMENT.findall(message):
        if name in own:
            found.append(f"--{name.replace('_', '-')}")
        elif name in BUILD_OPTIONS and "option" in own and f"--option {name}=" not in message:
            found.append(f"--option {name}=VALUE")
    taken = (
        {"--input"} if "--hold" in found else {"--samples"} if "--table FILE" in found else set()
    )
    return [flag for flag in dict.fromkeys(found) if flag not in taken and flag not in message]


def _known(flag: str, own: set[str]) -> bool:
    return flag.split()[0][2:].replace("-", "_") in own
