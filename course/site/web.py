"""What a site has besides pages: for search engines, and for readers who are lost.

Addresses are absolute if the address of the site is known, and relative otherwise.
"""

from html import escape

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
