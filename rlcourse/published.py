"""Where the course is published on the web, and the addresses that follow from that.

To publish the course, or a fork of it, write the address into ``REPOSITORY`` and as
``repository-code`` into CITATION.cff, then run ``rlcourse build``: every notebook then installs the
course from there if it is missing, and has links that open it on Colab, on Kaggle and in a
codespace. The package's metadata name it, too.
"""

import re

REPOSITORY = ""  # such as "https://github.com/OWNER/NAME"; "" until it is published
BRANCH = "main"


def requirement(repository: str | None = None) -> str:
    """What pip installs the course from, ``git+https://…``; "" if it is not published."""
    address = REPOSITORY if repository is None else repository
    return f"git+{address}@{BRANCH}" if address else ""


def site(repository: str | None = None) -> str:
    """Where GitHub Pages shows the course's site, with a slash at its end; "" if unknown."""
    address = (REPOSITORY if repository is None else repository).rstrip("/")
    found = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", address)
    if not found:
        return ""
    owner, name = found[1].lower(), found[2]
    home = f"https://{owner}.github.io/"
    return home if name.lower() == f"{owner}.github.io" else f"{home}{name}/"


def project_urls() -> dict[str, str]:
    """{label: address} for the package's metadata; empty if the course is not published."""
    if not REPOSITORY:
        return {}
    return {
        "Repository": REPOSITORY,
        "Changelog": f"{REPOSITORY}/blob/{BRANCH}/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }


def launch_links(lesson: str, repository: str | None = None) -> dict[str, str]:
    """{what it is called: address} of everything that opens a lesson's notebook in a browser.

    Empty if the course is not published. All of them require a repository on GitHub.
    """
    address = (REPOSITORY if repository is None else repository).rstrip("/")
    if not address:
        return {}
    owner_and_name = address.removeprefix("https://github.com/")
    blob = f"{owner_and_name}/blob/{BRANCH}/notebooks/{lesson}/{lesson}.ipynb"
    return {
        "Colab": f"https://colab.research.google.com/github/{blob}",
        "Kaggle": f"https://www.kaggle.com/kernels/welcome?src=https://github.com/{blob}",
        "Codespaces": f"https://codespaces.new/{owner_and_name}",
    }
