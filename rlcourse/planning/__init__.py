"""What a recipe takes in memory, hours and dollars, before anybody rents a GPU."""
