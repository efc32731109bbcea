//! The job as it is written, beside what is recommended.

use zeropilot_ask::AsWritten;
use zeropilot_text::{Language, tr};

use crate::memory::{fit_of, headline};
use crate::simulate::human::duration;

/// "The job as written: ZeRO-2, bf16, …: 61.0 GiB, fits; 3.2 s per step."
pub(super) fn words(current: &AsWritten, language: Language) -> String {
    let question = current.job.question();
    let answer = &current.answer;
    let head = headline(&current.job.name, &question, language);
    let (memory, step) =
        (answer.device().expected(), duration(current.time.expected.total, language));
    let micro = question.micro_batch;
    match fit_of(answer, current.job.cluster()).map(|fit| fit.words(language)) {
        Some(fit) => tr!(
            language,
            "\nThe job as written: {head}, micro-batch size {micro}: {memory} on each GPU, {fit}; {step} per step.\n",
            "\n任务现有的设置：{head}，micro batch {micro}：每卡 {memory}，{fit}；每步 {step}。\n"
        ),
        None => tr!(
            language,
            "\nThe job as written: {head}, micro-batch size {micro}: {memory} on each GPU; {step} per step.\n",
            "\n任务现有的设置：{head}，micro batch {micro}：每卡 {memory}；每步 {step}。\n"
        ),
    }
}
