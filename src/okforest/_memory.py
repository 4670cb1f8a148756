"""How much memory a computation may take."""

import os

SHARE = 0.5  # of the machine's memory that one array may take


def machine_memory() -> int:
    """Return the memory of the machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raise a MemoryError with advice if an array would take more than half of the memory."""
    memory = machine_memory()
    if needed > SHARE * memory:
        raise MemoryError(
            f"{what} takes {needed / 2**30:.1f} GiB, more than half of the "
            f"{memory / 2**30:.1f} GiB of this machine. {advice}"
        )
