"""Functions with known shares, for the comparison with another profiler."""

import json


def parse(text):
    return json.loads(text)


def write(value):
    return json.dumps(value)


def count(number):
    total = 0
    for each in range(number):
        total += each % 7
    return total


def half():
    return count(20_000)


def quarter():
    return count(10_000)


def main():
    text = json.dumps(list(range(500)))
    while True:
        half()
        quarter()
        for _ in range(10):
            write(parse(text))


if __name__ == "__main__":
    main()
