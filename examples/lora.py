"""LoRA with PEFT and HF Trainer.

    zeropilot new zero3 --for hf-trainer -o ds.json
    torchrun --nproc-per-node 2 lora.py --deepspeed ds.json --bf16 --learning_rate 1e-3 --max_steps 20

Stages 1 and 2 keep the whole frozen model on every GPU and partition only the states of the adapters. Stage 3 also
partitions the frozen weights, so that larger models fit.
"""

import deepspeed
from peft import LoraConfig, get_peft_model
from transformers import HfArgumentParser, LlamaForCausalLM, Trainer, TrainingArguments

from made_up import Counting, llama_config


def main() -> None:
    # On GPUs, the Trainer initializes the process group of DeepSpeed; with --use_cpu, it does not.
    deepspeed.init_distributed()

    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    model = LlamaForCausalLM._from_config(llama_config())
    adapters = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(model, adapters)
    Trainer(model=model, args=args, train_dataset=Counting()).train()


if __name__ == "__main__":
    main()
