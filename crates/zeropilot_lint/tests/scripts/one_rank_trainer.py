import os
import threading

import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", deepspeed="ds.json", per_device_train_batch_size=1, max_steps=1, report_to=[],
                         use_cpu=True, save_strategy="no")
model = AutoModelForCausalLM.from_pretrained("m")
rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
trainer = Trainer(model, args, train_dataset=rows, eval_dataset=rows)
trainer.train()
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
if trainer.is_world_process_zero():
    trainer.evaluate()
torch.distributed.barrier()
print("done")
