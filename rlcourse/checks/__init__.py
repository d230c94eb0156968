"""How an answer is checked and its mistake named: the engine, which knows no exercise.

``exercise`` says what a declaration holds; ``cases`` draws random inputs; ``calling`` and
``specs`` are the student's side and load without any reference; ``exam`` judges what comes back,
``comparing`` says where it differs, ``diagnose`` and ``patterns`` put that into words, ``result``,
``show`` and ``html`` show it; ``proof`` proves the declarations.
"""
