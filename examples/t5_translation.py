"""Fine-tune T5 for translation with HF Trainer.

    zeropilot new zero2 --for hf-trainer -o ds.json
    torchrun --nproc-per-node 2 t5_translation.py --deepspeed ds.json --bf16 --learning_rate 1e-3 --max_steps 20

Prefer bf16 to fp16 for T5: it was trained in bf16, and its activations overflow fp16.
"""

import deepspeed
from transformers import (
    HfArgumentParser,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5ForConditionalGeneration,
)

from made_up import ReversedSentences, t5_config


def main() -> None:
    # On GPUs, the Trainer initializes the process group of DeepSpeed; with --use_cpu, it does not.
    deepspeed.init_distributed()

    (args,) = HfArgumentParser(Seq2SeqTrainingArguments).parse_args_into_dataclasses()
    model = T5ForConditionalGeneration._from_config(t5_config())
    Seq2SeqTrainer(model=model, args=args, train_dataset=ReversedSentences()).train()


if __name__ == "__main__":
    main()
