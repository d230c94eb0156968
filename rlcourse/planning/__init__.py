"""What a recipe takes in memory, hours and dollars, before anybody rents a GPU.

Experimental until a GPU has run them: no plan has been compared with a run on one.
"""
