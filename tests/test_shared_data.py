import pytest

from tests.conftest import beside


def test_absent_data_skips_a_test_and_fails_it_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no shared/nowhere beside"):
        beside("nowhere")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no shared/nowhere beside"):
        beside("nowhere")
