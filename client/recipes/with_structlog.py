"""structlog: the id of the request is bound for all that is logged in it."""

import structlog

from uuidd_client import ulid

structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.JSONRenderer(),
    ]
)
log = structlog.get_logger()


def handle(request):
    """Handle a request under an id of its own."""
    with structlog.contextvars.bound_contextvars(request_id=ulid()):
        log.info("begin", request=request)
        log.info("end", request=request)


if __name__ == "__main__":
    handle("first")
    handle("second")
