"""A certificate authority of our own, with what it has issued, as files."""

from pathlib import Path

import trustme


class Certificates:
    """Files of one authority: `ca`, the server's pair, and pairs of clients whose common names are etcd users.

    All keys are of one type: elliptic curves (P-256), or RSA of 2048 bits.
    """

    def __init__(self, directory: Path, key_type: trustme.KeyType = trustme.KeyType.ECDSA):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._key_type = key_type
        self._authority = trustme.CA(key_type=key_type)
        self.ca = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.ca))
        # etcd before 3.5 uses this pair as a client of itself too.
        self.server_cert, self.server_key = self.issue("server", "localhost", "127.0.0.1", "::1")
        self.root_cert, self.root_key = self.client("root")

    def client(self, user: str) -> tuple[Path, Path]:
        """Issue a pair for a client whose common name is a user."""
        return self.issue(f"client-{user}", common_name=user)

    def issue(self, name: str, *hosts: str, common_name: str | None = None) -> tuple[Path, Path]:
        """Issue a certificate and its key, `<name>.pem` and `<name>.key`."""
        cert, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        names = hosts or ["client.invalid"]
        issued = self._authority.issue_cert(*names, common_name=common_name, key_type=self._key_type)
        for place, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(str(cert), append=place > 0)
        issued.private_key_pem.write_to_path(str(key))
        return cert, key
