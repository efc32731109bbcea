"""The engine's verdict on config texts: a long-lived process. The protocol is `json_lines`'s.

Greeting: {"deepspeed": "0.19.8"}
Request:  {"id": 1, "text": "<file content>" or "text_b64": "<bytes>", "world_size": 8}
          With "as_dict": true the text is JSON and the engine is handed the dictionary, as front ends do.
Answer:   {"id": 1, "accept": true, "resolved": {...}}  or
          {"id": 1, "accept": false, "error": "AssertionError", "message": "..."}
"""

import base64
import json

import engine
import json_lines


def answer(request, file):
    if "text_b64" in request:
        data = base64.b64decode(request["text_b64"])
    else:
        data = request["text"].encode("utf-8", "surrogatepass")
    try:
        if request.get("as_dict"):
            source = json.loads(data.decode("utf-8"))
        else:
            source = file.write(data)
        config = engine.load(source, request["world_size"])
    except Exception as error:  # any exception at all ends the user's run
        return {"accept": False, "error": type(error).__name__, "message": str(error)[:2000]}
    return {"accept": True, "resolved": engine.resolved(config)}


def main():
    file = engine.ConfigFile()
    greeting = {"deepspeed": engine.VERSION}
    json_lines.serve(lambda request: answer(request, file), greeting, json_lines.claim_output())


if __name__ == "__main__":
    main()
