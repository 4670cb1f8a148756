"""Files of format 1, whose classes had names like ``kernels.RBF`` and sparse matrices ``csr``."""

import re
from typing import Any

CLASS = re.compile(r"(models|kernels|decode|network)\.(\w+)")
# Parameters that have been renamed since.
RENAMED = {"kernels.Normalized": {"kernel": "base"}, "kernels.Scaled": {"kernel": "base"}}


def to_format_2(value: Any) -> Any:
    """Return JSON content of format 1 as content of format 2."""
    if isinstance(value, list):
        return [to_format_2(item) for item in value]
    if not isinstance(value, dict):
        return value
    converted = {name: to_format_2(item) for name, item in value.items()}
    kind = value.get("type")
    if kind == "csr":
        converted["type"] = "csr_array"
    elif isinstance(kind, str):
        converted["type"] = CLASS.sub(r"okforest.\1:\2", kind)
    if kind in RENAMED:
        params = converted["params"].items()
        converted["params"] = {RENAMED[kind].get(name, name): item for name, item in params}
    return converted
