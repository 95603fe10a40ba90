"""SQLAlchemy 2: a v7 as primary key, and a ULID that customers see.

It needs ``sqlalchemy``, and for PostgreSQL ``psycopg[binary]``.
"""

import os
import uuid

from sqlalchemy import Uuid, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from uuidd_client import ulid, uuid7
from uuidd_client.sqlalchemy import Ulid


class Base(DeclarativeBase):
    """All tables."""


class Order(Base):
    """An order."""

    __tablename__ = "orders"

    id: Mapped[uuid.UUID] = mapped_column(Uuid, primary_key=True, default=uuid7)
    number: Mapped[str] = mapped_column(Ulid, unique=True, default=ulid)


if __name__ == "__main__":
    # Or, for example: postgresql+psycopg://user@host/database
    engine = create_engine(os.environ.get("DATABASE_URL", "sqlite://"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Order(), Order(), Order()])
        session.commit()
        for order in session.scalars(select(Order).order_by(Order.id)):
            print(order.id, order.number)
    engine.dispose()
