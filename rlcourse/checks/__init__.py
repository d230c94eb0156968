"""How an answer is checked and its mistake named: the engine, which knows no exercise.

``exercise`` says what a declaration holds. Then four rooms:

- ``asking`` calls the student's function. What runs beside student code lies there and nowhere
  else; it loads without any reference, and imports nothing of the other rooms.
- ``judging`` decides: an ``exam`` hands out cases and judges what comes back, ``comparing`` says
  where that differs, ``naming`` which declared mistake it is, ``several`` which two or three at
  once, combined from the edits of a ``sketch``; ``partial_credit`` says what it still earns.
  ``testing`` is for exercises in which students write the tests, ``contest`` and ``trial`` for a
  whole trainer.
- ``telling`` finds the words: ``diagnose`` where no declared mistake explains the answer;
  ``evidence`` calls the function again for a smaller example; ``result`` and ``html`` show it all.
- ``proving`` proves the declarations, and tries them on wrong answers that nobody declared.
"""
