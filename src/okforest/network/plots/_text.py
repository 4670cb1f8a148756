"""Names given by users, escaped for plots."""


def literal(name: object) -> str:
    """Return a name as text that matplotlib does not take for mathematics."""
    return str(name).replace("$", r"\$")
