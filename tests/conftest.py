"""What holds for every test: one thread, here and in the processes that tests start.

The tensors of the tests are small; several threads only wait for each other, and on a busy machine
that took twenty times the work.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is first imported
