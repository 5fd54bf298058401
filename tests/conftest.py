"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

from support.etcd_fixtures import certificates, etcd

__all__ = ["certificates", "etcd"]

# No test is failed for the time that it took: machines differ. `thorough` is for a search of an hour, by hand.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("default"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
