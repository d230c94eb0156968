"""How an answer is checked and its mistake named: the engine, which knows no exercise.

``exercise`` says what a declaration holds; ``cases`` draws random inputs; ``calling``, ``specs``
and ``stand_in`` are the student's side and load without any reference; ``exam`` judges what comes
back, ``comparing`` says where it differs, ``naming`` which declared mistake that is, ``several``
which two or three at once, put together from the edits of a ``sketch``; ``diagnose`` and
``patterns`` put the rest into words, ``result``, ``show`` and ``html`` show it, on an example that
``shrinking`` has made small; ``testing`` is for exercises in which students write the tests;
``proof`` and ``proof_of_several`` prove the declarations.
"""
