"""A small model from random weights: ``rlcourse build-model``.

It is larger than the embedded model and smaller than any that you would download, and a GPU trains
it in minutes: on GSM8K's training solutions and generated word problems, with the course's own
``sft``. See ``build.py``.
"""
