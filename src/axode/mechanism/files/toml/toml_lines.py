"""Where the keys of a TOML file stand.

The standard library reads TOML without telling lines. This scanner reads text that is already
known to be valid TOML, looks only for table headers and keys, and skips values.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_VALUE = re.compile(r"[^,\]}\n#]*")
_STRINGS = {
    '"""': re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}(?!")', re.DOTALL),
    "'''": re.compile(r"'''.*?'{3,5}(?!')", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    "'": re.compile(r"'[^'\n]*'"),
}


def key_lines(text: str) -> dict[Path, int]:
    """The line of every table, key and array entry, by its path from the top of the file."""
    return _Scanner(text.replace("\r\n", "\n")).scan()


class _Scanner:
    """One pass over the text; `at` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[Path, int] = {}
        self.entries: dict[Path, int] = {}  # how many [[tables]] of a name there were

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        self.skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_BLANK)
        return self.lines

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Pass over what the pattern matches here, counting lines."""
        match = pattern.match(self.text, self.at)
        assert match, "only text that tomllib has accepted is scanned"
        found = match.group()
        self.at = match.end()
        self.line += found.count("\n")
        return found

    def note(self, path: Path, line: int) -> None:
        """Remember where a path stands first, and the tables it implies."""
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def header(self) -> Path:
        """[table] or [[table]]"""
        line = self.line
        double = self.text.startswith("[[", self.at)
        self.at += 2 if double else 1
        path = self.inside_arrays(self.key(), last=not double)
        if double:
            number = self.entries.get(path, -1) + 1
            self.entries[path] = number
            path = (*path, number)
        self.note(path, line)
        # a table may be mentioned by a longer header before its own
        self.lines[path] = line
        self.skip(_SPACE)
        self.at += 2 if double else 1
        return path

    def inside_arrays(self, key: list[str], last: bool) -> Path:
        """The path of a header's key: below [[a]], [a.b] belongs to the latest entry of a."""
        path: Path = ()
        for index, part in enumerate(key):
            path = (*path, part)
            if path in self.entries and (last or index < len(key) - 1):
                path = (*path, self.entries[path])
        return path

    def key(self) -> list[str]:
        """A key, perhaps dotted, perhaps quoted."""
        parts = []
        while True:
            self.skip(_SPACE)
            quote = self.text[self.at]
            part = self.skip(_STRINGS[quote] if quote in "\"'" else _BARE_KEY)
            parts.append(tomllib.loads(f"x = {part}")["x"] if quote in "\"'" else part)
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def pair(self, table: Path) -> None:
        """key = value"""
        line = self.line
        path = (*table, *self.key())
        self.note(path, line)
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def value(self, path: Path) -> None:
        """Pass over a value; keys and entries inside it are noted."""
        rest = self.text[self.at : self.at + 3]
        if rest.startswith("["):
            self.array(path)
        elif rest.startswith("{"):
            self.inline_table(path)
        else:
            start = next((quote for quote in _STRINGS if rest.startswith(quote)), None)
            self.skip(_STRINGS[start] if start else _PLAIN_VALUE)

    def array(self, path: Path) -> None:
        self.at += 1
        index = 0
        self.skip(_BLANK)
        while not self.text.startswith("]", self.at):
            self.lines[(*path, index)] = self.line
            self.value((*path, index))
            self.skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
            self.skip(_BLANK)
            index += 1
        self.at += 1

    def inline_table(self, path: Path) -> None:
        self.at += 1
        self.skip(_BLANK)
        while not self.text.startswith("}", self.at):
            self.pair(path)
            self.skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
            self.skip(_BLANK)
        self.at += 1
