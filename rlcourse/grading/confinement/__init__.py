"""The walls around student code: layers, system calls, visible files, disposable processes."""
