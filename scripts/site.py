"""Hooks of the documentation site (mkdocs.yml): pages made from the command line itself, files beside docs/, llms.txt.

Each command has a page, and so has every file outside docs/ that a page links to. So the site is complete in a folder.
"""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from barista_bench import __version__
from barista_bench.cli.commands import app
from barista_bench.cli.tree import SECTIONS

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure import StructureItem
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
COPIED = "repository"
"""Folder of the site for files from outside docs/, at the same paths as in the repository."""
COMMANDS = "reference/commands"
WIDTH = 80
"""Number of characters per line of a command's help, so that lines fit on a page."""
QUESTIONS = "faq.md"
WEIGHT = 20
"""Search weight of a word on the page of questions (1 elsewhere), since questions have words of all pages."""
FORMAT = "graph_format.md"
FORMAT_WEIGHT = 6
"""Search weight of a word on the page about the annotation format, since every benchmark's page has its words."""
_AMBIGUOUS, _UNAMBIGUOUS = "e=e+s+o.id", 'e=e+s+o.id+","'
"""How lunr, as the theme ships it, names a node of its tree of words, and how it should (`_mend_search`)."""
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
_NAMED_BY_FILE = re.compile(r"\[[\w/]+\.md\](?=\(([^)\s#]+\.md)[)#])")
_NAMED_PAGE = re.compile(r"(?<!\[)`docs/([\w/]+\.md)`")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the commands' pages to the navigation, below the list of all commands, and the version to the footer."""
    config.copyright = f"barista_bench {__version__}, Apache-2.0"
    (reference,) = (section["Reference"] for section in config.nav or [] if "Reference" in section)
    reference[0] = {"Commands": [f"{COMMANDS}.md", *(f"{COMMANDS}/{name}.md" for name in _commands())]}
    (metrics,) = (entry for entry in reference if "Metrics" in entry)
    metrics["Metrics"] = [
        "reference/metrics.md",
        *(site_path(path) for path in sorted(ROOT.glob("metrics/*/README.md"))),
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of commands, and the files outside docs/ that pages link to or the navigation names."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, f"{COMMANDS}.md", content=_index()))
    for name, command in _commands().items():
        files.append(File.generated(config, f"{COMMANDS}/{name}.md", content="".join(_page(_program(), name, command))))
    named = [ROOT / path.removeprefix(f"{COPIED}/") for path in _leaves(config.nav) if path.startswith(f"{COPIED}/")]
    waiting = [*sorted((ROOT / "docs").rglob("*.md")), *named]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if not path.is_relative_to(ROOT / "docs"):
            files.append(File.generated(config, site_path(path), abs_src_path=str(path)))
        if path.suffix == ".md":
            targets = (path.parent / link for link in _LINK.findall(path.read_text(encoding="utf-8")))
            waiting += [Path(os.path.normpath(target)) for target in targets if target.is_file()]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of docs/ to the site's copies, and turn names of pages into links with the pages' titles."""
    here = page.file.src_uri
    if here.endswith("CHANGELOG.md"):
        page.meta["search"] = {"exclude": True}
    elif here == QUESTIONS:
        page.meta["search"] = {"boost": WEIGHT}
    elif here == FORMAT:
        page.meta["search"] = {"boost": FORMAT_WEIGHT}
    if here in (QUESTIONS, "index.md"):
        page.meta["hide"] = ["navigation"]  # alone in their parts
    page.meta.pop("tags", None)  # the Hub's, of cards: the search would count them a million times
    if page.file.generated_by and not here.startswith(COPIED):
        return markdown
    folder = (ROOT / here.removeprefix(f"{COPIED}/") if here.startswith(COPIED) else ROOT / "docs" / here).parent

    def moved(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[0]))
        return _from(here, site_path(target)) if target.is_file() else match[0]

    def titled(match: re.Match[str]) -> str:
        target = folder / match[1]
        heading = re.search(r"^# (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE) if target.is_file() else None
        return f"[{heading[1]}]" if heading else match[0]

    def linked(match: re.Match[str]) -> str:
        return f"[{match[0]}]({_from(here, match[1])})" if files.get_file_from_path(match[1]) else match[0]

    for pattern, replaced in ((_NAMED_BY_FILE, titled), (_LINK, moved), (_NAMED_PAGE, linked)):
        markdown = _outside_code(markdown, pattern, replaced)
    return markdown


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load the shim that makes the search work in a folder from the site itself. Material would fetch version 1.0.4."""
    return output.replace(
        "https://unpkg.com/iframe-worker/shim", _from(page.file.dest_uri, "javascripts/iframe-worker.js")
    )


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Remember the navigation for llms.txt."""
    config.extra["pages"] = nav
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt with every page and its first sentence, as https://llmstxt.org describes, and fix the search.

    The texts are beside the pages.
    """
    _mend_search(Path(config.site_dir))
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    nav: Navigation = config.extra.pop("pages")
    lines += [line for item in nav.items for line in _list_pages(item, Path(config.site_dir))]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _mend_search(site: Path) -> None:
    """Keep lunr from treating two different nodes of its tree of words as one.

    lunr shares nodes whose edges are written in the same way, each as a letter and a number without a separator. If
    letters are digits, "1" to node 234 looks like "1" to node 2 and "3" to node 4. So words with digits got lost, and
    words that no page has appeared. A search that met such a word failed completely. Any change of a text could cause
    or hide this.
    """
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    code = worker.read_text(encoding="utf-8")
    if code.count(_AMBIGUOUS) != 1:
        raise ValueError(f"{worker.name}: {_AMBIGUOUS!r} is not there once. Fix: see whether lunr still needs it")
    worker.write_text(code.replace(_AMBIGUOUS, _UNAMBIGUOUS), encoding="utf-8")


def site_path(path: Path) -> str:
    """Return the path in the site of a file of the repository."""
    inside = path.relative_to(ROOT)
    return inside.relative_to("docs").as_posix() if inside.parts[0] == "docs" else f"{COPIED}/{inside.as_posix()}"


def _from(page: str, target: str) -> str:
    return os.path.relpath(target, os.path.dirname(page) or ".")


def _outside_code(markdown: str, pattern: re.Pattern[str], replaced: Any) -> str:  # noqa: ANN401  (as re.sub takes it)
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if index % 2 else pattern.sub(replaced, part) for index, part in enumerate(parts))


