"""A WSGI application that makes an id when it is loaded, and one for each request.

With ``preload_app``, all workers of gunicorn have the same ``FIRST``, and no other id in common.
"""

import os

from uuidd_client import uuid7

FIRST = uuid7()


def application(environ, start_response):
    """Answer with the worker's pid and a new id."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {uuid7()}".encode()]
