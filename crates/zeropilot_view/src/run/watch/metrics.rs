//! A run and its machine in OpenMetrics' text format, for Prometheus and its relatives.

use std::fmt::Write as _;

use zeropilot_lint::{Language, Text};
use zeropilot_record::GpuUse;

use super::machine::MachineLook;
use super::{Look, RankState};

/// What a server says of it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric: its name, whose end is the unit if there is one; the unit; what it says.
struct Family {
    name: &'static str,
    unit: &'static str,
    help: Text,
}

struct Page {
    text: String,
    language: Language,
}

type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// One family with its samples; nothing if there are none.
    fn gauge<'a>(&mut self, family: &Family, samples: impl IntoIterator<Item = (Labels<'a>, f64)>) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        self.head(family, "gauge");
        for (labels, value) in samples {
            self.sample(family.name, labels, value);
        }
    }

    fn head(&mut self, family: &Family, kind: &str) {
        let Family { name, unit, help } = family;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help.get(self.language)));
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const fn family(
    name: &'static str,
    unit: &'static str,
    en: &'static str,
    zh: &'static str,
) -> Family {
    Family { name, unit, help: Text::new(en, zh) }
}

/// The page that is scraped.
pub fn page(run: Option<&Look>, machine: &MachineLook, language: Language) -> String {
    let mut page = Page { text: String::new(), language };
    if let Some(look) = run {
        of_run(look, &mut page);
        of_ranks(look, &mut page);
    }
    let gpus = machine.gpus.as_deref().unwrap_or_default();
    of_gpus(gpus, &mut page);
    let memory = machine.memory.iter();
    page.gauge(
        &family("zeropilot_host_memory_bytes", "bytes", "Memory of the machine.", "主机内存总量。"),
        memory.clone().map(|memory| (&[][..], memory.total as f64)),
    );
    page.gauge(
        &family(
            "zeropilot_host_memory_available_bytes",
            "bytes",
            "Memory of the machine that programs can still have.",
            "主机可用内存。",
        ),
        memory.map(|memory| (&[][..], memory.available as f64)),
    );
    page.text.push_str("# EOF\n");
    page.text
}

fn of_run(look: &Look, page: &mut Page) {
    let digest = &look.digest;
    let rung = digest.attempt.as_ref().map_or("", |(_, rung)| rung);
    page.head(&family("zeropilot_run", "", "The run.", "这次运行。"), "info");
    page.sample("zeropilot_run_info", &[("id", &look.info.id), ("rung", rung)], 1.0);
    let attempt = digest.attempt.as_ref().map(|(number, _)| f64::from(*number));
    let exit_code = look.verdict.as_ref().map(|verdict| f64::from(verdict.exit_code));
    for (family, value) in [
        (
            family("zeropilot_run_running", "", "1 while it runs.", "运行中为 1。"),
            Some(f64::from(u8::from(look.is_running))),
        ),
        (
            family(
                "zeropilot_run_exit_code",
                "",
                "How it ended (docs/run.md).",
                "退出码（见 docs/run.md）。",
            ),
            exit_code,
        ),
        (
            family("zeropilot_run_elapsed_seconds", "seconds", "Since its start.", "已运行时间。"),
            Some(look.elapsed() as f64),
        ),
        (
            family(
                "zeropilot_run_remaining_seconds",
                "seconds",
                "Until the last step, as things go.",
                "按当前速度的剩余时间。",
            ),
            look.remaining(),
        ),
        (
            family(
                "zeropilot_run_attempt",
                "",
                "Starts of the command so far.",
                "命令第几次启动。",
            ),
            attempt,
        ),
        (
            family(
                "zeropilot_run_step",
                "",
                "The last optimizer step.",
                "最近一次优化器更新的步数。",
            ),
            digest.step.map(|step| step as f64),
        ),
        (
            family("zeropilot_run_total_steps", "", "Optimizer steps there will be.", "总步数。"),
            look.total_steps().map(|steps| steps as f64),
        ),
        (family("zeropilot_run_loss", "", "The last loss.", "最近的 loss。"), digest.losses.last()),
        (
            family(
                "zeropilot_run_steps_per_second",
                "",
                "Optimizer steps in a second.",
                "每秒步数。",
            ),
            digest.rates.last(),
        ),
        (
            family(
                "zeropilot_run_tokens_per_second",
                "",
                "Tokens in a second over all ranks, full sequences assumed unless the log has them.",
                "所有 rank 每秒的 token 数；日志未给出时按满长序列计算。",
            ),
            digest.tokens_per_second,
        ),
        (
            family(
                "zeropilot_run_predicted_memory_bytes",
                "bytes",
                "What was predicted for a GPU.",
                "单卡显存预测值。",
            ),
            look.info.predicted.map(|bytes| bytes as f64),
        ),
    ] {
        page.gauge(&family, value.map(|value| (&[][..], value)));
    }
}

