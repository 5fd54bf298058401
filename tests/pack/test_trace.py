"""What a start runs at once, and what comes in groups of its own."""

from resource_extend.pack.trace import LATE, SHARED, Run, sets

PACKAGE = "resource_extend.store"


def test_groups() -> None:
    """Each store has its modules in a group, and so have each of an etcd's surroundings, and what runs afterwards."""
    embedded = Run(
        ["plugin", PACKAGE, "shape", f"{PACKAGE}.sqlite", "scheduler", "answer"], ["a"], ["scheduler", "answer"]
    )
    remote = Run([PACKAGE, f"{PACKAGE}.endpoints", f"{PACKAGE}.etcd"], ["b"])
    tls = Run([f"{PACKAGE}.race", f"{PACKAGE}.endpoints", f"{PACKAGE}.tls", f"{PACKAGE}.etcd"], [])
    name = Run([f"{PACKAGE}.race", f"{PACKAGE}.resolve", f"{PACKAGE}.etcd"], [])
    etcds = {"etcd": {"verb": remote}, "tls": {"verb": tls}, "name": {"verb": name}}
    found = sets({"verb": embedded}, etcds, "etcd")["verb"]

    assert Run(["plugin", PACKAGE, "shape"], ["a", "b"]) == found.run
    assert [f"{PACKAGE}.race", f"{PACKAGE}.resolve", f"{PACKAGE}.tls"] == found.whole
    assert {
        "sqlite": [f"{PACKAGE}.sqlite"],
        "etcd": [f"{PACKAGE}.endpoints", f"{PACKAGE}.etcd"],
        SHARED: [f"{PACKAGE}.race"],
        "tls": [f"{PACKAGE}.tls"],
        "name": [f"{PACKAGE}.resolve"],
        LATE: ["scheduler", "answer"],
    } == found.groups


def test_verb_that_only_checks_its_endpoints() -> None:
    """A verb without a store brings the stores' package with what it takes from there."""
    remote = {"verb": Run([PACKAGE, f"{PACKAGE}.endpoints"], [])}
    found = sets({"verb": Run(["plugin"], [])}, {"etcd": remote, "tls": {}}, "etcd")["verb"]

    assert {"sqlite": [], "etcd": [PACKAGE, f"{PACKAGE}.endpoints"], "tls": [], SHARED: [], LATE: []} == found.groups
