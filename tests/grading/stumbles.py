"""A step of nbconvert that fails on demand; another process imports it."""

import os
import signal

from nbconvert.preprocessors import Preprocessor
from traitlets import Bool


class Stumbles(Preprocessor):
    """What a notebook's text asks for happens to the process that shows it."""

    enabled = Bool(True)

    def preprocess(self, nb, resources):
        text = "".join(cell.source for cell in nb.cells)
        if "LOOP" in text:
            while True:
                pass
        if "HOG" in text:
            bytearray(8 * 2**30)
        if "CRASH" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        return nb, resources
