"""Where students work: their own copy of the lessons, and JupyterLab opened on it."""
