"""What every oracle server has in common: JSON lines in, JSON lines out, and values nothing is lost of.

The first line out is a greeting that says what answers. Then every request, one JSON object per line, gets
one answer with the same "id", in the same order. Nobody has to mark the end of a batch: answers are
written in large pieces while requests keep coming, and all of them before the server waits for more.
"""

import json
import os
import re
import struct
import sys

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Pairs(list):
    """An object's members with order and duplicates, for `object_pairs_hook`. A list is what an array becomes."""


def claim_output():
    """Standard output for answers alone; whatever else prints goes to standard error from now on."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def lines(descriptor, before_waiting):
    rest = b""
    while True:
        before_waiting()
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            break
        *complete, rest = (rest + piece).split(b"\n")
        yield from complete
    if rest:
        yield rest


def serve(answer, greeting, output):
    """Answers every request on standard input with what `answer(request)` returns."""
    output.write(json.dumps(greeting) + "\n")
    for line in lines(sys.stdin.fileno(), before_waiting=output.flush):
        request = json.loads(line)
        output.write(json.dumps({"id": request["id"], **answer(request)}) + "\n")
    output.flush()


def text(value):
    """Text that every reader of JSON takes: a lone surrogate becomes U+FFFD."""
    return LONE_SURROGATE.sub("\ufffd", value)


def tagged(value):
    """A value in which nothing that Python tells apart is lost.

    None, booleans and texts are themselves, an integer is {"int": "12"}, a float {"float": "<16 hex digits
    of its bits, or nan>"}, a list is a list, an object {"dict": [[key, value], ...]} in its order.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": "nan" if value != value else struct.pack(">d", value).hex()}
    if isinstance(value, (dict, Pairs)):
        members = value.items() if isinstance(value, dict) else value
        return {"dict": [[text(key), tagged(item)] for key, item in members]}
    if isinstance(value, (list, tuple)):
        return [tagged(item) for item in value]
    raise TypeError(f"no tag for {type(value).__name__}")


def encoded(value):
    """The tagged value as JSON text, so that no limit on nesting applies to the answer it is put into."""
    # Writing the tagged form nests deeper than reading did, and must not hit the same limit.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return json.dumps(tagged(value))
    finally:
        sys.setrecursionlimit(limit)
