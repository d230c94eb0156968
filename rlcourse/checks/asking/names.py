"""Which names a text of Python takes from its surroundings."""

import builtins
import symtable


def free_names(source: str) -> set[str]:
    """Names that a text takes from its surroundings: globals that are not builtins.

    Annotations and default values count, since a notebook evaluates them when it runs the cell.
    """
    top = symtable.symtable(source, "<exercise>", "exec")
    names = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    defined = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return {n for n in names - defined if not hasattr(builtins, n)}
