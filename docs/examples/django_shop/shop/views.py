"""Orders by HTTP."""

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from shop.events import send_after_commit
from shop.models import Order


@csrf_exempt
@require_POST
def place(request: HttpRequest) -> JsonResponse:
    """The id of the new order; 400 without a product, and then there is no event."""
    with transaction.atomic():
        order = Order.objects.create(product=request.POST.get("product", ""))
        send_after_commit("orders", str(order.pk), {"order": order.pk, "product": order.product})
        if not order.product:
            transaction.set_rollback(True)
            return JsonResponse({"error": "a product is missing"}, status=400)
    return JsonResponse({"id": order.pk}, status=201)
