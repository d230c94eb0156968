"""What somebody needs who teaches with the lessons, made from the lessons: slides, plans, rubrics,
a bank of quiz questions, exam sheets. ``rlcourse teaching-pack`` writes all of it.

Its sources are in ``course/teaching``, in the repository like ``solutions/`` and in no wheel.
"""
