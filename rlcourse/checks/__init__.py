"""How an answer is checked and its mistake named: the engine, which knows no exercise.

``exercise`` says what a declaration holds; ``case`` is one call, and ``case_sampler`` draws its
arguments; ``calling``, ``specs`` and ``stand_in`` are the student's side and load without any
reference; ``exam`` judges what comes back, ``comparing`` says where it differs, ``naming`` which
declared mistake that is, ``several`` which two or three at once, combined from the edits of a
``sketch``; ``partial_credit`` says what it still earns; ``diagnose`` and ``patterns`` put the rest
into words; ``result``, ``show`` and ``html`` show it, on an example that ``shrinking`` has made
small; ``testing`` is for exercises in which students write the tests; ``proof`` and
``proof_of_several`` prove the declarations; ``mutation_testing`` tries them on ``mutants`` of the
right answers.
"""
