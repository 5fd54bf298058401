"""Makes the device plugin's plain manifest and helm chart from their one source: `scripts/manifests [FOLDER]`.

The source is the kustomization in manifests/device-plugin; its README says what the comments in it mean.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from resource_extend.kubernetes.config.schema import schema

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build/manifests/device-plugin"
NAME = "device-plugin"
NAMESPACE = "kube-system"


def main(arguments: list[str]) -> None:
    """Write everything into a folder, by default dist/manifests."""
    output = Path(arguments[0]) if arguments else ROOT / "dist/manifests"
    output.mkdir(parents=True, exist_ok=True)
    (output / "device-plugin.yaml").write_text(plain())
    write_chart(output / "chart")
    sys.stdout.write(f"made {output / 'device-plugin.yaml'} and {output / 'chart'}\n")


def plain() -> str:
    """Give the plain manifest: the ConfigMap and the DaemonSet."""
    config = (SOURCE / "config.yaml").read_text()
    return f"{_config_map(config)}---\n{without_chart((SOURCE / 'daemonset.yaml').read_text())}"


def write_chart(folder: Path) -> None:
    """Write the helm chart."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(SOURCE / "chart", folder)
    (folder / "templates/daemonset.yaml").write_text(for_chart((SOURCE / "daemonset.yaml").read_text()))
    config = (SOURCE / "config.yaml").read_text().splitlines()
    comments = [line for line in config if line.startswith("#")]
    values = [f"  {line}" for line in config if not line.startswith("#")]
    text = (folder / "values.yaml").read_text()
    (folder / "values.yaml").write_text("\n".join([text.rstrip(), "", *comments, "config:", *values, ""]))
    whole = {"type": "object", "properties": {"config": schema()}, "required": ["config"]}
    (folder / "values.schema.json").write_text(json.dumps(whole, indent=2) + "\n")


def without_chart(source: str) -> str:
    """Take out what is for the chart only."""
    lines = [re.sub(r" # chart: .*", "", line) for line in source.splitlines()]
    return "\n".join(line for line in lines if not re.match(r"\s*# chart[\[\]+]", line)) + "\n"


def for_chart(source: str) -> str:
    """Make a template of the chart."""
    lines, replaced = [], False
    for line in source.splitlines():
        comment = re.match(r"(\s*)# chart([\[\]+]) ?(.*)", line)
        value = re.match(r"(\s*(?:- )?(?:\w+: )?).* # chart: (.*)", line)
        if comment:
            indent, kind, text = comment.groups()
            replaced = kind == "[" or (replaced and kind != "]")
            if kind != "]":
                lines.append(indent + text)
        elif value and not replaced:
            lines.append(value[1] + value[2])
        elif not replaced:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _config_map(config: str) -> str:
    data = "".join(f"    {line}\n" for line in config.splitlines())
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {NAME}\n  namespace: {NAMESPACE}\n"
        f"  labels:\n    app.kubernetes.io/name: {NAME}\ndata:\n  config.yaml: |\n{data}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
