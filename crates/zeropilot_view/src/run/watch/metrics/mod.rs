//! A run and its machine in OpenMetrics' text format, for Prometheus and its relatives.

mod families;

use std::fmt::Write as _;

use zeropilot_record::{GpuUse, Setup};
use zeropilot_text::Language;

use self::families::{Family, GPUS, HOST, INFO, RANKS, RESTARTS, RUN};
use super::machine::MachineLook;
use super::{Look, RankState};
use crate::strategy_words;

/// What a server says of it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page that is scraped.
pub fn page(run: Option<&Look>, machine: &MachineLook, language: Language) -> String {
    let mut page = Page { text: String::new(), language };
    if let Some(look) = run {
        let strategy =
            look.digest.attempt.as_ref().map_or(String::new(), |(_, strategy)| label(strategy));
        let host = look.info.host.as_deref().unwrap_or_default();
        let job = look.info.node.as_ref().map_or("", |node| node.job.as_str());
        let labels = [
            ("id", look.info.id.as_str()),
            ("strategy", &strategy),
            ("host", host),
            ("training_job", job),
        ];
        page.head(&INFO, "info");
        page.sample("zeropilot_run_info", &labels, 1.0);
        if let Some((attempt, _)) = &look.digest.attempt {
            page.head(&RESTARTS, "counter");
            let restarts = f64::from(attempt.saturating_sub(1));
            page.sample("zeropilot_run_restarts_total", &[], restarts);
        }
        for (family, value) in &RUN {
            page.gauge(family, value(look).map(|value| (Vec::new(), value)));
        }
        page.ranks(look);
    }
    page.gpus(machine.gpus.as_deref().unwrap_or_default());
    for (family, value) in &HOST {
        page.gauge(family, machine.memory.as_ref().map(|memory| (Vec::new(), value(memory))));
    }
    page.text.push_str("# EOF\n");
    page.text
}

/// A label does not depend on the language: queries match on it.
fn label(setup: &Setup) -> String {
    match setup {
        Setup::AsGiven => String::new(),
        Setup::Strategy(strategy) => strategy_words(strategy, Language::English),
        Setup::Text(text) => text.clone(),
    }
}

struct Page {
    text: String,
    language: Language,
}

type Labels<'a> = Vec<(&'a str, &'a str)>;

impl Page {
    fn ranks(&mut self, look: &Look) {
        let ranks: Vec<(String, &RankState)> =
            look.digest.ranks.iter().map(|(rank, state)| (rank.to_string(), state)).collect();
        for (family, value) in &RANKS {
            let samples = ranks.iter().filter_map(|(rank, state)| {
                Some((vec![("rank", rank.as_str())], value(state)? as f64))
            });
            self.gauge(family, samples);
        }
    }

    fn gpus(&mut self, gpus: &[GpuUse]) {
        let indices: Vec<String> = gpus.iter().map(|gpu| gpu.index.to_string()).collect();
        for (family, value) in &GPUS {
            let samples = gpus.iter().zip(&indices).filter_map(|(gpu, index)| {
                Some((vec![("gpu", index.as_str()), ("name", gpu.name.as_str())], value(gpu)?))
            });
            self.gauge(family, samples);
        }
    }

    /// One family with its samples; nothing if there are none.
    fn gauge<'a>(&mut self, family: &Family, samples: impl IntoIterator<Item = (Labels<'a>, f64)>) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        self.head(family, "gauge");
        for (labels, value) in samples {
            self.sample(family.name, &labels, value);
        }
    }

    fn head(&mut self, family: &Family, kind: &str) {
        let name = family.name;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if let Some(unit) = family.unit() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(family.help.get(self.language)));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
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

#[cfg(test)]
mod tests {
    use zeropilot_record::{Event, NodeOf, RankMemory, RunEvent, RunInfo, Saved};

    use super::super::Digest;
    use super::super::machine::HostMemory;
    use super::*;

    fn both() -> (Look, MachineLook) {
        let strategy = Setup::AsGiven;
        let events = [
            RunEvent::AttemptStarted { attempt: 3, strategy, pid: 1 },
            RunEvent::Step { step: 3, loss: Some(2.5) },
            RunEvent::Memory { ranks: vec![RankMemory { rank: 0, rss: 7 }] },
        ]
        .map(|happening| Event::new(4.0, happening));
        let node = Some(NodeOf { job: "10.0.0.1:29500".to_owned(), node: Some(1), nodes: 2 });
        let id = "a\"b\\c\nd".to_owned();
        let info = RunInfo { id, host: Some("node1".to_owned()), node, ..RunInfo::default() };
        let digest = Digest::of(&events);
        let (verdict, host, job) = (None, None, None);
        let checkpoint =
            Some(Saved { step: 20, path: "/out/global_step20".to_owned(), at: Some(7.5) });
        let look =
            Look { info, verdict, is_running: true, now: 9.0, digest, host, checkpoint, job };
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
                        let ends = ["", "_info", "_total"].map(|end| format!("{own}{end}"));
                        assert!(ends.iter().any(|end| name == end), "{line}");
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
        let info = r#"zeropilot_run_info{id="a\"b\\c\nd",strategy="",host="node1",training_job="10.0.0.1:29500"} 1"#;
        assert!(page.contains(info), "{page}");
        // The third start is the second restart.
        assert!(page.contains("# TYPE zeropilot_run_restarts counter\n"), "{page}");
        assert!(page.contains("\nzeropilot_run_restarts_total 2\n"), "{page}");
        assert!(page.contains("\nzeropilot_run_last_checkpoint_timestamp_seconds 7.5\n"), "{page}");
        assert!(page.contains("\nzeropilot_run_last_checkpoint_step 20\n"), "{page}");
        assert!(page.contains("zeropilot_rank_resident_memory_bytes{rank=\"0\"} 7\n"), "{page}");
        assert!(
            page.contains("zeropilot_gpu_utilization_ratio{gpu=\"1\",name=\"NVIDIA L40S\"} 0.5\n")
        );
        assert!(!page.contains("power_watts"), "what is not known is not there");
    }
}
