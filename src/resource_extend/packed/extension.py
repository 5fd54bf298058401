"""msgspec's compiled core without the standard library modules that its import costs 25 ms for.

At its initialisation the core asks `typing`, `enum`, `uuid`, `decimal`, `re` and a few more for objects which it later
only compares by identity or passes to isinstance. Structs made of builtin types never meet them, so stand-ins do while
the core is created; they are taken out again at once. What the rest of the program sees is a package `msgspec` with the
names that hot modules may use. Any failure is followed by the ordinary import (`cold`).

The core must be a file for dlopen: it is copied out of the archive once, under the name of its SHA-256, into the cache
folder, and opened through checks that make the copy as good as the archive itself.
"""

import posix
import sys
from _frozen_importlib import ModuleSpec
from _imp import create_dynamic, exec_dynamic, extension_suffixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, BinaryIO

Module = type(sys)
NoneType = type(None)
LAZY_ANNOTATIONS = sys.version_info >= (3, 14)


def load(archive: "BinaryIO", cores: "dict[str, tuple[int, int, int, bytes]]") -> None:
    """Put `msgspec` and `msgspec.json` into sys.modules, from the checked copy of the core when there is one.

    Args:
        archive: the plugin file, which holds the cores uncompressed.
        cores: extension suffix -> (offset, size, CRC-32, SHA-256).
    """
    core_place = cores[extension_suffixes()[0]]
    environ = posix.environ
    root = environ.get(b"SHIV_ROOT", b"")
    if not root.startswith(b"/"):
        home = environ.get(b"HOME", b"")
        # A relative folder would lie in the plugin directory, where core loads what it finds.
        root = home + b"/.shiv" if home.startswith(b"/") else b""
    descriptor = open_checked(root + b"/" + core_place[3], core_place[1]) if root else -1
    if descriptor >= 0:
        try:
            expose(create_trimmed(descriptor))
        except Exception:  # damaged, not executable there, or a core that wants more
            pass
        else:
            return
    from resource_extend.packed.cold import load_without_copy

    core = load_without_copy(archive, core_place, root, descriptor, open_checked, create_trimmed)
    if core is not None:
        expose(core)


def open_checked(path: bytes, size: int) -> int:
    """Open a copy of the core that nobody else can have changed; -1 when there is none."""
    try:
        # Without O_NONBLOCK a FIFO of that name would hold the call for ever.
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except OSError:
        return -1
    status = posix.fstat(descriptor)
    # A regular file that group and others cannot write.
    if (
        status.st_size == size
        and status.st_mode & 0o170022 == 0o100000
        and (status.st_uid == posix.geteuid() or status.st_uid == 0)
    ):
        return descriptor
    posix.close(descriptor)
    return -1


def create_trimmed(descriptor: int) -> "ModuleType":
    """Create msgspec's core from an open file, with stand-ins for what it imports."""
    import _datetime  # type: ignore[import-not-found]

    # A type that no request holds; a class of our own would cost as much as all the rest here.
    nothing = type(sys.flags)

    def refuse(*_: object) -> object:
        raise TypeError("this annotation needs the full msgspec")

    stand_in: Any = Module("stand_in")
    stand_in.__dict__.update(
        Union=object(),
        Any=object(),
        Literal=object(),
        ClassVar=object(),
        Final=object(),
        TypeVar=nothing,
        Generic=nothing,
        _GenericAlias=nothing,
        TypeAliasType=nothing,
        _AnnotatedAlias=nothing,
        UnionType=type(int | str),
        EnumMeta=nothing,
        UUID=nothing,
        SafeUUID=nothing,
        unknown=None,
        Decimal=nothing,
        compile=compile_pattern,
        _CONCRETE_TYPES={list: list, tuple: tuple, set: set, frozenset: frozenset, dict: dict},
        get_class_annotations=get_class_annotations,
        call_annotate_forwardref=call_annotate_forwardref,
        get_type_hints=refuse,
        get_typeddict_info=refuse,
        get_dataclass_info=refuse,
        convert_generic_alias=refuse,
        rebuild=refuse,
    )
    stand_in.SafeUUID = stand_in
    modules = sys.modules
    added = []
    try:
        for name in ("typing", "msgspec", "msgspec._utils", "types", "enum", "uuid", "decimal", "re"):
            if name not in modules:
                modules[name] = stand_in
                added.append(name)
        if "datetime" not in modules:
            modules["datetime"] = _datetime
            added.append("datetime")
        # By descriptor: what was checked is what is loaded.
        core = create_dynamic(ModuleSpec("msgspec._core", None, origin=f"/proc/self/fd/{descriptor}"))
        exec_dynamic(core)
    finally:
        for name in added:
            del modules[name]
    return core


def expose(core: "Any") -> None:
    """Make the packages `msgspec` and `msgspec.json` of the names that hot modules may use."""
    json = Module("msgspec.json")
    json.__dict__.update(
        Decoder=core.JSONDecoder, Encoder=core.JSONEncoder, decode=core.json_decode, encode=core.json_encode
    )
    package = Module("msgspec")
    package.__dict__.update(
        Struct=core.Struct,
        Raw=core.Raw,
        UNSET=core.UNSET,
        UnsetType=core.UnsetType,
        ValidationError=core.ValidationError,
        DecodeError=core.DecodeError,
        defstruct=core.defstruct,
        convert=core.convert,
        to_builtins=core.to_builtins,
        json=json,
    )
    sys.modules["msgspec"] = package
    sys.modules["msgspec.json"] = json


def get_class_annotations(cls: "Any") -> "dict[str, Any]":
    """Return the fields' types of a Struct and its bases, as `msgspec._utils` does for builtin types."""
    hints: dict[str, Any] = {}
    # The last three are msgspec's own, without fields.
    for base in cls.__mro__[:-3]:
        for name, value in annotations_of(base).items():
            if name not in hints:
                if value.__class__ is str:
                    raise TypeError("annotations of packed Structs are types, not text")
                hints[name] = NoneType if value is None else value
    return hints


def annotations_of(cls: "Any") -> "dict[str, Any]":
    """Return the annotations in the body of a class."""
    return cls.__dict__.get("__annotations__") or (cls.__annotations__ if LAZY_ANNOTATIONS else {})


def call_annotate_forwardref(annotate: "Any") -> "Any":
    """Evaluate the annotations of a class body (CPython 3.14)."""
    return annotate(1)


def compile_pattern(*arguments: "Any") -> "Any":
    """Compile a regular expression with the real `re`, which no hot Struct asks for."""
    import re

    return re.compile(*arguments)
