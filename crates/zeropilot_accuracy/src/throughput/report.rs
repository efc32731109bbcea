//! The part of `docs/accuracy.md` about throughput.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use zeropilot_step::conformal::median;

use super::calibration::{Calibration, Constants, calibrate};
use super::order::order;
use super::run::{Engine, Run, Unasked};
use super::{Judged, judge};

/// Everything about throughput.
pub fn report(runs: &[Run], unasked: &[Unasked]) -> String {
    let judged = judge(runs);
    let mut text = String::from(
        "# Throughput\n\n\
         The error is the predicted number of tokens per second and GPU, divided by the published number, minus \
         one. Some constants are fitted, because no data sheet contains them. Examples are the fraction of the \
         best matrix rate that a model reaches, and the time that the host needs for a kernel. For each source, we \
         use constants that are fitted to the other sources only.\n\n",
    );
    overall(&mut text, &judged);
    by_source(&mut text, &judged);
    constants(&mut text, runs);
    not_asked(&mut text, unasked);
    every_row(&mut text, &judged);
    text
}

fn line(text: &mut String, name: &str, judged: &[Judged<'_>]) {
    let errors: Vec<f64> = judged.iter().map(Judged::error).collect();
    let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    let (Some(middle), Some(error)) = (median(absolute.clone()), median(errors.clone())) else {
        return;
    };
    let share = |count: usize| count as f64 / judged.len() as f64 * 100.0;
    let within = absolute.iter().filter(|error| **error <= 0.15).count();
    let bounded = judged.iter().filter(|judged| judged.is_within_bounds()).count();
    let pairs = order(judged);
    let right = pairs
        .share()
        .map_or(String::new(), |share| format!("{:.0} % of {}", share * 100.0, pairs.pairs));
    let _ = writeln!(
        text,
        "| {name} | {} | {:.1} % | {:+.1} % | {:.0} % | {:.0} % | {right} |",
        judged.len(),
        middle * 100.0,
        error * 100.0,
        share(within),
        share(bounded)
    );
}

fn heading(text: &mut String, what: &str) {
    let _ = writeln!(
        text,
        "| {what} | count | median absolute error | median error | within 15 % | within bounds | pairs in order |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
}

fn overall(text: &mut String, judged: &[Judged<'_>]) {
    let those = |holds: fn(&Run) -> bool| -> Vec<Judged<'_>> {
        judged.iter().filter(|judged| holds(judged.run)).copied().collect()
    };
    heading(text, "rows");
    line(text, "all compared runs", judged);
    line(text, "dense pre-training", &those(Run::is_pretraining));
    line(text, "DeepSpeed", &those(|run| run.engine == Engine::DeepSpeed));
    line(text, "more than one node", &those(|run| run.cluster.gpus.layout.nodes > 1));
    line(
        text,
        "optimizer on the host",
        &those(|run| run.row.offload_optimizer.as_deref() == Some("cpu")),
    );
    text.push_str(
        "\nA pair is two runs with the same source, model, GPU and number of GPUs whose speeds differ by more than \
         10%. A pair is in order if the predicted order is the same.\n\n",
    );
}

fn sources<'r>(judged: &[Judged<'r>]) -> BTreeMap<&'static str, Vec<Judged<'r>>> {
    let mut sources: BTreeMap<&str, Vec<Judged<'_>>> = BTreeMap::new();
    for one in judged {
        sources.entry(one.run.source()).or_default().push(*one);
    }
    sources
}

fn by_source(text: &mut String, judged: &[Judged<'_>]) {
    text.push_str("## Throughput by source\n\n");
    heading(text, "source");
    for (source, judged) in sources(judged) {
        line(text, &format!("`{source}`"), &judged);
    }
    text.push('\n');
}

fn constants(text: &mut String, runs: &[Run]) {
    let all: Vec<&Run> = runs.iter().collect();
    let (fitted, shipped) = (calibrate(&all), Constants::shipped());
    text.push_str(
        "## Constants\n\nzeropilot uses the constants of recent software, which include its factor.\n\n",
    );
    text.push_str("| constant | used | fitted to all sources |\n| --- | ---: | ---: |\n");
    for constant in Calibration::ALL {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            name(constant),
            shown(constant, shipped.get(constant)),
            shown(constant, fitted.get(constant))
        );
    }
    text.push('\n');
}

fn name(constant: Calibration) -> &'static str {
    match constant {
        Calibration::AmpereProducts => "products on Ampere and Ada, fraction of the best rate",
        Calibration::HopperProducts => "products on Hopper and newer, fraction of the best rate",
        Calibration::VoltaProducts => "products on Volta, fraction of the best rate",
        Calibration::Attention => "attention, multiple of the published fraction",
        Calibration::Memory => "memory bandwidth, fraction of its peak",
        Calibration::Kernel => "host time per kernel",
        Calibration::LastWave => "last wave of a matrix product, elements of the result",
        Calibration::Hook => "host time for the hooks of a module",
        Calibration::HostUpdates => "optimizer on the host, multiple of the usual time",
        Calibration::Recent => "software from 2024 or later, multiple of the earlier speed",
    }
}

fn shown(constant: Calibration, value: f64) -> String {
    match constant {
        Calibration::LastWave => format!("{:.2} million", value / 1e6),
        Calibration::Kernel | Calibration::Hook => format!("{:.0} µs", value * 1e6),
        _ => format!("{value:.2}"),
    }
}

fn not_asked(text: &mut String, unasked: &[Unasked]) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (row, reason) in unasked {
        reasons.entry(reason).or_default().push(row.prefix());
    }
    text.push_str(
        "## Throughputs not compared\n\n| reason | rows | sources |\n| --- | ---: | --- |\n",
    );
    for (reason, mut prefixes) in reasons {
        let count = prefixes.len();
        prefixes.sort_unstable();
        prefixes.dedup();
        let _ = writeln!(text, "| {reason} | {count} | {} |", prefixes.join(", "));
    }
    text.push('\n');
}

fn every_row(text: &mut String, judged: &[Judged<'_>]) {
    text.push_str("## Every row of throughput\n\n");
    for (source, judged) in sources(judged) {
        let Some(first) = judged.first() else { continue };
        let _ = write!(
            text,
            "### {source}: throughput\n\n{}\n\n\
             | row | model | GPUs | run | tokens/s/GPU | predicted | bounds | error | differs |\n\
             | --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n",
            first.run.row.source
        );
        for one in &judged {
            row(text, one);
        }
        text.push('\n');
    }
}

fn row(text: &mut String, judged: &Judged<'_>) {
    let (run, row) = (judged.run, judged.run.row);
    let mut how = format!(
        "stage {}, {} × {} × {}",
        row.zero_stage.unwrap_or(0),
        row.micro_batch.unwrap_or(1),
        row.seq_len.unwrap_or(0),
        run.program.accumulation
    );
    if run.program.manners.parameters_on_host {
        how.push_str(", all on host");
    } else if row.offload_optimizer.as_deref() == Some("cpu") {
        how.push_str(", optimizer on host");
    }
    let _ = writeln!(
        text,
        "| {} | {} | {} | {how} | {:.0} | {:.0} | {:.0}–{:.0} | {:+.1} % | {} |",
        row.id,
        row.model,
        run.cluster.gpus,
        run.measured,
        judged.predicted,
        judged.bounds.0,
        judged.bounds.1,
        judged.error() * 100.0,
        run.differences.join("; ")
    );
}
