"""The table of facts that the fake kubelet is held to, on the real device managers.

usage: python -m real_kubernetes.check_facts [--version VERSION] [FACT ...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
import traceback
from pathlib import Path

from real_kubernetes.device_manager import DeviceManager
from support.kubelet_facts import FACTS

VERSIONS = ("1.36.3", "1.37.2")


async def check(name: str, version: str) -> bool:
    """Check one fact on one version; tell how it went."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dm-") as base:
        try:
            async with DeviceManager(Path(base) / "plugins", version) as manager:
                await FACTS[name](manager)
        except Exception:
            sys.stdout.write(f"{version} {name}: FAILED\n{traceback.format_exc()}\n")
            return False
    sys.stdout.write(f"{version} {name}: ok ({time.monotonic() - began:.1f} s)\n")
    sys.stdout.flush()
    return True


async def main(versions: list[str], names: list[str]) -> int:
    """Check facts one after the other."""
    results = [await check(name, version) for version in versions for name in names]
    sys.stdout.write(f"{sum(results)} of {len(results)} facts hold\n")
    return 0 if all(results) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("facts", nargs="*", default=[], metavar="FACT")
    chosen = parser.parse_args()
    raise SystemExit(asyncio.run(main(chosen.version or list(VERSIONS), chosen.facts or list(FACTS))))
