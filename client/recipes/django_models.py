"""Django: ``models.py``. The functions are defaults; migrations import them by their names."""

from django.db import models

from uuidd_client import ulid, uuid7


class Order(models.Model):
    """An order."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    number = models.CharField(max_length=26, unique=True, default=ulid, editable=False)

    class Meta:
        """The newest order comes last."""

        ordering = ("id",)
