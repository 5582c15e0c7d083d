"""The papers as data: pages, fenced blocks, links, commands. Reads files; runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

_FENCE = re.compile(r"^(```+)([^\n`]*)\n(.*?)^\1[ ]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"""\[[^\]]*\]\(([^)\s]+)\)|\s(?:src|srcset)="([^"]+)\"""")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_TITLE = re.compile(r"# (?P<file>[\w/-]+\.(?:py|toml))(?P<more>, continued)?\n")
_ROTA = re.compile(r"(?:^|[\s/=])rota((?: +[^\s#;|&<>]+)+)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block. ``python`` and ``console`` blocks are run unless they say ``notest``."""

    language: str
    is_run: bool
    text: str
    line: int

    @property
    def file(self) -> tuple[str, bool] | None:
        """The file that the block is, and whether it continues one: its first line says so."""
        match = _TITLE.match(self.text)
        return (match["file"], match["more"] is not None) if match else None


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [
            Block(
                language=(words := match[2].split() or [""])[0],
                is_run=words[0] in ("python", "console", "toml") and "notest" not in words,
                text=match[3],
                line=self.text.count("\n", 0, match.start()) + 2,
            )
            for match in _FENCE.finditer(self.text)
        ]

    @cached_property
    def prose(self) -> str:
        return _FENCE.sub("", self.text)

    @property
    def links(self) -> list[str]:
        """Where its links and pictures lead, as far as that is within the project."""
        found = [link or picture for link, picture in _LINK.findall(self.prose)]
        return [one for one in found if "://" not in one and "mailto:" not in one]

    @property
    def anchors(self) -> set[str]:
        return {_slug(heading) for heading in _HEADING.findall(self.prose)}

    @property
    def words(self) -> set[str]:
        """Everything that stands in backticks."""
        return set(_INLINE.findall(self.prose))

    def commands(self) -> Iterator[str]:
        """What follows ``rota`` wherever a command line is shown."""
        for block in self.blocks:
            if block.language in ("sh", "console", "ini", "procfile", "dockerfile", "yaml"):
                shown = _typed(block) if block.language == "console" else block.text
                yield from (found.strip() for found in _ROTA.findall(shown))
        for word in self.words:
            if word.startswith("rota ") and "…" not in word:
                yield word.removeprefix("rota ").strip()


def all_pages() -> list[Page]:
    paths = [ROOT / name for name in TOP] + sorted(DOCS.rglob("*.md"))
    return [Page(path) for path in paths]


def _typed(block: Block) -> str:
    return "\n".join(line[2:] for line in block.text.splitlines() if line.startswith("$ "))


def _slug(heading: str) -> str:
    """As GitHub and most renderers make it."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.strip().replace(" ", "-")
