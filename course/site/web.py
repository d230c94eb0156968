"""What a site has besides pages: for search engines, feed readers and readers who are lost.

Addresses are absolute if the address of the site is known, and relative otherwise.
"""

import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

NOT_FOUND = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex">
<meta name="description" content="This page does not exist."><title>No such page - {name}</title>
<style>
body {{ font: 18px/1.6 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto;
  padding: 0 1.2rem; background: #fff; color: #1c2230 }} a {{ color: #1f5fb8 }}
@media (prefers-color-scheme: dark) {{ body {{ background: #131416; color: #e6eaf1 }}
  html {{ background: #131416 }} a {{ color: #7db2ff }} }}
</style>
</head><body><main><h1>No such page</h1>
<p>The address is misspelled, or the page was moved.
<a href="{home}index.html">Go to the first page of {name}</a>, or
<a href="{home}search.html">search</a>.</p></main></body></html>
"""


def not_found(name: str, site: str) -> str:
    """A self-contained page, since it is shown at any depth."""
    return NOT_FOUND.format(name=escape(name), home=site)


def robots(site: str) -> str:
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {site}sitemap.xml\n" if site else "")


def sitemap(site: str, pages: list[str]) -> str:
    """The list of all pages, with full addresses, as the format requires."""
    rows = "".join(f"<url><loc>{escape(site + page)}</loc></url>\n" for page in sorted(pages))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'
    )


# changes


@dataclass(frozen=True)
class Change:
    """One section of the changelog. `when` is when its heading was written."""

    version: str
    text: str
    when: datetime


def changes(file: Path) -> list[Change]:
    """The sections of a CHANGELOG.md, in their order."""
    sections = re.split(r"^## ", file.read_text("utf-8"), flags=re.M)[1:]
    found = []
    for section in sections:
        version, _, text = section.partition("\n")
        found.append(Change(version.strip(), text.strip(), written(file, version.strip())))
    return found


def written(file: Path, version: str) -> datetime:
    """When git saw a version's heading first, or the latest change of the unreleased section."""
    command = ["git", "log", "--format=%cI"]
    if version[:1].isdigit():
        command += ["--reverse", f"-S## {version}\n"]
    command += ["--", file.name]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True)
    first = done.stdout.partition("\n")[0] if done.returncode == 0 else ""
    if first:
        return datetime.fromisoformat(first).astimezone(UTC)
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def feed(name: str, site: str, found: list[Change], page: str) -> str:
    """The changes as an Atom feed; `page` is where they can be read."""

    def entry(change: Change) -> str:
        return (
            f"<entry><title>{escape(name)} {escape(change.version)}</title>"
            f"<id>{identity(f'{name} {change.version}')}</id>"
            f'<link href="{escape(site + page)}"/><updated>{change.when.isoformat()}</updated>'
            f'<content type="text">{escape(change.text)}</content></entry>\n'
        )

    newest = max(change.when for change in found)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>Changes of {escape(name)}</title><id>{identity(name)}</id>"
        f"<author><name>The {escape(name)} authors</name></author>"
        f'<link rel="self" href="{escape(site)}changes.atom"/>'
        f'<link href="{escape(site)}index.html"/>'
        f"<updated>{newest.isoformat()}</updated>\n{''.join(map(entry, found))}</feed>\n"
    )


def identity(text: str) -> str:
    """A name that stays the same wherever the site is published."""
    return uuid5(NAMESPACE_URL, text).urn
