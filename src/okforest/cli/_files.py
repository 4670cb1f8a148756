"""Tabular files: CSV, TSV and Parquet to read, compressed or not, and CSV to write."""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path
from tarfile import TarError
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import pandas as pd

COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
# Names are read as text, whatever they look like: 007 is not 7, and NA is not a missing value.
AS_TEXT = {"dtype": str, "keep_default_na": False, "na_values": [""]}

# Spreadsheets take cells that begin with these characters for formulas.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def is_parquet(path: Path) -> bool:
    """Return whether a file is in Parquet format, by its name."""
    return _suffix(path) == ".parquet"


def read_table(path: Path, **options: Any) -> pd.DataFrame:
    """Return the table in a file; the options are those of ``pandas.read_csv``."""
    if not path.exists():
        raise ValueError(f"the file {path} does not exist.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; pass a file.")
    with _named_errors(path):
        if is_parquet(path):
            return pd.read_parquet(path)
        separator = "\t" if _suffix(path) in (".tsv", ".txt") else ","
        return pd.read_csv(path, sep=separator, **options)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table; an apostrophe is put before text that a spreadsheet would execute."""
    text = table.select_dtypes(exclude="number")
    table = table.assign(**{name: text[name].map(_neutralize) for name in text})
    # A carriage return in a name would end the row if it were not quoted.
    table.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Turn the many errors of readers into ValueErrors that name the file."""
    try:
        yield
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except ValueError as error:  # errors of parsers, encodings and Parquet among them
        raise ValueError(f"{path} cannot be read as a table: {str(error).strip()}") from None
    except (BadZipFile, TarError, ZlibError, LZMAError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # not about the content: no permission, for example
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} is damaged or incomplete ({reason}); download or compress it again."
        ) from None


def _suffix(path: Path) -> str:
    """Return the suffix of a file name without that of its compression."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
    return suffixes[-1] if suffixes else ""


def _neutralize(cell: Any) -> Any:
    formula = str(cell).startswith(FORMULA) and not NUMBER.fullmatch(str(cell))
    return f"'{cell}" if formula else cell
