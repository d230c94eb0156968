"""Where the course stands on the web, and the addresses that follow from it.

``REPOSITORY`` is the only place that holds it. Whoever publishes the course, or a fork of it, fills
it in and runs ``rlcourse build``: every notebook then installs the course from there where it is
missing, and has links that open it on Colab, on Kaggle and in a codespace.
"""

REPOSITORY = ""  # such as "https://github.com/OWNER/NAME"; "" as long as it is not published
BRANCH = "main"


def requirement(repository: str | None = None) -> str:
    """What pip installs the course from, ``git+https://…``; "" where it is not published."""
    address = REPOSITORY if repository is None else repository
    return f"git+{address}@{BRANCH}" if address else ""


def launch_links(lesson: str, repository: str | None = None) -> dict[str, str]:
    """{what it is called: address} of everything that opens a lesson's notebook in a browser.

    Empty where the course is not published. They know repositories on GitHub.
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
