"""A suite of tests, again and again: pytest runs this file."""

import json
import re

import pytest


@pytest.fixture
def cart():
    return {"items": [{"name": f"item {each}", "price": each} for each in range(200)]}


@pytest.mark.parametrize("number", range(4000))
def test_round_trip(cart, number):
    text = json.dumps(cart, indent=1)
    assert json.loads(text) == cart
    assert len(re.findall(r"item \d+", text)) == 200


class TestPrices:
    @pytest.mark.parametrize("number", range(4000))
    def test_sum(self, cart, number):
        assert sum(item["price"] for item in cart["items"]) == 19_900
        with pytest.raises(KeyError):
            cart["nothing"]
