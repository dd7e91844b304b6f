"""Items for their manager: what may be named, what is found, what is held back."""

from __future__ import annotations

import pytest

from annotation.selectors.items import sealed_items
from tests.annotation.factories import make_desk
from tests.catalog.factories import make_answer, seal

pytestmark = pytest.mark.django_db


def test_an_item_with_a_text_under_a_live_seal_names_no_producer() -> None:
    desk = make_desk(n_items=3)
    items = desk.items()
    answer = make_answer(items[1].body.second)
    other = make_answer(items[2].body.first, contestant=None, draw=1)
    live, released = seal(answer), seal(other)
    released.released_at = released.sealed_at
    released.save()
    assert sealed_items(item.pk for item in items) == {items[1].pk}
    live.released_at = live.sealed_at
    live.save()
    assert sealed_items(item.pk for item in items) == set()
