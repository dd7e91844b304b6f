"""A slow network for the tests in a browser: what does not wait for what it looks at fails at once.

PALATE_TEST_DELAY=0.3 pytest -m browser
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

DELAY = float(os.environ.get("PALATE_TEST_DELAY") or 0)


def late(body: bytes) -> Iterator[bytes]:
    """The body, later than the head: for a moment the browser has a page without an element."""
    time.sleep(DELAY)
    yield body


def slow_answers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    def answer(request: HttpRequest) -> HttpResponseBase:
        time.sleep(DELAY)
        found = get_response(request)
        html = found.get("Content-Type", "").startswith("text/html")
        if not isinstance(found, HttpResponse) or not html or found.status_code != 200:
            return found
        slow = StreamingHttpResponse(late(found.content), headers=dict(found.headers))
        slow.cookies = found.cookies
        del slow["Content-Length"]
        return slow

    return answer
