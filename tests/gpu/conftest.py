"""Tests in on_device/ need a process of their own, with a GPU, pretended or real."""

import os

WITH_A_GPU = {"RLCOURSE_PRETENDED_GPU", "RLCOURSE_REAL_GPU"} & os.environ.keys()
collect_ignore = [] if WITH_A_GPU else ["on_device"]
