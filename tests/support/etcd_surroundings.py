"""Etcds as plugins meet them: plain, with a login, with TLS; each with the configuration that leads there."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.certificates import Certificates
from support.etcd import running
from support.etcd_users import ROOT, ROOT_PASSWORD, add_users, enable_login


@contextlib.contextmanager
def configured(surroundings: str) -> Iterator[str]:
    """Run an etcd and give the text of the plugins' configuration, `{folder}` for what keeps plugins apart."""
    with contextlib.ExitStack() as stack:
        more = ""
        if surroundings == "etcd tls":
            files = Certificates(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            flags = ["--client-cert-auth", f"--trusted-ca-file={files.ca}"]
            etcd = stack.enter_context(running(flags, tls=files))
            more = f"  ca: {files.ca}\n  cert: {files.root_cert}\n  key: {files.root_key}\n"
        else:
            etcd = stack.enter_context(running())
        if surroundings == "etcd login":
            add_users(etcd)
            enable_login(etcd)
            more = f"  auth:\n    username: {ROOT}\n    password: {ROOT_PASSWORD}\n"
        url = etcd.url.replace("127.0.0.1", "localhost") if surroundings == "etcd name" else etcd.url
        # As most people write theirs: addresses in quotes, others not.
        yield f'etcd:\n  machines:\n    - "{url}"\n  prefix: /{{folder}}\n{more}'
