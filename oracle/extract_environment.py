"""Which environment variables the engine's own code asks for: one JSON object on standard output."""

import ast
import json
import os

import engine

import deepspeed

PREFIXES = ("DS_", "DEEPSPEED_")


def asked(tree):
    """Names in `os.environ.get("X")`, `os.environ["X"]`, `os.getenv("X")` and `"X" in os.environ`."""
    for node in ast.walk(tree):
        texts = []
        if isinstance(node, ast.Call):
            texts = node.args[:1]
        elif isinstance(node, ast.Subscript):
            texts = [node.slice]
        elif isinstance(node, ast.Compare):
            texts = [node.left]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            # Names kept in a constant and asked for elsewhere.
            texts = [node.value]
        for text in texts:
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.startswith(PREFIXES):
                yield text.value


def main():
    names = set()
    for directory, _, files in os.walk(os.path.dirname(deepspeed.__file__)):
        for file in files:
            if file.endswith(".py"):
                with open(os.path.join(directory, file), encoding="utf-8") as source:
                    names.update(asked(ast.parse(source.read())))
    valid = [name for name in names if name.replace("_", "").isalnum() and name == name.upper() and name[-1] != "_"]
    print(json.dumps({"deepspeed": engine.VERSION, "variables": sorted(valid)}, indent=1))


if __name__ == "__main__":
    main()
