from transformers import Gemma3Config, Gemma3ForConditionalGeneration, TrainingArguments

text = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 64,
}  # fmt: skip
vision = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "image_size": 28, "patch_size": 14,
}  # fmt: skip
config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
args = TrainingArguments(output_dir="out", deepspeed="ds.json", per_device_train_batch_size=1, use_cpu=True)
model = Gemma3ForConditionalGeneration(config)
print("done")
