"""What a site has besides pages: for search engines, and for readers who are lost.

Addresses are absolute if the address of the site is known, and relative otherwise.
"""

from html import escape
from pathlib import Path

HERE = Path(__file__).parent


def not_found(name: str, site: str) -> str:
    """A self-contained page, since it is shown at any depth."""
    page = (HERE / "templates/404.html").read_text("utf-8")
    return page.replace("{home}", site).replace("{name}", escape(name))


def with_way_back(report: str, name: str) -> str:
    """A run's report as a page of the site: with its icon, and a link to the first page."""
    icon = '<link rel="icon" href="_static/favicon.svg">\n</head>'
    link = f'<nav><a href="index.html">← {escape(name)}</a></nav>'
    return report.replace("</head>", icon, 1).replace("<main>", f"<main>\n{link}", 1)


def robots(site: str) -> str:
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {site}sitemap.xml\n" if site else "")


def sitemap(site: str, pages: list[str]) -> str:
    """The list of all pages, with full addresses, as the format requires."""
    rows = "".join(f"<url><loc>{escape(site + page)}</loc></url>\n" for page in sorted(pages))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'
    )
