"""Functions of the lessons, called by the names of their parameters, on any device."""