fn of_ranks(look: &Look, page: &mut Page) {
    let ranks: Vec<(String, &RankState)> =
        look.digest.ranks.iter().map(|(rank, state)| (rank.to_string(), state)).collect();
    let labels: Vec<[(&str, &str); 1]> =
        ranks.iter().map(|(rank, _)| [("rank", rank.as_str())]).collect();
    let mut each = |family: Family, value: fn(&RankState) -> Option<u64>| {
        let samples = ranks
            .iter()
            .zip(&labels)
            .filter_map(|((_, state), labels)| Some((&labels[..], value(state)? as f64)));
        page.gauge(&family, samples);
    };
    each(
        family(
            "zeropilot_rank_resident_memory_bytes",
            "bytes",
            "Resident memory of a rank.",
            "rank 进程的常驻内存。",
        ),
        |state| Some(state.resident.now),
    );
    each(
        family(
            "zeropilot_rank_resident_memory_peak_bytes",
            "bytes",
            "Its most in this attempt.",
            "本次运行中的峰值。",
        ),
        |state| Some(state.resident.peak),
    );
    each(
        family(
            "zeropilot_rank_gpu_memory_bytes",
            "bytes",
            "What a rank holds of its GPU.",
            "rank 占用的显存。",
        ),
        |state| state.gpu.map(|(_, level)| level.now),
    );
    each(
        family(
            "zeropilot_rank_gpu_memory_peak_bytes",
            "bytes",
            "Its most in this attempt.",
            "本次运行中的峰值。",
        ),
        |state| state.gpu.map(|(_, level)| level.peak),
    );
}

fn of_gpus(gpus: &[GpuUse], page: &mut Page) {
    let indices: Vec<String> = gpus.iter().map(|gpu| gpu.index.to_string()).collect();
    let labels: Vec<[(&str, &str); 2]> = gpus
        .iter()
        .zip(&indices)
        .map(|(gpu, index)| [("gpu", index.as_str()), ("name", gpu.name.as_str())])
        .collect();
    let mut each = |family: Family, value: fn(&GpuUse) -> Option<f64>| {
        let samples = gpus.iter().zip(&labels);
        page.gauge(&family, samples.filter_map(|(gpu, labels)| Some((&labels[..], value(gpu)?))));
    };
    each(
        family("zeropilot_gpu_memory_bytes", "bytes", "Memory of a GPU.", "显存总量。"),
        |gpu| Some(gpu.total as f64),
    );
    each(
        family(
            "zeropilot_gpu_memory_used_bytes",
            "bytes",
            "Memory of a GPU that is taken.",
            "已用显存。",
        ),
        |gpu| Some(gpu.used as f64),
    );
    each(
        family(
            "zeropilot_gpu_utilization_ratio",
            "ratio",
            "Share of the last moments in which a kernel ran.",
            "GPU 利用率。",
        ),
        |gpu| gpu.utilization.map(|percent| f64::from(percent) / 100.0),
    );
    each(
        family("zeropilot_gpu_power_watts", "watts", "What a GPU draws.", "GPU 功耗。"),
        |gpu| gpu.watts,
    );
    each(
        family("zeropilot_gpu_temperature_celsius", "celsius", "How warm a GPU is.", "GPU 温度。"),
        |gpu| gpu.celsius.map(f64::from),
    );
}

#[cfg(test)]
mod tests {
    use zeropilot_record::{Event, Happening, RankMemory, RunInfo};

    use super::super::Digest;
    use super::super::machine::HostMemory;
    use super::*;

    fn both() -> (Look, MachineLook) {
        let events = [
            Happening::Step { step: 3, loss: Some(2.5) },
            Happening::Memory { ranks: vec![RankMemory { rank: 0, rss: 7 }] },
        ]
        .map(|happening| Event::new(4.0, happening));
        let info = RunInfo { id: "a\"b\\c\nd".to_owned(), ..RunInfo::default() };
        let digest = Digest::of(&events);
        let look = Look { info, verdict: None, is_running: true, now: 9.0, digest, host: None };
        let gpu = GpuUse {
            index: 1,
            name: "NVIDIA L40S".to_owned(),
            used: 5,
            total: 10,
            utilization: Some(50),
            watts: None,
            celsius: Some(60),
            processes: Vec::new(),
        };
        let memory = Some(HostMemory { total: 100, available: 40 });
        (look, MachineLook { gpus: Ok(vec![gpu]), memory, processes: Vec::new() })
    }

    #[test]
    fn the_page_keeps_the_rules_of_the_format() {
        let (look, machine) = both();
        for language in [Language::English, Language::Chinese] {
            let page = page(Some(&look), &machine, language);
            assert!(page.ends_with("\n# EOF\n"), "{page}");
            let mut described: Vec<&str> = Vec::new();
            for line in page.lines().filter(|line| *line != "# EOF") {
                let words: Vec<&str> = line.splitn(4, ' ').collect();
                match words[..] {
                    ["#", "TYPE", name, _] => {
                        assert!(!described.contains(&name), "{name} stands in one place");
                        described.push(name);
                    }
                    ["#", "UNIT", name, unit] => assert!(name.ends_with(&format!("_{unit}"))),
                    ["#", "HELP", name, _] => assert_eq!(described.last(), Some(&name)),
                    _ => {
                        let name = line.split(['{', ' ']).next().unwrap_or_default();
                        let own = *described.last().expect("a family");
                        assert!(name == own || name == format!("{own}_info"), "{line}");
                        let value = line.rsplit(' ').next().unwrap_or_default();
                        assert!(value.parse::<f64>().is_ok(), "{line}");
                    }
                }
            }
        }
    }

    #[test]
    fn labels_cannot_break_out() {
        let (look, machine) = both();
        let page = page(Some(&look), &machine, Language::English);
        assert!(page.contains(r#"zeropilot_run_info{id="a\"b\\c\nd",rung=""} 1"#), "{page}");
        assert!(page.contains("zeropilot_rank_resident_memory_bytes{rank=\"0\"} 7\n"), "{page}");
        assert!(
            page.contains("zeropilot_gpu_utilization_ratio{gpu=\"1\",name=\"NVIDIA L40S\"} 0.5\n")
        );
        assert!(!page.contains("power_watts"), "what is not known is not there");
    }
}
