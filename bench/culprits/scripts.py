# Bottlenecks of Python programs, one an argument.
# CULPRIT score on-cpu score_all
# CULPRIT regex on-cpu check_names
# CULPRIT json on-cpu export_all
# CULPRIT join on-cpu build_page
# CULPRIT wait off-cpu wait_for_job
import json
import re
import sys
import time


def score_all(rows):
    best = 0
    for row in rows:
        score = 0
        for value in row:
            score = (score * 31 + value) % 1000003
        best = max(best, score)
    return best


def check_names(names):
    pattern = re.compile(r"^(\w+\s?)*!$")
    return [name for name in names if pattern.match(name)]


def export_all(rows):
    return json.dumps([{"row": row} for row in rows], indent=2)


def build_page(rows):
    page = []
    for row in rows:
        page = page + [str(row[0])]
    return page


def wait_for_job(_):
    time.sleep(0.02)


ROWS = [list(range(200)) for _ in range(1000)]
WORK = {
    "score": lambda: score_all(ROWS),
    "regex": lambda: check_names(["a name of some words that never ends"] * 3),
    "json": lambda: export_all(ROWS),
    "join": lambda: build_page(ROWS * 5),
    "wait": lambda: wait_for_job(ROWS),
}
work = WORK[sys.argv[1]]
while True:
    work()
