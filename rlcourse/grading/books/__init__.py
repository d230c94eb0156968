"""Where points go: nbgrader's gradebook, due dates, extensions, and the grades of a class.

To learn the version of a new gradebook, nbgrader starts a program, which takes seconds and must be
on the path. Here the same is asked in this process.
"""

import nbgrader.api
from alembic.config import Config
from alembic.script import ScriptDirectory
from nbgrader.dbutil import ALEMBIC_DIR


def _alembic_version() -> str:
    config = Config()
    config.set_main_option("script_location", ALEMBIC_DIR)
    return str(ScriptDirectory.from_config(config).get_current_head())


nbgrader.api.get_alembic_version = _alembic_version
