//! The judgement as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use zeropilot_step::conformal::SHARE;

use crate::interval::{Bounds, calibrate};
use crate::judgement::{Judged, Judgement};
use crate::measured::Metric;
use crate::question::Question;
use crate::row::Outcome;
use crate::statistics::{Fits, Statistics};

/// `docs/accuracy.md`.
pub fn report(judgement: &Judgement<'_>) -> String {
    let mut text = String::from(
        "# Accuracy\n\n\
         <!-- Written by `cargo run -p zeropilot_accuracy`; do not edit. -->\n\n\
         This page compares memory predictions with published measurements of real GPUs (`knowledge/field`). The \
         error is the predicted value divided by the measured value, minus one. Both values are of the same kind: \
         allocated or reserved memory of the fullest GPU. If the source does not state the kind, we predict the \
         memory that the driver shows. No constant is fitted to these rows.\n\n\
         In some runs, samples have many lengths. Each length leaves blocks in PyTorch's cache that are too small \
         for the next one, so the reserved memory depends on the order of the samples. It is often twice the size \
         of the tensors. We simulate such runs with random lengths. The second row of the table excludes \
         them.\n\n",
    );
    overall(&mut text, judgement);
    intervals(&mut text, judgement);
    jobs(&mut text, judgement);
    by_source(&mut text, judgement);
    out_of_memory(&mut text, judgement);
    not_asked(&mut text, judgement);
    every_row(&mut text, judgement);
    text
}

fn overall(text: &mut String, judgement: &Judgement<'_>) {
    let rows = || judgement.rows.iter();
    let is_same = |judged: &&Judged<'_>| judged.question.as_ref().is_ok_and(Question::is_same);
    let of = |metric: Metric| {
        move |judged: &&Judged<'_>| judged.measured.is_some_and(|seen| seen.metric == metric)
    };
    let is_steady = |judged: &&Judged<'_>| !varies(judged);
    let groups = [
        ("all compared runs", Statistics::of(rows())),
        ("without runs whose reserved memory varies", Statistics::of(rows().filter(is_steady))),
        ("with the settings of the run", Statistics::of(rows().filter(is_same))),
        ("with similar settings", Statistics::of(rows().filter(|judged| !is_same(judged)))),
        ("allocated memory", Statistics::of(rows().filter(of(Metric::Allocated)))),
        ("reserved memory", Statistics::of(rows().filter(of(Metric::Reserved)))),
        ("kind of memory not stated", Statistics::of(rows().filter(of(Metric::Unstated)))),
    ];
    heading(text, "rows");
    for (name, statistics) in groups {
        line(text, name, statistics);
    }
    text.push('\n');
}

fn intervals(text: &mut String, judgement: &Judgement<'_>) {
    let _ = write!(
        text,
        "## Bounds\n\n\
         Each prediction has bounds that should contain {:.0}% of published runs. The bounds are quantiles of the \
         ratio of measured to predicted memory, with the same factor in both directions. To count the runs inside \
         the bounds, we compute the bounds for each run without its own source. The tables below mark runs outside \
         the bounds.\n\n\
         | runs | rows | sources | bounds | width | inside | below the upper bound |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        SHARE * 100.0
    );
    for group in &judgement.groups {
        let Bounds { low, high } = group.bounds;
        let _ = writeln!(
            text,
            "| {} | {} | {} | × {low}–{high} | {:.2} | {} | {} |",
            if group.group == "four_bit" { "adapters, 4-bit base model" } else { "all other runs" },
            group.rows,
            group.sources,
            high - low,
            share(group.inside, group.rows),
            share(group.below, group.rows)
        );
    }
    text.push('\n');
}

/// What is trained for more than the next token, as it is called.
const JOBS: [(&str, &str); 5] = [
    ("dpo", "DPO"),
    ("simpo", "SimPO"),
    ("reward", "reward model"),
    ("gkd", "GKD"),
    ("ppo", "PPO"),
];

