"""Grading that cannot be fooled: student code runs confined and is judged from outside.

``engine`` grades a lesson, from the files in ``submitted`` to nbgrader's gradebook. The rooms:

- ``platforms``: Canvas, Moodle, nbgrader's exchange: what is collected there, and how grades and
  feedback go back. The first two are each a class of ``platform.Platform``.
- ``handing_in``: students' directories and notebooks; everything found there becomes a value.
- ``confinement``: the walls (``isolation``, ``syscalls``), the files that can be read inside them
  (``visible``), processes that may be lost (``disposable``), and the ``channel`` by which all talk.
- ``untrusted``: the code that runs inside the walls. A process without references, files, network
  or other processes runs a submission's cells and calls its functions.
- ``running``: the trusted end of the line to it, which asks in lock step and keeps the time.
- ``judging``: draws cases, and compares what is returned with right answers.
- ``books``: nbgrader's gradebook, due dates, extensions, and the grades in it.
- ``pages``: students' work shown to people, made harmless.

``nbgrader_plugin`` puts the same engine under nbgrader's own autograde.

One bug is charged once (``judging.judge``): a function that fails and uses wrong ones is asked
again in a process of its own, where stand-ins for references take their places. The judge answers
their calls. No function is judged while its own reference can be called, and nothing that such a
function says is told in its own words (``judging.wordless``).

What isolation cannot prove: values and gradients are compared with right ones that the answering
process never sees, and whether a function gives the same twice is seen from outside, as it is asked
the same again. But that no gradient reaches a constant, and that no argument was changed, only that
process can see, and student code owns it. It is not told which arguments count as constant: it is
asked for the gradient of every one, and has to know which of them are 0, which is what the exercise
teaches. A student who knows that, and lies instead of calling ``detach``, gains at most a fifth of
that exercise's points, since a function whose numbers are all right has the other four.
"""
