import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", deepspeed="ds.json", per_device_train_batch_size=1, max_steps=2, report_to="none",
                         use_cpu=True)
model = AutoModelForCausalLM.from_pretrained("m")
data = [{"input_ids": torch.ones(8, dtype=torch.long), "labels": torch.ones(8, dtype=torch.long)}] * 8
trainer = Trainer(model, args, train_dataset=data, eval_dataset=data)
print(trainer.evaluate())
trainer.train()
print("done")
