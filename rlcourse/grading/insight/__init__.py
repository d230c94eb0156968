"""What a class made of a lesson, out of what grading recorded. No student's code runs here.

``answers`` reads what was recorded, ``summary`` counts and groups, ``commands`` shows it.
"""
