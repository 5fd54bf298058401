"""The published JSON Schema of the configuration, made from its description.

`python -m resource_extend.kubernetes.config.schema` prints it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from resource_extend.kubernetes.config.description import TOP


def schema() -> dict[str, Any]:
    """Give the schema of the whole file. Rules that span several keys are checked by the plugin only."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of the resource-extend device plugin",
        **TOP.schema(),
    }


def text() -> str:
    """Give the schema as it is published."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
