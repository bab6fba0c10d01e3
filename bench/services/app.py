"""A small web service in Python: templates, a database, JSON, compression."""

import gzip
import json
import re
import sqlite3
import sys
import threading

from flask import Flask, request
from jinja2 import DictLoader, Environment

PAGE = """<h1>{{ title|upper }}</h1>{% for row in rows %}<li class="{{ loop.cycle('a', 'b') }}">
{{ row.name|escape }}: {{ '%.2f'|format(row.price) }}{% if row.price > 50 %} dear{% endif %}</li>{% endfor %}"""

app = Flask(__name__)
environment = Environment(loader=DictLoader({"page": PAGE}), autoescape=True)
local = threading.local()


def database():
    if not hasattr(local, "connection"):
        local.connection = sqlite3.connect(":memory:")
        local.connection.execute("create table items (id integer primary key, name text, price real)")
        rows = [(f"item <{n}>", n * 7 % 101) for n in range(2000)]
        local.connection.executemany("insert into items (name, price) values (?, ?)", rows)
    return local.connection


@app.get("/page")
def page():
    least = int(request.args.get("n", "5")) % 100
    found = database().execute("select name, price from items where price > ? order by name limit 60", (least,))
    rows = [{"name": name, "price": price} for name, price in found]
    return environment.get_template("page").render(title="items", rows=rows)


@app.get("/report")
def report():
    found = database().execute("select substr(name, 1, 7), count(*), avg(price) from items group by 1").fetchall()
    return gzip.compress(json.dumps([dict(zip("abc", row)) for row in found] * 20).encode())


@app.get("/words")
def words():
    text = PAGE * 40 + request.args.get("n", "")
    counts = {}
    for word in re.findall(r"[a-z]{2,}", text):
        counts[word] = counts.get(word, 0) + 1
    return json.dumps(sorted(counts.items(), key=lambda it: (-it[1], it[0])))


app.run(port=int(sys.argv[1]), threaded=True)
