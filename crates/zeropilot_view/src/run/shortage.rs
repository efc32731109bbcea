//! Memory in words: what a run needs against what there is, and which part was larger than predicted.

use zeropilot_record::{Memory, Phase, Term};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use crate::memory::term_words;

/// A rank that ran out of memory, against its prediction.
pub(super) struct Compared<'a> {
    pub(super) rank: Option<u32>,
    pub(super) phase: Phase,
    pub(super) measured: u64,
    pub(super) predicted: u64,
    pub(super) terms: &'a [Term],
    pub(super) larger: Option<&'a str>,
}

pub(super) fn moment(phase: Phase) -> Text {
    match phase {
        Phase::Loading => Text::new("while loading", "加载时"),
        Phase::Forward => Text::new("in the forward pass", "前向时"),
        Phase::Backward => Text::new("in the backward pass", "反向时"),
        Phase::Step => Text::new("in the optimizer step", "参数更新时"),
        Phase::Saving => Text::new("while saving", "保存时"),
    }
}

/// What was larger, and why that may be.
fn reason(larger: &str) -> Option<Text> {
    Some(match larger {
        "activations" => Text::new(
            "weights, gradients and optimizer states follow from the config, so the activations were larger than predicted. The run had longer or more sequences than predicted (set the length with --seq-len)",
            "模型状态（权重、梯度和优化器状态）由配置决定，超出预测的是激活值：序列比预测的更长或更多（用 --seq-len 指定实际长度）",
        ),
        "temporaries" => Text::new(
            "weights, gradients and optimizer states follow from the config, so the temporary copies in the optimizer step or while saving were larger than predicted",
            "模型状态（权重、梯度和优化器状态）由配置决定，超出预测的是更新或保存时的临时副本",
        ),
        "loading" => Text::new(
            "model states follow from the config, so the excess comes from loading. Every rank builds the full model before DeepSpeed partitions it, or reads the weights in fp32",
            "DeepSpeed 常驻的模型状态由配置决定，超出预测的是加载过程：每个 rank 都先完整构建了模型再切分，或者按 fp32 读入了权重",
        ),
        _ => return None,
    })
}

/// Measured against predicted, term by term.
pub(super) fn compared(compared: &Compared<'_>, language: Language) -> String {
    let (measured, predicted) = (Bytes(compared.measured), Bytes(compared.predicted));
    let when = moment(compared.phase).get(language);
    let terms: Vec<String> = compared
        .terms
        .iter()
        .map(|term| format!("{} {}", Bytes(term.bytes), term_words(&term.name, language)))
        .collect();
    let who = match compared.rank {
        Some(rank) => format!("rank {rank}"),
        None => tr!(language, "a rank", "某个 rank"),
    };
    let mut text = tr!(
        language,
        (
            "{who} needed {measured} or more; zeropilot predicted {predicted} {when}: {}",
            terms.join(", ")
        ),
        ("{who} 至少需要 {measured}；预测{when}为 {predicted}：{}", terms.join("，"))
    );
    if let Some(reason) = compared.larger.and_then(reason) {
        text.push_str("\n  ");
        text.push_str(reason.get(language));
    }
    text
}

/// What a run needs here, if that is more than there is.
pub(super) fn room(
    memory: Memory,
    [least, expected, left]: [u64; 3],
    language: Language,
) -> Option<String> {
    let [least, expected, left] = [least, expected, left].map(Bytes);
    let where_ = match memory {
        Memory::Device => Text::new("of GPU memory on each GPU", "每张 GPU 的显存"),
        Memory::Host => Text::new("of host memory", "主机内存"),
    };
    let where_ = where_.get(language);
    if least > left {
        return Some(tr!(
            language,
            "error: the run does not fit: model states alone need {least} {where_}, but only {left} is free\n  help: run `zeropilot plan --model … --gpus …` to find strategies that fit; --no-preflight starts the run anyway",
            "错误：放不下：仅模型状态就需要{where_} {least}，而可用的只有 {left}\n  建议：用 `zeropilot plan --model … --gpus …` 找到放得下的方案；--no-preflight 可强行启动"
        ));
    }
    (expected > left).then(|| tr!(language, "warning: the run may not fit: it is expected to need {expected} {where_}, but only {left} is free\n  help: with --fallback, zeropilot continues with a config that needs less if GPU memory or host memory runs out", "警告：可能放不下：预计需要{where_} {expected}，而可用的只有 {left}\n  建议：加 --fallback，让 zeropilot 在显存或主机内存不足时换用占用更少的配置继续训练"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_part_that_was_larger_is_named_in_both_languages() {
        let terms = [
            Term { name: "optimizer_states".to_owned(), bytes: 2 * GIB },
            Term { name: "activations".to_owned(), bytes: GIB },
        ];
        let one = Compared {
            rank: Some(1),
            phase: Phase::Backward,
            measured: 5 * GIB,
            predicted: 3 * GIB,
            terms: &terms,
            larger: Some("activations"),
        };
        let english = compared(&one, Language::English);
        assert!(english.starts_with("rank 1 needed 5.00 GiB"), "{english}");
        assert!(english.contains("2.00 GiB optimizer states, 1.00 GiB activations"), "{english}");
        assert!(english.contains("the activations were larger than predicted"), "{english}");
        let chinese = compared(&one, Language::Chinese);
        assert!(chinese.contains("反向时") && chinese.contains("超出预测的是激活值"), "{chinese}");
    }

    #[test]
    fn only_what_is_sure_not_to_fit_is_an_error() {
        let words =
            |least, expected| room(Memory::Host, [least, expected, 2 * GIB], Language::English);
        assert!(words(3 * GIB, 4 * GIB).is_some_and(|text| text.starts_with("error")));
        assert!(words(GIB, 4 * GIB).is_some_and(|text| text.starts_with("warning")));
        assert_eq!(words(GIB, GIB), None);
    }
}
