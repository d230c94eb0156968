"""Lessons are built into notebooks/, beside the package; a wheel carries them inside of it."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLessons(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # then they are read where they lie
            for source in Path("notebooks").glob("[0-9][0-9]_*/*.ipynb"):
                target = Path(self.build_lib, "rlcourse", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


setup(cmdclass={"build_py": BuildWithLessons})
