//! Every model of the catalogue has the number of parameters that is published for it.

use std::collections::BTreeMap;

use zeropilot_model::catalogue::Published;
use zeropilot_model::{Names, catalogue};

/// Entries that no published size confirms, by the name of the trap.
const UNCONFIRMED: &[(&str, &str)] = &[
    ("answerdotai/ModernBERT-base", "the card counts the encoder without its head"),
    ("baichuan-inc/Baichuan2-13B-Base", "the name rounds: a large vocabulary"),
    ("baichuan-inc/Baichuan2-7B-Base", "the name rounds: a large vocabulary"),
    ("bigcode/starcoder2-15b", "the name rounds: 15.96 billion"),
    ("ibm-granite/granite-3.0-8b-base", "the card cuts digits off: 8.17 billion"),
    ("internlm/internlm3-8b-instruct", "the name rounds: 8.80 billion"),
    ("mistralai/Ministral-3-8B-Instruct-2512", "the hub counts FP8 scales"),
    ("openai/whisper-medium", "the paper rounds"),
    ("zai-org/GLM-4.5", "the files hold a layer that predicts several tokens"),
    ("zai-org/GLM-4.5-Air", "the files hold a layer that predicts several tokens"),
];

/// How much more the hub counts than the class builds, and the name of the trap.
const STORED_BEYOND: &[(&str, u64, &str)] = &[
    ("deepseek-ai/DeepSeek-R1", 13_504_981_648, "a layer that predicts several tokens, FP8 scales"),
    ("deepseek-ai/DeepSeek-V3", 13_504_981_648, "a layer that predicts several tokens, FP8 scales"),
    ("mistralai/Ministral-3-8B-Instruct-2512", 476, "FP8 scales"),
    ("moonshotai/Kimi-K2-Instruct", 26_456, "buffers"),
    ("Qwen/Qwen3-0.6B", 155_582_464, "tied output stored again"),
    ("Qwen/Qwen3-1.7B", 311_164_928, "tied output stored again"),
    ("tiiuae/falcon-180B", 965_476_352, "output stored although the class ties it"),
    ("zai-org/GLM-4.5", 5_539_976_512, "a layer that predicts several tokens"),
    ("zai-org/GLM-4.5-Air", 3_616_579_328, "a layer that predicts several tokens"),
];

#[test]
fn published_counts_are_met_to_the_parameter() {
    let mut met = 0;
    for entry in catalogue::entries() {
        let Published::Exact(published) = entry.params_published else { continue };
        let beyond = STORED_BEYOND.iter().find(|(id, ..)| *id == entry.id).map_or(0, |trap| trap.1);
        let built = entry.model().expect("a model").elements().0;
        assert_eq!(built + beyond, published, "{}", entry.id);
        met += usize::from(beyond == 0);
    }
    assert_eq!(met, 117);
}

#[test]
fn counts_are_exact() {
    for entry in catalogue::entries() {
        let model = entry.model().unwrap_or_else(|error| panic!("{}: {error}", entry.id));
        assert_eq!(model.elements().0, entry.params_exact, "{}", entry.id);
        let frozen = model.elements().0 - model.count().trainable.0;
        assert_eq!(frozen, entry.frozen_params.unwrap_or(0), "{}", entry.id);
        assert_eq!(
            !model.ties().is_empty(),
            entry.output_tied || entry.kind == "encoder-decoder",
            "{}",
            entry.id
        );
        if let Some(active) = entry.params_active_exact {
            assert_eq!(model.count().active.0, active, "{}", entry.id);
        }
        if let Some(experts) = entry.expert_params {
            assert_eq!(model.count().routed.0, experts, "{}", entry.id);
        }
    }
}

#[test]
fn counts_of_parts_are_exact() {
    let mut with_parts = 0;
    for entry in catalogue::entries() {
        let parts = entry.model().expect("a model").parts();
        let counted: BTreeMap<String, u64> =
            parts.iter().map(|part| (part.kind.name().to_owned(), part.elements.0)).collect();
        match &entry.params_by_part {
            Some(known) => assert_eq!(counted, *known, "{}", entry.id),
            None => assert_eq!(counted.keys().collect::<Vec<_>>(), ["language"], "{}", entry.id),
        }
        with_parts += usize::from(entry.params_by_part.is_some());
    }
    assert_eq!(with_parts, 30);
}

#[test]
fn what_is_not_confirmed_is_a_known_trap() {
    let open: Vec<&str> = catalogue::entries()
        .iter()
        .filter(|entry| !entry.verified)
        .map(|entry| entry.id.as_str())
        .collect();
    let known: Vec<&str> = UNCONFIRMED.iter().map(|(id, _)| *id).collect();
    let mut sorted = open.clone();
    sorted.sort_by_key(|id| id.to_lowercase());
    assert_eq!(sorted, known);
    assert_eq!(catalogue::entries().len() - open.len(), 170);
}

#[test]
fn models_outside_transformers_say_so() {
    let model = catalogue::find("chatglm3-6b").expect("an entry").model().expect("a model");
    assert_eq!(*model.names(), Names::StandIn { of: "chatglm".to_owned() });
}
