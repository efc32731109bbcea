"""The HF Trainer with the callback that saves and ends when a scheduler warns."""

import time

import deepspeed
from made_up import Counting, llama_config
from transformers import HfArgumentParser, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments
from zeropilot import Preemption


class Slowly(TrainerCallback):
    def on_step_begin(self, *_, **__):
        time.sleep(0.2)


def main() -> None:
    deepspeed.init_distributed()
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    preemption = Preemption()
    model = LlamaForCausalLM._from_config(llama_config())
    trainer = Trainer(model=model, args=args, train_dataset=Counting(), callbacks=[preemption.callback(), Slowly()])
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)


if __name__ == "__main__":
    main()
