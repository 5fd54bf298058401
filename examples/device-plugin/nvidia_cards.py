"""List the NVIDIA cards of one product for the device plugin: nvidia_cards.py PRODUCT [PROC [SYS]].

The NVIDIA driver tells product, UUID and device number of each card below /proc/driver/nvidia. No driver, no cards.
"""

import json
import sys
from pathlib import Path

SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


def main(product: str, proc: str = "/proc", sys_root: str = "/sys") -> None:
    """Print the cards whose model is `product`."""
    for path in sorted(Path(proc, "driver/nvidia/gpus").glob("*/information")):
        card = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        card = {key.strip(): value.strip() for key, value in card.items()}
        if card.get("Model") == product:
            sys.stdout.write(json.dumps(describe(card, path.parent.name, Path(sys_root))) + "\n")


def describe(card: dict[str, str], address: str, sys_root: Path) -> dict[str, object]:
    """Give the line of one card."""
    numa = sys_root / "bus/pci/devices" / address / "numa_node"
    nodes: list[dict[str, object]] = [{"path": f"/dev/nvidia{card['Device Minor']}"}]
    nodes += [{"path": node, "shared": True} for node in SHARED]
    return {
        "id": card["GPU UUID"],
        "match": card["GPU UUID"],
        "numa": [int(numa.read_text())] if numa.exists() else [],
        "nodes": nodes,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
