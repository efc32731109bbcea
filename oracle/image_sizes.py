"""How the image processors of transformers cut images: a long-lived process. The protocol is `json_lines`'s.

The processors' modules need torchvision; the functions that decide sizes do not, so they are taken from the installed
source and run alone.

Greeting: {"transformers": "5.22.2"}
Request:  {"id": 1, "width": 1024, "height": 768, "factor": 28, "min": 3136, "max": 1003520, "tile": 448, "most": 12}
Answer:   {"id": 1, "resized": [width, height] or null where the processor refuses, "tiles": 10}
"""

import ast
import functools
import importlib.util
import math

import json_lines

OUTPUT = json_lines.claim_output()

import transformers  # noqa: E402


def functions(module, *names):
    """Functions of an installed module, without its imports."""
    source = importlib.util.find_spec("transformers").submodule_search_locations[0] + "/models/" + module
    with open(source, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    kept = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    scope = {"math": math, "lru_cache": functools.lru_cache}
    exec(compile(ast.Module(kept, []), source, "exec"), scope)
    return [scope[name] for name in names]


(smart_resize,) = functions("qwen2_vl/image_processing_qwen2_vl.py", "smart_resize")
_, optimal_canvas = functions(
    "got_ocr2/image_processing_got_ocr2.py", "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas"
)


def answer(request):
    width, height = request["width"], request["height"]
    try:
        resized = smart_resize(height, width, request["factor"], request["min"], request["max"])[::-1]
    except ValueError:
        resized = None
    tile = request["tile"]
    columns, rows = optimal_canvas((height, width), (tile, tile), 1, request["most"])
    tiles = columns * rows
    return {"resized": resized, "tiles": tiles + (tiles > 1)}


if __name__ == "__main__":
    json_lines.serve(answer, {"transformers": transformers.__version__}, OUTPUT)
