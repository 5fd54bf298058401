"""What a start runs at once, and what comes in groups of its own."""

from resource_extend.pack.trace import LATE, Run, sets

PACKAGE = "resource_extend.store"


def test_groups() -> None:
    """Each store has its modules in a group, and so have each of an etcd's surroundings, and what runs afterwards."""
    embedded = Run(
        ["plugin", PACKAGE, "shape", f"{PACKAGE}.sqlite", "scheduler", "answer"], ["a"], ["scheduler", "answer"]
    )
    remote = Run([PACKAGE, f"{PACKAGE}.endpoints", f"{PACKAGE}.etcd"], ["b"])
    tls = Run([PACKAGE, f"{PACKAGE}.endpoints", f"{PACKAGE}.tls", f"{PACKAGE}.etcd"], [])
    found = sets({"verb": embedded}, {"etcd": {"verb": remote}, "tls": {"verb": tls}}, "etcd")["verb"]

    assert (Run(["plugin", PACKAGE, "shape"], ["a", "b"]), [f"{PACKAGE}.tls"]) == (found.run, found.whole)
    assert {
        "sqlite": [f"{PACKAGE}.sqlite"],
        "etcd": [f"{PACKAGE}.endpoints", f"{PACKAGE}.etcd"],
        "tls": [f"{PACKAGE}.tls"],
        LATE: ["scheduler", "answer"],
    } == found.groups


def test_verb_that_only_checks_its_endpoints() -> None:
    """A verb without a store brings the stores' package with what it takes from there."""
    remote = {"verb": Run([PACKAGE, f"{PACKAGE}.endpoints"], [])}
    found = sets({"verb": Run(["plugin"], [])}, {"etcd": remote, "tls": {}}, "etcd")["verb"]

    assert {"sqlite": [], "etcd": [PACKAGE, f"{PACKAGE}.endpoints"], "tls": [], LATE: []} == found.groups
