"""Where students work: a copy of the lessons of their own, and JupyterLab opened on it."""
