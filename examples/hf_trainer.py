"""The HF Trainer with a DeepSpeed config.

    zeropilot new zero3 --for hf-trainer -o ds.json
    torchrun --nproc-per-node 2 hf_trainer.py --deepspeed ds.json --bf16 \\
        --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_steps 20

Takes every argument of `transformers.TrainingArguments`; they fill the `"auto"`s of the config.
"""

import deepspeed
from transformers import HfArgumentParser, LlamaForCausalLM, Trainer, TrainingArguments

from made_up import Counting, llama_config


def main() -> None:
    # On GPUs the Trainer starts the engine's process group by itself; with --use_cpu it does not.
    deepspeed.init_distributed()

    # The arguments come before the model: they tell transformers to partition parameters as they are made.
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    model = LlamaForCausalLM._from_config(llama_config())
    Trainer(model=model, args=args, train_dataset=Counting()).train()


if __name__ == "__main__":
    main()
