"""What a recipe needs in memory, hours and dollars, before anybody rents a GPU.

Experimental until a GPU has run them: course/scaling.md says what has.
"""
