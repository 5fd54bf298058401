"""Where the device plugin's process begins: signals first, then the commands.

Until its event loop runs, a daemon has no handlers: a signal would kill it, or be lost where it is the first process
of a container. `run` therefore has the kernel keep signals back until `Daemon.run` takes them, also over the start
again that leaves OpenSSL out. So nothing large may be imported here.
"""

from __future__ import annotations

import signal
import sys

KEPT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["run"]:
        signal.pthread_sigmask(signal.SIG_BLOCK, KEPT)
        from resource_extend.kubernetes.lean import start_again_without_tls

        start_again_without_tls()
    from resource_extend.kubernetes.command_line import device_plugin

    device_plugin(prog_name="device-plugin")


if __name__ == "__main__":
    main()
