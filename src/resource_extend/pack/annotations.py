"""Refuses Structs whose fields the trimmed msgspec would not understand, when a file is built.

With stand-ins for `typing` and the like, most foreign annotations fail loudly, but `Annotated[int, Meta(ge=1)]`
silently loses its limit. So fields of packed Structs are made of builtin types, unions of them, Structs, Raw and UNSET
only. Text is allowed where it names what only a type checker imports: such a Struct cannot be decoded in either mode,
only encoded.
"""

import subprocess
from pathlib import Path

from resource_extend.pack.interpreters import Interpreter

_CHECK = """
import sys, types
site_packages, *names = sys.argv[1:]
sys.path.insert(0, site_packages)
import msgspec
from importlib import import_module

PLAIN = {int, float, bool, str, bytes, object, type(None), None, msgspec.Raw, msgspec.UnsetType, dict, list, tuple, set,
    frozenset}

def is_allowed(annotation, module):
    if isinstance(annotation, str):
        try:
            eval(annotation, vars(sys.modules[module]))
        except NameError:
            return True
        return False
    if isinstance(annotation, types.UnionType):
        return all(is_allowed(x, module) for x in annotation.__args__)
    if isinstance(annotation, types.GenericAlias):
        return annotation.__origin__ in PLAIN and all(x is ... or is_allowed(x, module) for x in annotation.__args__)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return True
    try:
        return annotation in PLAIN
    except TypeError:
        return False

def structs(base):
    for struct in base.__subclasses__():
        yield struct
        yield from structs(struct)

for name in names:
    import_module(name)
wrong = [f"{struct.__module__}.{struct.__qualname__}.{field}: {annotation!r}"
    for struct in structs(msgspec.Struct) if struct.__module__ in names
    for field, annotation in struct.__dict__.get("__annotations__", getattr(struct, "__annotations__", {})).items()
    if not is_allowed(annotation, struct.__module__)]
print("\\n".join(sorted(set(wrong))))
"""


def check(interpreter: Interpreter, site_packages: Path, modules: "list[str]") -> None:
    """Import modules with the full msgspec and look at every Struct in them.

    Raises:
        ValueError: a field's annotation is outside the list; the text names all of them.
        RuntimeError: a module cannot be imported.
    """
    done = subprocess.run(
        [interpreter.path, "-I", "-S", "-c", _CHECK, str(site_packages), *modules],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise RuntimeError(f"a hot module cannot be imported:\n{done.stderr.strip()}")
    if done.stdout.strip():
        raise ValueError(
            "annotations that the packed msgspec does not understand (builtin types, unions, Structs, Raw and UNSET "
            f"only):\n{done.stdout.strip()}"
        )
