"""Calling a student's function: what runs beside student code, and knows no right answer."""
