"""What pyproject.toml cannot say: lessons in the wheel, and the addresses of rlcourse/published.py.

A course and its built notebooks lie beside the package; a wheel carries them inside of it.
"""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = (
    *("course/course.toml", "course/nbgrader_config.py", "course/lessons/**/*.*"),
    "notebooks/[0-9][0-9]_*/*.ipynb",
)


class BuildWithLessons(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # then they are read where they lie
            for source in (path for pattern in SHIPPED for path in Path().glob(pattern)):
                if "__pycache__" in source.parts or not source.is_file():
                    continue
                target = Path(self.build_lib, "rlcourse", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


PUBLISHED = runpy.run_path(str(Path(__file__).parent / "rlcourse" / "published.py"))

setup(cmdclass={"build_py": BuildWithLessons}, project_urls=PUBLISHED["project_urls"]())
