"""An extension of Jupyter's server: the address ``/lesson/PATH`` opens a notebook in JupyterLab.

JupyterLab shows the folder of the notebook that an address names, here always one with one file.
What makes it list all lessons is a query, and the server cannot print an address that has one: it
appends ``?token=`` itself.
"""

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_escape, url_path_join
from tornado.web import authenticated


class Lesson(JupyterHandler):
    """Redirects to JupyterLab, with the notebook open and the list of files at the top."""

    @authenticated
    def get(self, path: str) -> None:
        address = url_path_join(self.base_url, "lab", "tree", url_escape(path))
        self.redirect(f"{address}?file-browser-path=/")


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "rlcourse.lab.opening"}]


def _load_jupyter_server_extension(server) -> None:
    address = url_path_join(server.web_app.settings["base_url"], "lesson", "(.+)")
    server.web_app.add_handlers(".*$", [(address, Lesson)])
