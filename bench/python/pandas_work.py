"""Sums, joins and sorts of tables."""

import numpy
import pandas

random = numpy.random.default_rng(7)


def table(rows):
    return pandas.DataFrame({
        "group": random.integers(0, 50, rows),
        "value": random.normal(size=rows),
        "name": [f"name {number % 97}" for number in range(rows)],
    })


def sums(frame):
    return frame.groupby("group")["value"].agg(["sum", "mean"]).reset_index()


def rows(frame):
    return frame.head(200).apply(lambda row: row["value"] * 2 + len(row["name"]), axis=1).sum()


def matrix():
    square = random.normal(size=(120, 120))
    return numpy.linalg.inv(square @ square.T + numpy.eye(120)).sum()


while True:
    frame = table(2000)
    frame.merge(sums(frame), on="group").sort_values("value")
    rows(frame)
    matrix()
