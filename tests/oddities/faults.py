"""Exceptions and values that only some calls meet."""

from msgspec import Struct


class Fault(Exception):
    """The first of a family."""

    level = 1

    def __init__(self, text: str, *, code: int = 7):
        super().__init__(text)
        self.code = code


class DeepFault(Fault):
    """A child."""

    level = Fault.level + 1


class DeeperFault(DeepFault):
    """A grandchild, which no call that succeeds names."""


class Point(Struct):
    """A value that is only decoded in one case."""

    x: int
    y: int = 2


class Line(Struct):
    """A value made of values."""

    points: list[Point] = []


class Marker:
    """A plain class."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1


SAME = Marker
"""The class is read while the module runs."""
