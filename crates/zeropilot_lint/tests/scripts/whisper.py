from transformers import Seq2SeqTrainingArguments, WhisperConfig, WhisperForConditionalGeneration

config = WhisperConfig(
    d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=64, num_mel_bins=8, max_source_positions=8,
    max_target_positions=8, pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1,
)  # fmt: skip
WhisperForConditionalGeneration(config).save_pretrained("whisper")
args = Seq2SeqTrainingArguments(output_dir="out", deepspeed="ds.json", per_device_train_batch_size=1, use_cpu=True)
model = WhisperForConditionalGeneration.from_pretrained("whisper")
print("done")
