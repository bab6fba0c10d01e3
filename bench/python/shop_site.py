"""A site of Django, as gunicorn runs it."""

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.template import Context, Template
from django.urls import path

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="none",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()
TEMPLATE = Template("{% for item in items %}<li>{{ item.name|upper }}: {{ item.price }}</li>{% endfor %}")


def cart(request, number):
    items = [{"name": f"item {each}", "price": each * number} for each in range(20)]
    return JsonResponse({"cart": TEMPLATE.render(Context({"items": items}))})


urlpatterns = [path("cart/<int:number>", cart)]
application = get_wsgi_application()
