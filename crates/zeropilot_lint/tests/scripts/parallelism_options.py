import os

from accelerate import Accelerator

print("hands on", os.environ.get("PARALLELISM_CONFIG_SP_SIZE"))
