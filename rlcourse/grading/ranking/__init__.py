"""The class on one hidden variant of a contest: who is where, and which places mean nothing."""
