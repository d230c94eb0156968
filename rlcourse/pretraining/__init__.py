"""A small model from nothing: ``rlcourse build-model``.

Between the embedded model and the smallest that one downloads lies a model that a GPU trains in
minutes. What it is taught are GSM8K's training solutions and generated word problems; how is the
course's own ``sft``, from random weights. See ``build.py``.
"""
