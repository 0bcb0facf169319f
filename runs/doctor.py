"""Whether everything is there that a run needs: `search-o1 doctor` and `runs.doctor`."""

from __future__ import annotations

from runs.checks.check import Check
from runs.checks.model import check_model
from runs.checks.retrieval import PAGE, check_readers, check_searches
from runs.checks.storage import check_cache, check_home, check_indexes, check_tracking
from runs.home import Home
from runs.settings import split_names


def doctor(
    *,
    model: str = "local",
    base_url: str | None = None,
    search: str = "",
    reader: str = "",
    page: str = PAGE,
    allow_private: bool = False,
    call: bool = True,
    tracking_uri: str | None = None,
    home: Home | None = None,
) -> list[Check]:
    """Check keys, servers, model, context length, indexes, cache and MLflow.

    Args:
        model: Language model, as for `evaluate`.
        base_url: Address of its API.
        search: Backends to ask a query, separated by commas; the others are listed without a call.
        reader: Readers to read a page with, separated by commas.
        page: Address of that page.
        allow_private: Let it be a private one.
        call: Make those calls; False only looks at settings.
        tracking_uri: MLflow store; None means the home folder's.
        home: Home folder; by default the user's.

    Returns:
        The findings, in the order of the report.
    """
    where = home or Home()
    return [
        check_home(where),
        *check_model(model, base_url, where),
        *check_searches(split_names(search), call=call),
        *check_readers(split_names(reader), call=call, page=page, allow_private=allow_private),
        *check_indexes(where),
        check_cache(where),
        check_tracking(tracking_uri or where.tracking_uri),
    ]
