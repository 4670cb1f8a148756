"""Names of users in plots."""


def literal(name: object) -> str:
    """Return a name as text that matplotlib does not take for mathematics."""
    return str(name).replace("$", r"\$")
