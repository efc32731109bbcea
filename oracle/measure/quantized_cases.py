"""The models that `quantized` records: small ones of many families, with the ways a base is quantized."""

DOUBLE = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
PLAIN = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
FP4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}
FP4_DOUBLE = {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4", "bnb_4bit_use_double_quant": True}
INT8 = {"load_in_8bit": True}

SEPARATE = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = []


def case(name, quantization, hf_config, auto="causal", lora=None):
    entry = {"name": name, "hf_config": hf_config, "auto": auto}
    entry["quantization"] = {"quant_method": "bitsandbytes", **quantization}
    if lora:
        entry["lora"] = {"r": 4, "target_modules": lora}
    CASES.append(entry)


def skipping(quantization, *modules):
    return {**quantization, "llm_int8_skip_modules": list(modules)}


def decoder(model_type, hidden=64, inner=100, layers=2, heads=4, shared=2, vocabulary=211, **more):
    return {
        "model_type": model_type,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "vocab_size": vocabulary,
        "max_position_embeddings": 128,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **more,
    }


def tied(config):
    return {**config, "tie_word_embeddings": True}


def untied(config):
    return {**config, "tie_word_embeddings": False}


def mixture(model_type, **more):
    return decoder(model_type, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48, **more)


llama = untied(decoder("llama", hidden=96, inner=172))
case("llama-nf4-double", DOUBLE, llama, lora=SEPARATE)
case("llama-nf4-plain", PLAIN, llama)
case("llama-fp4", FP4, llama)
case("llama-fp4-double", FP4_DOUBLE, llama)
case("llama-int8", INT8, llama, lora=SEPARATE)
case("llama-default-4bit", {"load_in_4bit": True}, llama)
case("llama-nf4-double-stored-bf16", {**DOUBLE, "bnb_4bit_quant_storage": "bfloat16"}, llama)
case("llama-int8-threshold-0", {**INT8, "llm_int8_threshold": 0.0}, llama)
case("llama-nf4-double-skip-lm_head", skipping(DOUBLE, "lm_head"), llama)
case("llama-nf4-double-skip-none", skipping(DOUBLE), llama)
case("llama-int8-skip-none", skipping(INT8), llama)
case("llama-nf4-double-skip-other", skipping(DOUBLE, "down_proj", "model.layers.1.self_attn"), llama)
case("llama-nf4-plain-skip-part-of-a-name", skipping(PLAIN, "proj", "layers.0", "mlp.up_proj"), llama)
case("llama-tied-nf4-double", DOUBLE, tied(llama))
case("llama-tied-nf4-double-skip-none", skipping(DOUBLE), tied(llama))
case("llama-tied-int8-skip-none", skipping(INT8), tied(llama))
case("llama-tied-nf4-double-skip-lm_head", skipping(DOUBLE, "lm_head"), tied(llama))
odd = decoder("llama", hidden=90, inner=57, layers=3, heads=3, shared=1, head_dim=14, vocabulary=503, attention_bias=True)
case("llama-odd-biases-nf4-double", DOUBLE, {**odd, "mlp_bias": True})
case("llama-odd-biases-nf4-plain", PLAIN, {**odd, "mlp_bias": True})
case("llama-odd-biases-int8", INT8, {**odd, "mlp_bias": True})
tiny = untied(decoder("llama", hidden=15, inner=7, heads=3, shared=3, head_dim=4, layers=1, vocabulary=97))
case("llama-below-a-block-nf4-double-skip-none", skipping(DOUBLE), tiny)
case("llama-below-a-block-nf4-plain-skip-none", skipping(PLAIN), tiny)
case("llama-large-nf4-double", DOUBLE, untied(decoder("llama", hidden=256, inner=688, heads=8, layers=3, vocabulary=1000)))
case("llama-classifier-nf4-double", DOUBLE, {**llama, "num_labels": 3}, "AutoModelForSequenceClassification")
case("llama-classifier-int8", INT8, {**llama, "num_labels": 3}, "AutoModelForSequenceClassification")

case("qwen2-tied-nf4-double", DOUBLE, tied(decoder("qwen2", inner=152)), lora=SEPARATE)
case("qwen2-untied-int8", INT8, untied(decoder("qwen2", inner=152)))
case("qwen2-tied-nf4-plain-skip-none", skipping(PLAIN), tied(decoder("qwen2", inner=152)))
case("qwen3-untied-nf4-double", DOUBLE, untied(decoder("qwen3", head_dim=24)))
case("qwen3-tied-int8", INT8, tied(decoder("qwen3", head_dim=24)))
case("mistral-nf4-plain", PLAIN, untied(decoder("mistral", hidden=128, inner=88, layers=3, head_dim=32)))
case("mistral-fp4", FP4, tied(decoder("mistral", hidden=128, inner=88, layers=3, head_dim=32)))
case("gemma2-nf4-double", DOUBLE, decoder("gemma2", head_dim=16))
case("gemma2-untied-nf4-plain", PLAIN, untied(decoder("gemma2", head_dim=16)))
case("gemma3_text-nf4-double", DOUBLE, decoder("gemma3_text", head_dim=24, layers=3))
case("gemma3_text-int8", INT8, decoder("gemma3_text", head_dim=24, layers=3))
case("phi3-nf4-double", DOUBLE, decoder("phi3"))
case("phi3-int8", INT8, decoder("phi3"))
gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 211, "n_positions": 128}
case("gpt2-nf4-double", DOUBLE, gpt2, lora=["c_attn"])
case("gpt2-int8", INT8, gpt2)
case("gpt2-untied-nf4-plain", PLAIN, untied({**gpt2, "n_inner": 100}))
case("gpt2-nf4-double-skip-none", skipping(DOUBLE), gpt2)
case("gpt2-classifier-fp4", FP4, {**gpt2, "num_labels": 2, "pad_token_id": 0}, "AutoModelForSequenceClassification")
opt = {
    "model_type": "opt", "hidden_size": 64, "word_embed_proj_dim": 64, "num_attention_heads": 4, "ffn_dim": 120,
    "num_hidden_layers": 2, "vocab_size": 211, "max_position_embeddings": 128,
}  # fmt: skip
case("opt-nf4-double", DOUBLE, opt)
case("opt-projected-int8", INT8, {**opt, "word_embed_proj_dim": 48, "do_layer_norm_before": False})
case("opt-projected-nf4-double", DOUBLE, {**opt, "word_embed_proj_dim": 48, "do_layer_norm_before": False})
bloom = {"model_type": "bloom", "hidden_size": 64, "n_head": 4, "n_layer": 2, "vocab_size": 211}
case("bloom-nf4-double", DOUBLE, bloom)
case("bloom-untied-int8", INT8, untied(bloom))
falcon = {"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 211}
case("falcon-nf4-double", DOUBLE, {**falcon, "multi_query": True})
case("falcon-new-fp4", FP4, untied({**falcon, "new_decoder_architecture": True, "num_kv_heads": 2, "bias": True}))
neox = decoder("gpt_neox", inner=256)
neox.pop("num_key_value_heads")
case("gpt_neox-nf4-double", DOUBLE, neox)
case("gpt_neox-tied-int8", INT8, tied(neox))
case("mixtral-nf4-double", DOUBLE, untied(decoder("mixtral", num_local_experts=4)))
case("mixtral-int8", INT8, untied(decoder("mixtral", num_local_experts=4)))
case("qwen3_moe-nf4-double", DOUBLE, untied(mixture("qwen3_moe", head_dim=16)), lora=SEPARATE[:4])
case("qwen3_moe-dense-layer-nf4-plain", PLAIN, tied(mixture("qwen3_moe", head_dim=16, mlp_only_layers=[0])))
case("qwen2_moe-nf4-double", DOUBLE, untied(mixture("qwen2_moe", shared_expert_intermediate_size=80)))
case("olmoe-nf4-double", DOUBLE, untied(decoder("olmoe", num_experts=4, num_experts_per_tok=2)))
gpt_oss = decoder("gpt_oss", head_dim=16, num_local_experts=4, num_experts_per_tok=2)
case("gpt_oss-nf4-double", DOUBLE, untied(gpt_oss))
case("olmo2-nf4-double", DOUBLE, untied(decoder("olmo2")))
case("granite-nf4-plain", PLAIN, tied(decoder("granite")))
case("granite-untied-int8", INT8, untied(decoder("granite", attention_bias=True)))
case("smollm3-nf4-double", DOUBLE, tied(decoder("smollm3")))
case("glm4-nf4-double", DOUBLE, untied(decoder("glm4", head_dim=16, attention_bias=True)))
case("cohere2-nf4-double", DOUBLE, tied(decoder("cohere2", head_dim=16)))
case("cohere2-int8", INT8, tied(decoder("cohere2", head_dim=16)))
case("phi-nf4-double", DOUBLE, decoder("phi"))
case("stablelm-nf4-double", DOUBLE, decoder("stablelm", use_qkv_bias=True))
case("starcoder2-fp4", FP4, decoder("starcoder2"))

t5 = {
    "model_type": "t5", "d_model": 64, "d_kv": 16, "d_ff": 100, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4,
    "vocab_size": 211, "decoder_start_token_id": 0,
}  # fmt: skip
SEQUENCES = "AutoModelForSeq2SeqLM"
case("t5-nf4-double", DOUBLE, t5, SEQUENCES)
case("t5-gated-untied-asked-nf4-double", DOUBLE, untied({**t5, "feed_forward_proj": "gated-gelu"}), SEQUENCES)
case("t5-int8", INT8, t5, SEQUENCES)
bart = {
    "model_type": "bart", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 100, "decoder_ffn_dim": 120, "vocab_size": 211,
    "max_position_embeddings": 128,
}  # fmt: skip
case("bart-nf4-double", DOUBLE, bart, SEQUENCES)
bert = {**decoder("bert"), "num_labels": 3}
bert.pop("num_key_value_heads")
case("bert-classifier-nf4-double", DOUBLE, bert, "AutoModelForSequenceClassification")
case("bert-classifier-int8", INT8, bert, "AutoModelForSequenceClassification")
case("bert-tokens-nf4-plain", PLAIN, bert, "AutoModelForTokenClassification")
case("roberta-classifier-nf4-double", DOUBLE, {**bert, "model_type": "roberta"}, "AutoModelForSequenceClassification")

PICTURES = "AutoModelForImageTextToText"


def language(**more):
    return {key: value for key, value in decoder("none", **more).items() if key != "model_type"}


def in_streams(text, width):
    row = width // 6
    section = [width // 2 - 2 * row, row, row]
    return {**text, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section}}


tokens = {"image_token_id": 210, "video_token_id": 209, "vision_start_token_id": 208, "vision_end_token_id": 207}
tower = {"depth": 2, "num_heads": 4, "hidden_size": 64, "intermediate_size": 100, "patch_size": 8, "out_hidden_size": 64}
qwen2_5_vl = {
    "model_type": "qwen2_5_vl", "text_config": in_streams(language(), 16),
    "vision_config": {**tower, "window_size": 16, "fullatt_block_indexes": [1]}, **tokens,
}  # fmt: skip
case("qwen2_5_vl-nf4-double", DOUBLE, untied(qwen2_5_vl), PICTURES, lora=SEPARATE)
case("qwen2_5_vl-tied-int8", INT8, tied(qwen2_5_vl), PICTURES)
case("qwen2_5_vl-nf4-double-skip-visual", skipping(DOUBLE, "visual", "lm_head"), untied(qwen2_5_vl), PICTURES)
case("qwen2_5_vl-nf4-double-skip-model-visual", skipping(DOUBLE, "model.visual"), untied(qwen2_5_vl), PICTURES)
qwen3_vl = {
    "model_type": "qwen3_vl", "text_config": in_streams(language(head_dim=16), 16),
    "vision_config": {**tower, "num_position_embeddings": 64, "deepstack_visual_indexes": [0]}, **tokens,
}  # fmt: skip
case("qwen3_vl-tied-nf4-double", DOUBLE, tied(qwen3_vl), PICTURES)
case("qwen3_vl-untied-nf4-plain", PLAIN, untied(qwen3_vl), PICTURES)
patches = {
    "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 100, "patch_size": 8,
    "image_size": 32,
}  # fmt: skip
gemma3 = {
    "model_type": "gemma3", "text_config": language(head_dim=16), "vision_config": patches, "mm_tokens_per_image": 4,
    "image_token_index": 210,
}  # fmt: skip
case("gemma3-nf4-double", DOUBLE, gemma3, PICTURES)
case("gemma3-int8", INT8, gemma3, PICTURES)
headless = {**gemma3, "vision_config": {**patches, "vision_use_head": False}}
case("gemma3-without-pooling-nf4-plain", PLAIN, headless, PICTURES)
llava = {
    "model_type": "llava", "text_config": decoder("llama"), "image_token_index": 210,
    "vision_config": {"model_type": "clip_vision_model", "projection_dim": 64, **patches},
}  # fmt: skip
case("llava-nf4-double", DOUBLE, llava, PICTURES)
case("llava-int8", INT8, untied(llava), PICTURES)
internvl = {
    "model_type": "internvl", "text_config": decoder("qwen2"), "image_token_id": 210,
    "vision_config": {**patches, "patch_size": [8, 8], "image_size": [32, 32]},
}  # fmt: skip
case("internvl-nf4-double", DOUBLE, untied(internvl), PICTURES)
whisper = {
    "model_type": "whisper", "d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_ffn_dim": 100, "decoder_ffn_dim": 120, "vocab_size": 211, "num_mel_bins": 8,
    "max_source_positions": 20, "max_target_positions": 64, "decoder_start_token_id": 1, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 1,
}  # fmt: skip
case("whisper-nf4-double", DOUBLE, whisper, "AutoModelForSpeechSeq2Seq")
case("whisper-int8", INT8, whisper, "AutoModelForSpeechSeq2Seq")
