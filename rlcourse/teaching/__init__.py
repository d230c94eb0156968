"""What somebody needs who teaches with the lessons, made from the lessons: slides, and quizzes for
Canvas and Moodle.

Its sources are in ``course/teaching``, in the repository like ``solutions/`` and in no wheel.
"""
