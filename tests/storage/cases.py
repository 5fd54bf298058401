"""Random small nodes and requests for the scheduler, made so that bytes, quotas and ties all bind (storage 14.6)."""

import random

from resource_extend.storage.binding import Binding
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Record, Resource

Quota = tuple[int, int, int, int]
NO_QUOTA: Quota = (0, 0, 0, 0)

CLASSES = {
    "any": "nnNNmMumt",
    "normal without quotas": "n",
    "normal with quotas": "N",
    "normals": "nnNu",
    "normals and mounts": "nNtu",
    "mounts": "tui",
    "monopoly": "mMui",
    "monopoly beside normals": "mMnnu",
    "monopoly on shared quotas": "MNNtu",
    "unlimited": "ui",
}
"""n normal, N normal with quotas, m monopoly, M monopoly with quotas, u unlimited, t mount with quotas, i without."""


def node(source: random.Random) -> Record:
    """Make a node: up to 8 volumes, half of them used, up to 3 disks with quotas small enough to bind."""
    volumes = {}
    taken = {}
    for index in range(source.randint(0, 8)):
        size = source.choice([source.randint(1, 64), 8, 16, 32])
        volumes[f"/d{index}"] = size
        if source.random() < 0.5:
            taken[f"/d{index}"] = source.choice([source.randint(0, size), size // 2])
    disks, used = [], []
    roomy = source.random() < 0.5
    for index in range(source.randint(0, 3)):
        mounts = [volume for volume in volumes if source.random() < 0.4]
        if source.random() < 0.3:
            mounts.append("/")
        quota = _numbers([source.randint(0, 60) * (20 if roomy else 1) if source.random() < 0.9 else 0 for _ in "1234"])
        disks.append(Disk(f"/dev/v{index}", mounts, *quota))
        if source.random() < 0.5:
            used.append(Disk(f"/dev/v{index}", mounts, *[source.randint(0, number) for number in quota]))
    return Record(Resource(volumes, disks, sum(volumes.values())), Resource(taken, used, sum(taken.values())))


def bindings(source: random.Random, record: Record, kinds: str, most: int = 5) -> list[Binding]:
    """Make a list of bindings of the given kinds, with equal sizes on purpose."""
    usual = source.randint(1, 16)
    return [
        binding(source, record, source.choice(kinds), f"/x{index}", usual) for index in range(source.randint(1, most))
    ]


def binding(source: random.Random, record: Record, kind: str, destination: str, usual: int) -> Binding:
    """Make one binding of a kind."""
    size = source.choice([source.randint(0, 24), usual, usual, 1])
    if kind == "u":
        return Binding("AUTO", destination, "rw", 0, NO_QUOTA)
    if kind in "ti":
        volume = source.choice([*record.capacity.volumes, "/elsewhere"])
        return Binding(f"{volume}/y", destination, "rw", size, quotas(source) if kind == "t" else NO_QUOTA)
    flags = "mrw" if kind in "mM" else "rw"
    size = max(size, 0 if kind == "N" else 1)
    return Binding("AUTO", destination, flags, size, quotas(source) if kind in "MN" else NO_QUOTA)


def quotas(source: random.Random) -> Quota:
    """Make a quota, at least one number of it above 0: in usual proportions, in one dimension, or anyhow."""
    form = source.random()
    number = source.randint(1, 8)
    if form < 0.4:
        return (number, number, 2 * number, 2 * number)
    numbers = [0, 0, 0, 0] if form < 0.6 else [source.choice([0, source.randint(0, 12)]) for _ in "1234"]
    numbers[source.randrange(4)] = number
    return _numbers(numbers)


def cap(source: random.Random) -> int:
    """Make the most slots wanted: below, around and beyond what nodes hold."""
    return source.choice([1, 2, 3, 4, 7, 20, 100])


def _numbers(numbers: list[int]) -> Quota:
    return (numbers[0], numbers[1], numbers[2], numbers[3])
