"""What a recipe needs in memory, hours and dollars, before anybody rents a GPU.

An H100 was set beside them: course/scaling.md says how near they came.
"""
