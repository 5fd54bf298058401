"""Functions of every shape."""

from oddities import faults
from oddities.faults import DeeperFault as Deepest
from oddities.faults import DeepFault, Fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LIMIT = 3


def defaults(a: int, b: int = 2, /, c: str = "c", *rest: int, d: tuple[int, ...] = (1, 2), **others: object) -> str:
    """Every kind of parameter."""
    return repr((a, b, c, rest, d, sorted(others)))


def default_of_the_module(limit: int = LIMIT) -> int:
    """A default that is no constant."""
    return limit


def count(limit: int) -> "Iterator[int]":
    """A generator."""
    yield from range(limit)


def adder(amount: int) -> "Callable[[int], int]":
    """A closure."""

    def add(value: int) -> int:
        return value + amount

    return add


def caught(depth: int) -> str:
    """Every way of naming an exception class."""
    try:
        raise (Fault, DeepFault, Deepest)[depth]("text", code=depth)
    except Deepest as fault:
        found = f"deepest {fault.code}"
    except (DeepFault, KeyError) as fault:
        found = f"deep {fault}"
    except Fault as fault:
        found = f"fault {fault.code} {fault.level}"
    return found


def shadowed(Fault: str) -> str:
    """A parameter of a class's name."""
    return Fault + "".join(faults.Fault.__name__ for faults in [_Holder])


def by_attribute() -> str:
    """Classes as attributes of their module."""
    return repr(
        (faults.Marker().made, faults.Line([faults.Point(1)]), faults.SAME is faults.Marker, faults.Fault.level)
    )


def imported_inside() -> str:
    """An import where it is needed."""
    from oddities.faults import Line, Point

    return repr([isinstance(Point(1), Point), issubclass(Deepest, Fault), Line().points])


class _Holder:
    """Gives a name to `shadowed`."""

    class Fault:
        """Not the exception."""


class Base:
    """What a class may have in it."""

    __slots__ = ("_value",)

    def __init__(self, value: int):
        self._value = value

    @property
    def value(self) -> int:
        """A property."""
        return self._value

    @value.setter
    def value(self, value: int) -> None:
        self._value = value * 2

    @staticmethod
    def static(value: int = 4) -> int:
        """A static method."""
        return value

    @classmethod
    def made(cls, value: int) -> "Base":
        """A class method."""
        return cls(value)

    def __secret(self) -> int:
        return self._value + 100

    def secret(self) -> int:
        """A private method through its mangled name."""
        return self.__secret()

    def __len__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Base) and self._value == other._value

    def __hash__(self) -> int:
        return self._value


class Child(Base):
    """A class with a parent."""

    __slots__ = ()

    def __len__(self) -> int:
        return super().__len__() + 1


def objects() -> str:
    """Use all of it."""
    child = Child.made(5)
    child.value = 6
    facts: list[Any] = [
        child.value,
        child.static(),
        Child.static(value=1),
        child.secret(),
        len(child),
        child == Base(12),
    ]
    return repr([*facts, type(child).__name__, hash(child)])
