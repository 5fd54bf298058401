"""What a start runs at once, and what comes in groups of its own."""

from resource_extend.pack.trace import LATE, Run, sets

PACKAGE = "resource_extend.store"


def test_groups() -> None:
    """Each store has its modules in a group, and so has what runs only once a store has been asked."""
    embedded = Run(
        ["plugin", PACKAGE, "shape", f"{PACKAGE}.sqlite", "scheduler", "answer"], ["a"], ["scheduler", "answer"]
    )
    remote = Run([PACKAGE, f"{PACKAGE}.endpoints", f"{PACKAGE}.etcd"], ["b"])
    found = sets({"verb": embedded}, {"verb": remote})["verb"]

    assert Run(["plugin", PACKAGE, "shape"], ["a", "b"]) == found.run
    assert {
        "sqlite": [f"{PACKAGE}.sqlite"],
        "etcd": [f"{PACKAGE}.endpoints", f"{PACKAGE}.etcd"],
        LATE: ["scheduler", "answer"],
    } == found.groups


def test_verb_that_only_checks_its_endpoints() -> None:
    """A verb without a store brings the stores' package with what it takes from there."""
    found = sets({"verb": Run(["plugin"], [])}, {"verb": Run([PACKAGE, f"{PACKAGE}.endpoints"], [])})["verb"]

    assert {"sqlite": [], "etcd": [PACKAGE, f"{PACKAGE}.endpoints"], LATE: []} == found.groups