def _leaves(nav: Any) -> Iterator[str]:  # noqa: ANN401  (lists and dicts of YAML)
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(item)


def _list_pages(item: StructureItem, site: Path) -> Iterator[str]:
    """Yield the pages below a part of the navigation, one per line, with a heading for each part of the first level."""
    from mkdocs.structure.nav import Section
    from mkdocs.structure.pages import Page

    if isinstance(item, Section):
        if item.parent is None:
            yield from ("", f"## {item.title}", "")
        for child in item.children:
            yield from _list_pages(child, site)
    elif isinstance(item, Page):
        text, target = item.markdown or "", item.file.dest_uri
        if ":::" not in text:
            target = str(Path(target).with_suffix(".md"))
            (site / target).write_text(text, encoding="utf-8")
        paragraphs = (
            " ".join(paragraph.split()) for paragraph in text.split("\n\n") if re.match(r"[\w`*[]", paragraph)
        )
        sentence = re.match(r".*?[.:?](?=\s|$)", next(paragraphs, ""))
        yield f"- [{item.title}]({target})" + (f": {sentence[0]}" if sentence else "")


def _program() -> typer.Context:
    return typer.main.get_command(app).make_context("barista-bench", [], resilient_parsing=True)  # type: ignore[return-value]


def _commands() -> dict[str, Any]:
    """Return the commands with one-word names. The page of each also shows the commands whose names begin with it."""
    context = _program()
    return {name: context.command.commands[name] for name in context.command.list_commands(context)}  # type: ignore[attr-defined]


def _index() -> str:
    commands, sections = _commands(), list[str]()
    for title, names in SECTIONS.items():
        lines = [
            f"- [`{name}`](commands/{name}.md): {_escape(commands[name].get_short_help_str(sys.maxsize))}\n"
            for name in names
            if name in commands
        ]
        sections.append(f"\n## {title}\n\n{''.join(lines)}")
    text = "# Commands\n\nMade from the command line itself. `barista-bench COMMAND --help` says the same.\n"
    return text + "".join(sections)


def _page(parent: Any, name: str, command: Any, level: int = 1) -> Iterator[str]:  # noqa: ANN401
    """Yield a command's first sentence and help, then the same for each command whose name begins with its name."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, max_content_width=WIDTH)
    context.terminal_width = WIDTH
    yield f"{'#' * level} {context.command_path}\n\n{_escape(command.get_short_help_str(sys.maxsize))}\n\n"
    yield f"```text\n{command.get_help(context)}\n```\n\n"
    for part, subcommand in getattr(command, "commands", {}).items():
        yield from _page(context, part, subcommand, level + 1)
    for related in parent.command.related_commands(name):
        yield from _page(parent, related, parent.command.commands[related], level + 1)


def _escape(text: str) -> str:
    """Escape text of the command line, so that Markdown shows it unchanged."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(
        part if index % 2 else re.sub(r"([\\*_\[\]|])", r"\\\1", html.escape(part, quote=False))
        for index, part in enumerate(parts)
    )
