"""The one table: orders, and whether they are shipped."""

from django.db import models


class Order(models.Model):
    """What a customer wants."""

    product = models.CharField(max_length=100)
    shipped = models.BooleanField(default=False)
