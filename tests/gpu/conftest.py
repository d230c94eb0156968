"""Tests in on_device/ need a process with the pretended GPU: test_on_a_gpu.py starts it."""

import os

collect_ignore = [] if os.environ.get("RLCOURSE_PRETENDED_GPU") else ["on_device"]
