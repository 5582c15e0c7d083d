"""The documentation as data: pages, fenced blocks, links, commands. Reads files; runs nothing."""

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
    """One fenced block. ``python`` and ``console`` blocks are run unless marked ``notest``."""

    language: str
    is_run: bool
    text: str
    line: int

    @property
    def file(self) -> tuple[str, bool] | None:
        """The file that the first line names, and whether the block continues it."""
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
        """Targets of its links and pictures within the project."""
        found = [link or picture for link, picture in _LINK.findall(self.prose)]
        return [one for one in found if "://" not in one and "mailto:" not in one]

    @property
    def anchors(self) -> set[str]:
        return {_slug(heading) for heading in _HEADING.findall(self.prose)}

    @property
    def inline_code(self) -> set[str]:
        """Everything in backticks, outside fenced blocks."""
        return set(_INLINE.findall(self.prose))

    def commands(self) -> Iterator[str]:
        """The arguments of every ``rota`` command line on the page."""
        for block in self.blocks:
            if block.language in ("sh", "console", "ini", "procfile", "dockerfile", "yaml"):
                shown = _typed(block) if block.language == "console" else block.text
                yield from (found.strip() for found in _ROTA.findall(shown))
        for code in self.inline_code:
            if code.startswith("rota ") and "…" not in code:
                yield code.removeprefix("rota ").strip()


def all_pages() -> list[Page]:
    paths = [ROOT / name for name in TOP] + sorted(DOCS.rglob("*.md"))
    return [Page(path) for path in paths]


def _typed(block: Block) -> str:
    return "\n".join(line[2:] for line in block.text.splitlines() if line.startswith("$ "))


def _slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and most renderers build it."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.strip().replace(" ", "-")
