"""Grading on Gradescope: an archive for a lesson, and what it does there.

``archive`` makes the archive, on the instructor's machine. In Gradescope's image, ``setup.sh``
installs what the archive holds and calls ``prepared``, once. For each submission, ``grading`` runs
the same reader and the same sandbox as ``rlcourse grade``, and ``results`` puts what they find into
Gradescope's words.

A container there has half a processor and 768 MiB. So the process that starts the others imports
no torch and opens no gradebook: beside it there are the reader, which has the references, and the
server of student code, which has not.
"""
