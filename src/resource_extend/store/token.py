"""The login's token, kept between calls: a login costs etcd 70 ms of password hashing (protocol, 6.4).

One file for each set of endpoints and user, readable by its owner only, in the folder where the plugin file keeps its
unpacked parts. It holds the salted hash of endpoints, user and password too, so a changed password finds no token; the
hash is inside because a name can be read by others. Without a usable folder there is a login at every call.
"""

from posix import (
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_RDONLY,
    O_WRONLY,
    close,
    fstat,
    geteuid,
    mkdir,
    read,
    rename,
    unlink,
    urandom,
    write,
)
from posix import open as open_file

try:
    from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:  # CPython 3.12 and later
    from _sha2 import sha256  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from resource_extend.settings import Settings

SALT_SIZE = 16
HASH_SIZE = 32
LONGEST_TOKEN = 8192
REGULAR_OWNER_ONLY = 0o100600


def cached_token(settings: "Settings", environ: "Mapping[bytes, bytes]") -> bytes:
    """Return the token that was kept last, nothing if there is none for these settings."""
    path = token_path(settings, environ)
    if path is None:
        return b""
    try:
        # Neither a link nor a pipe laid out by somebody else is followed or waited for.
        descriptor = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = fstat(descriptor)
        if status.st_uid != geteuid() or status.st_mode != REGULAR_OWNER_ONLY:
            return b""
        content = read(descriptor, SALT_SIZE + HASH_SIZE + LONGEST_TOKEN + 1)
    except OSError:
        return b""
    finally:
        close(descriptor)
    salt, token = content[:SALT_SIZE], content[SALT_SIZE + HASH_SIZE :]
    bound = content[SALT_SIZE : SALT_SIZE + HASH_SIZE] == _hash(settings, salt + settings.password.encode())
    return token if bound and is_token(token) else b""


def keep_token(settings: "Settings", environ: "Mapping[bytes, bytes]", token: bytes) -> None:
    """Keep a token for later calls, or nothing so that the last one is forgotten. A failure is of no consequence."""
    path = token_path(settings, environ)
    if path is None:
        return
    try:
        if not token:
            unlink(path)
            return
        salt = urandom(SALT_SIZE)
        content = salt + _hash(settings, salt + settings.password.encode()) + token
        _replace(path, content)
    except OSError:
        return


def is_token(token: bytes) -> bool:
    """Return whether bytes can be sent as a header field's value."""
    return 0 < len(token) <= LONGEST_TOKEN and all(32 < byte < 127 for byte in token)


def _replace(path: bytes, content: bytes) -> None:
    """Put a file in place, whole or not at all."""
    try:
        mkdir(path[: path.rindex(b"/")], 0o700)
    except FileExistsError:
        pass
    temporary = path + b"." + urandom(8).hex().encode()
    descriptor = open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    try:
        try:
            if write(descriptor, content) != len(content):
                raise OSError
        finally:
            close(descriptor)
        rename(temporary, path)
    except OSError:
        unlink(temporary)
        raise


def token_path(settings: "Settings", environ: "Mapping[bytes, bytes]") -> bytes | None:
    """Return the file for these endpoints and this user, None without an absolute folder for it."""
    root = environ.get(b"SHIV_ROOT", b"")
    if not root.startswith(b"/"):
        home = environ.get(b"HOME", b"")
        if not home.startswith(b"/"):
            home = _home()
            if not home.startswith(b"/"):
                return None
        root = home + b"/.shiv"
    return root + b"/etcd-token-" + _hash(settings, b"")[:16].hex().encode()


def _home() -> bytes:
    """Return the home folder that the system knows for this user, nothing if it knows none."""
    from pwd import getpwuid

    try:
        return getpwuid(geteuid()).pw_dir.encode("utf-8", "surrogateescape")
    except KeyError:
        return b""


def _hash(settings: "Settings", secret: bytes) -> bytes:
    """Return the hash of endpoints, user and a secret, each with its length so that none runs into the next."""
    parts = [text.encode() for text in (*settings.machines, settings.username)] + [secret]
    digest: bytes = sha256(b"".join([b"%d:%b" % (len(part), part) for part in parts])).digest()
    return digest
