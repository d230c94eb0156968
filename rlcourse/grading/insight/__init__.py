"""What a class made of a lesson, out of what grading recorded. No student's code runs here.

``answers`` reads what was recorded, ``summary`` counts and groups, ``page`` shows it, and
``drafts`` writes what is not named yet as a declared mistake to be completed.
"""