/// Rows of preferences, PPO and distillation, and what the bounds would be with them.
fn jobs(text: &mut String, judgement: &Judgement<'_>) {
    let rows = || judgement.rows.iter().filter(|judged| judged.job().is_some());
    if rows().next().is_none() {
        return;
    }
    text.push_str(
        "## Jobs with several models\n\n\
         These runs train with preferences, PPO or distillation, and include reference, teacher and reward models. \
         Each prediction uses the loss of the trainer in the version that ran; `knowledge/field/reading.json` \
         names both. Some sources publish only a limit on the sample length. In this case, we use the longest \
         sample according to published statistics of the dataset.\n\n",
    );
    heading(text, "job");
    line(text, "all", Statistics::of(rows()));
    for (name, words) in JOBS {
        let own = rows().filter(|judged| judged.job().is_some_and(|job| job.name == name));
        line(text, words, Statistics::of(own));
    }
    let mut all = judgement.rows.clone();
    for (with, without) in calibrate(&mut all, |_| true).iter().zip(&judgement.groups) {
        if with.rows > without.rows {
            let Bounds { low, high } = with.bounds;
            let _ = write!(
                text,
                "\nThe bounds above do not use these rows, because there are only a few, most of them from one \
                 library. With these rows, the bounds would be × {low}–{high}, and {} of {} rows would be \
                 inside.\n",
                share(with.inside, with.rows),
                with.rows
            );
        }
    }
    text.push('\n');
}

fn share(count: usize, of: usize) -> String {
    format!("{count} ({:.0} %)", 100.0 * count as f64 / of.max(1) as f64)
}

/// Where sequences have many lengths, what is reserved depends on the order they come in.
fn varies(judged: &Judged<'_>) -> bool {
    let lengths = judged.question.as_ref().is_ok_and(|question| !question.lengths.is_empty());
    lengths && judged.measured.is_some_and(|seen| seen.metric != Metric::Allocated)
}

fn by_source(text: &mut String, judgement: &Judgement<'_>) {
    text.push_str("## By source\n\n");
    heading(text, "source");
    for (prefix, rows) in sources(judgement) {
        if let Some(statistics) = Statistics::of(rows.into_iter()) {
            line(text, &format!("`{prefix}`"), Some(statistics));
        }
    }
    text.push('\n');
}

fn sources<'j, 'r>(judgement: &'j Judgement<'r>) -> BTreeMap<&'r str, Vec<&'j Judged<'r>>> {
    let mut sources: BTreeMap<&str, Vec<&Judged<'_>>> = BTreeMap::new();
    for judged in &judgement.rows {
        sources.entry(judged.row.prefix()).or_default().push(judged);
    }
    sources
}

fn heading(text: &mut String, what: &str) {
    let _ = writeln!(
        text,
        "| {what} | count | median absolute error | median error | within 15 % | within bounds | worst |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
}

fn line(text: &mut String, name: &str, statistics: Option<Statistics>) {
    let _ = match statistics {
        None => writeln!(text, "| {name} | 0 | | | | | |"),
        Some(statistics) => writeln!(
            text,
            "| {name} | {} | {:.1} % | {:+.1} % | {:.0} % | {:.0} % | {:+.0} % |",
            statistics.count,
            statistics.median_absolute * 100.0,
            statistics.median * 100.0,
            statistics.within_15 * 100.0,
            statistics.within_bounds * 100.0,
            statistics.worst * 100.0
        ),
    };
}

fn out_of_memory(text: &mut String, judgement: &Judgement<'_>) {
    let fits = Fits::of(judgement.rows.iter());
    let _ = write!(
        text,
        "## Does it fit?\n\n\
         The table counts runs on GPUs whose memory is known. The predictions include all memory that the driver counts.\n\n\
         | | predicted to fit | predicted not to fit |\n| --- | ---: | ---: |\n\
         | ran | {} | {} |\n| ran out of memory | {} | {} |\n\n",
        fits.ran_as_predicted, fits.ran_against, fits.failed_against, fits.failed_as_predicted
    );
}

fn not_asked(text: &mut String, judgement: &Judgement<'_>) {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for judged in &judgement.rows {
        let reason = match (&judged.question, &judged.predicted) {
            (Err(obstacle), _) => obstacle.to_string(),
            (Ok(_), Some(Err(error))) => error.clone(),
            _ => continue,
        };
        reasons.entry(reason).or_default().push(judged.row.prefix());
    }
    text.push_str("## Runs not compared\n\n| reason | rows | sources |\n| --- | ---: | --- |\n");
    for (reason, mut prefixes) in reasons {
        let count = prefixes.len();
        prefixes.sort_unstable();
        prefixes.dedup();
        let _ = writeln!(text, "| {reason} | {count} | {} |", prefixes.join(", "));
    }
    text.push('\n');
}

