r"""Reads config texts with Python's own readers, for comparison with ours. The protocol is `json_lines`'s.

    {"id": 1, "reader": "hjson", "text_b64": "e30="}
    {"id": 1, "ok": true, "value": "{\"dict\": []}"}
    {"id": 2, "ok": false, "error": "HjsonDecodeError: ..."}

A value is encoded by `json_lines.encoded`, duplicate keys included.
"""

import base64
import io
import json

import hjson

import json_lines

READERS = {"hjson": hjson.load, "json": json.load}


def read(reader, data):
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    return READERS[reader](stream, object_pairs_hook=json_lines.Pairs)


def answer(request):
    data = base64.b64decode(request["text_b64"])
    try:
        value = read(request["reader"], data)
    except Exception as error:
        return {"ok": False, "error": json_lines.text(f"{type(error).__name__}: {error}")}
    return {"ok": True, "value": json_lines.encoded(value)}


if __name__ == "__main__":
    json_lines.serve(answer, {"hjson": hjson.__version__}, json_lines.claim_output())
