"""Fixtures of the tests of the model."""

import pytest

from popmodel.machines import profile
from popmodel.machines.profile import Profile
from popmodel.model import signatures as signature
from popmodel.model.signature.application import Signature


@pytest.fixture(scope="session")
def cannon() -> Signature:
    return signature.load("cannon")


@pytest.fixture(scope="session")
def preset() -> Profile:
    return profile.load(profile.DEFAULT_PRESET)
