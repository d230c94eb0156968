"""A submission's steps, carried out by a confined process, and the time that they may take."""