fn every_row(text: &mut String, judgement: &Judgement<'_>) {
    text.push_str("## Every row\n\n");
    for rows in sources(judgement).into_values() {
        let answered: Vec<&&Judged<'_>> =
            rows.iter().filter(|row| row.answer().is_some()).collect();
        let Some(first) = answered.first() else { continue };
        let _ = write!(
            text,
            "### {}\n\n{}\n\n\
             | row | model | GPUs | run | measured | predicted | error | differs |\n\
             | --- | --- | --- | --- | ---: | ---: | ---: | --- |\n",
            first.row.prefix(),
            first.row.source
        );
        for judged in answered {
            row(text, judged);
        }
        text.push('\n');
    }
}

fn row(text: &mut String, judged: &Judged<'_>) {
    let (Ok(question), Some(predicted)) = (&judged.question, judged.answer()) else { return };
    let measured = match (judged.measured, judged.row.outcome) {
        (Some(measured), _) => {
            let kind = match measured.metric {
                Metric::Allocated => "allocated",
                Metric::Reserved => "reserved",
                Metric::Unstated => "",
            };
            format!("{:.1} GiB {kind}", measured.bytes.as_gib()).trim_end().to_owned()
        }
        (None, Outcome::Oom) => "out of memory".to_owned(),
        (None, _) => String::new(),
    };
    let compared = judged.measured.map_or(predicted.device, |seen| predicted.of(seen.metric));
    let compared = match judged.bounds {
        Some(Bounds { low, high }) => {
            let gib = compared.as_gib();
            format!("{gib:.1} GiB ({:.1}–{:.1})", gib * low, gib * high)
        }
        None => format!("{:.1} GiB", compared.as_gib()),
    };
    let outside = if judged.is_within_bounds() == Some(false) { " (outside)" } else { "" };
    let error =
        judged.error().map_or(String::new(), |error| format!("{:+.1} %{outside}", error * 100.0));
    let differs: Vec<String> = question.differences.iter().map(ToString::to_string).collect();
    let gpu = judged.row.gpu.as_deref().unwrap_or("not stated");
    let _ = writeln!(
        text,
        "| {} | {} | {} x {gpu} | {} | {measured} | {compared} | {error} | {} |",
        question.id,
        judged.row.model,
        question.ranks,
        run(judged, question),
        differs.join("; ")
    );
}

fn run(judged: &Judged<'_>, question: &Question) -> String {
    let method = judged.row.method.as_deref().unwrap_or("?");
    let mut run = format!("stage {}, {method}", question.stage);
    let mut rows = question.micro_batch;
    if let Some(job) = &question.job {
        let words = JOBS.iter().find(|(name, _)| *name == job.name).map_or("", |(_, words)| words);
        let _ = write!(run, ", {words}");
        rows *= job.objective.rows();
    }
    let _ = write!(run, ", {rows} x {} tokens", question.sequence);
    if question.checkpointing {
        run.push_str(", checkpointing");
    }
    if question.offload_optimizer {
        run.push_str(", optimizer on host");
    }
    if question.offload_parameters {
        run.push_str(", parameters on host");
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::{Predicted, judge};
    use crate::row::rows;
    use zeropilot_units::Bytes;

    #[test]
    fn every_row_is_shown_or_its_reason_is() {
        let one = Bytes(1 << 30);
        let answer = Predicted { allocated: one, reserved: one, device: one };
        let judgement = judge(rows(), &|_| Ok(answer));
        let text = report(&judgement);
        let shown = judgement.rows.iter().filter(|row| row.answer().is_some());
        for judged in shown {
            assert!(text.contains(&format!("| {} |", judged.row.id)), "{}", judged.row.id);
        }
        for judged in &judgement.rows {
            if let Err(obstacle) = &judged.question {
                assert!(text.contains(&obstacle.to_string()), "{obstacle}");
            }
        }
        // 319 complete rows, 20 that ran out of memory, and others that say why they are not complete.
        let complete = judgement.rows.iter().filter(|judged| judged.row.complete_memory).count();
        assert_eq!((complete, judgement.rows.len()), (319, 389));
    }
}
