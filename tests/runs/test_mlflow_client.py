"""What MLflow says of an address goes on without its password."""

from __future__ import annotations

import pytest

from runs.mlflow_client import first_line, without_credentials


@pytest.mark.parametrize("password", ["topsecret", "top@secret", "top:secret"])
def test_an_error_names_the_store_without_its_password(password: str) -> None:
    error = ConnectionError(f"API request to http://me:{password}@store.example:5000/api failed\nmore")
    assert first_line(error) == "ConnectionError: API request to http://store.example:5000/api failed"


def test_an_address_in_a_path_or_a_mail_address_is_left_alone() -> None:
    text = "see http://store.example/a@b and mail me@store.example"
    assert without_credentials(text) == text
