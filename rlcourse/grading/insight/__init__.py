"""What a class made of a lesson, out of what grading recorded. No student's code runs here.

``recorded`` reads receipts, ``summing`` counts and groups, ``paragraphs`` finds where the lesson
answers a mistake, ``page`` shows it all, and ``drafts`` writes what is not named yet as a declared
mistake to be completed.
"""
