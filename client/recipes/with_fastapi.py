"""FastAPI with Pydantic: ids that are made, checked, and described in the OpenAPI schema.

It needs ``fastapi`` and the extra ``pydantic``.
"""

from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse
from pydantic import UUID7, BaseModel, Field

from uuidd_client import DaemonUnavailable, snowflake, stats, ulid, uuid7
from uuidd_client.pydantic import Snowflake, Ulid

app = FastAPI()


class Order(BaseModel):
    """An order; in JSON its Snowflake is text."""

    id: UUID7 = Field(default_factory=uuid7)
    number: Ulid = Field(default_factory=ulid)
    batch: Snowflake = Field(default_factory=snowflake)
    item: str


@app.exception_handler(DaemonUnavailable)
def unavailable(request, error):
    """Answer with status 503 if a Snowflake cannot be made."""
    return JSONResponse({"detail": str(error)}, 503)


@app.get("/health")
def health():
    """Return how many ids were made with the daemon and without it, and the last error."""
    return stats()._asdict()


orders: dict[str, Order] = {}


@app.post("/orders")
def create(item: str) -> Order:
    """Create an order."""
    order = Order(item=item)
    return orders.setdefault(order.number, order)


@app.get("/orders/{number}")
def read(number: Ulid) -> Order:
    """Return an order. What is not a ULID is answered with status 422."""
    if number not in orders:
        raise HTTPException(404, f"there is no order {number}")
    return orders[number]
