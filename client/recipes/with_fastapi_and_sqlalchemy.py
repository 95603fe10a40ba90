"""FastAPI with async SQLAlchemy: an id is made before its row, and a daemon that hangs is a 503.

It needs ``fastapi``, ``sqlalchemy[asyncio]``, ``psycopg[binary]``, and the extras ``pydantic`` and
``async``.
"""

import os
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse
from sqlalchemy import BigInteger
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from uuidd_client import DaemonUnavailable
from uuidd_client.aio import AsyncClient
from uuidd_client.pydantic import Snowflake

ids = AsyncClient()
# For example: postgresql+psycopg://user@host/database
engine = create_async_engine(os.environ["DATABASE_URL"])
sessions = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    """All tables."""


class Order(Base):
    """An order. Its id has no default."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    item: Mapped[str]


@asynccontextmanager
async def lifespan(app):
    """Create the tables, and close all connections at the end."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await engine.dispose()
    await ids.aclose()


app = FastAPI(lifespan=lifespan)


@app.exception_handler(DaemonUnavailable)
async def unavailable(request, error):
    """Answer with status 503 if a Snowflake cannot be made."""
    return JSONResponse({"detail": str(error), "reason": error.reason}, 503)


@app.post("/orders")
async def create(item: str):
    """Create an order."""
    order = Order(id=await ids.snowflake(), item=item)
    async with sessions.begin() as session:
        session.add(order)
    return {"id": str(order.id), "item": order.item}


@app.get("/orders/{id}")
async def read(id: Snowflake):
    """Return an order."""
    async with sessions() as session:
        order = await session.get(Order, id)
    if order is None:
        raise HTTPException(404, f"there is no order {id}")
    return {"id": str(order.id), "item": order.item}
