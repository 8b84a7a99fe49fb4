"""The one address: `POST /orders` with `product`."""

from django.urls import path

from shop.views import place

urlpatterns = [path("orders", place)]
