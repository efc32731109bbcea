import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", deepspeed="ds.json", fsdp="full_shard", per_device_train_batch_size=1,
                         report_to="none", use_cpu=True)
model = AutoModelForCausalLM.from_pretrained("m")
trainer = Trainer(model, args, train_dataset=[{"input_ids": torch.ones(8, dtype=torch.long)}] * 8)
print("done")
