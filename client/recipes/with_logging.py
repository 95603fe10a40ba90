"""logging: each line has the id of the request, also in threads and asynchronous tasks."""

import logging
from contextvars import ContextVar

from uuidd_client import ulid

request_id = ContextVar("request_id", default="-")


def add_request_id(record):
    """Give a record the id of the request that it belongs to."""
    record.request_id = request_id.get()
    return True


handler = logging.StreamHandler()
handler.addFilter(add_request_id)
handler.setFormatter(logging.Formatter("%(request_id)s %(message)s"))
logging.basicConfig(level=logging.INFO, handlers=[handler])


def handle(request):
    """Handle a request under an id of its own."""
    token = request_id.set(ulid())
    try:
        logging.info("begin %s", request)
        logging.info("end %s", request)
    finally:
        request_id.reset(token)


if __name__ == "__main__":
    handle("first")
    handle("second")
