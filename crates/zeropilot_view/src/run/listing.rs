//! Recorded runs as a list, for people and for machines.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;
use zeropilot_record::{Cause, RunInfo, TrainedStep, Verdict};
use zeropilot_text::{Language, Text, tr};

use super::ending::loss_words;
use super::nodes::{self, JobLook};
use super::{cause_words, clock};
use crate::escaped;

/// A run in a list.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// What was asked for.
    pub info: &'a RunInfo,
    /// What became of it.
    pub verdict: Option<&'a Verdict>,
    /// Whether its supervisor lives.
    pub is_running: bool,
    /// The last step in its record.
    pub last: Option<TrainedStep>,
    /// The moment, in seconds since 1970.
    pub now: f64,
}

/// What became of a run, or that it runs.
pub(super) fn state(verdict: Option<&Verdict>, is_running: bool, language: Language) -> String {
    match verdict {
        Some(verdict) => cause_words(&verdict.cause, language),
        None if is_running => tr!(language, "running", "运行中"),
        None => tr!(
            language,
            "lost: the supervising process is no longer running",
            "已丢失：监督进程已退出"
        ),
    }
}

impl Row<'_> {
    /// The step that it came to, and of how many.
    fn steps(&self) -> (Option<u64>, Option<u64>) {
        let (step, total) = self.verdict.map_or((None, None), Verdict::steps);
        (step.or(self.last.map(|last| last.step)), total.or(self.info.total_steps))
    }

    fn loss(&self) -> Option<f64> {
        self.verdict.and_then(Verdict::last_loss).or(self.last.and_then(|last| last.loss))
    }

    /// Seconds that it took, or takes until now; of a lost one, until its last step.
    fn seconds(&self) -> Option<f64> {
        let until = match (self.verdict, self.is_running) {
            (Some(Verdict { seconds: Some(seconds), .. }), _) => return Some(*seconds),
            (Some(verdict), _) => verdict.ended_at,
            (None, true) => self.now,
            (None, false) => self.last?.at,
        };
        Some((until - self.info.started_at).max(0.0))
    }

    /// What is known, in the order of the heads.
    fn cells(&self, language: Language) -> [String; COLUMNS] {
        let unknown = || "-".to_owned();
        let step = match self.steps() {
            (None, None) => unknown(),
            (Some(step), None) => step.to_string(),
            (None, Some(total)) => format!("-/{total}"),
            (Some(step), Some(total)) => format!("{step}/{total}"),
        };
        let seconds = self.seconds();
        [
            escaped(&self.info.id).into_owned(),
            state(self.verdict, self.is_running, language),
            step,
            self.loss().map_or_else(unknown, loss_words),
            seconds.map_or_else(unknown, |seconds| clock(seconds as u64)),
            self.verdict.map_or_else(unknown, |verdict| verdict.exit_code.to_string()),
            self.info.host.as_deref().map_or_else(unknown, |host| escaped(host).into_owned()),
            escaped(&shortened(&self.info.command.join(" "), 60)).into_owned(),
        ]
    }
}

const COLUMNS: usize = 8;

const HEADS: [Text; COLUMNS] = [
    Text::new("run", "运行"),
    Text::new("state", "状态"),
    Text::new("step", "步数"),
    Text::new("loss", "loss"),
    Text::new("time", "用时"),
    Text::new("exit", "退出码"),
    Text::new("host", "机器"),
    Text::new("command", "命令"),
];

/// A list of runs for people. Runs on the nodes of one job are below it.
pub fn list(rows: &[Row<'_>], jobs: &[JobLook], language: Language) -> String {
    if rows.is_empty() {
        return tr!(
            language,
            "no runs yet; `zeropilot run -- COMMAND` starts and records one\n",
            "还没有运行记录；用 `zeropilot run -- 启动命令` 启动训练就会留下记录\n"
        );
    }
    let heads = HEADS.map(|head| head.get(language).to_owned());
    let cells: Vec<[String; COLUMNS]> = rows.iter().map(|row| row.cells(language)).collect();
    let all = || cells.iter().chain(std::iter::once(&heads));
    let width = |column: usize| all().map(|cells| cells[column].width()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let line = |cells: &[String; COLUMNS]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| {
            format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
        });
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(&heads);
    let mut listed = vec![false; rows.len()];
    for index in 0..rows.len() {
        if std::mem::replace(&mut listed[index], true) {
            continue;
        }
        let id = &rows[index].info.id;
        let is_of = |job: &&JobLook| job.members.iter().any(|node| node.id == *id);
        let Some(job) = jobs.iter().find(is_of) else {
            text.push_str(&line(&cells[index]));
            continue;
        };
        text.push_str(&format!("{}\n", nodes::head(job, language)));
        for node in &job.members {
            let Some(member) = rows.iter().position(|row| row.info.id == node.id) else { continue };
            listed[member] = true;
            text.push_str(&format!("  {}", line(&cells[member])));
        }
    }
    text
}

/// A text of so many characters at most, the last of which says that there is more.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// A list of runs for machines.
pub fn list_json(rows: &[Row<'_>], jobs: &[JobLook]) -> Value {
    let row = |row: &Row<'_>| {
        let is_of = |job: &&JobLook| job.members.iter().any(|node| node.id == row.info.id);
        let (step, total_steps) = row.steps();
        json!({
            "id": row.info.id,
            "state": match (row.verdict, row.is_running) {
                (Some(_), _) => "ended",
                (None, true) => "running",
                (None, false) => "lost",
            },
            "cause": row.verdict.map(|verdict| Cause::name(&verdict.cause)),
            "exit_code": row.verdict.map(|verdict| verdict.exit_code),
            "step": step,
            "total_steps": total_steps,
            "loss": row.loss().filter(|loss| loss.is_finite()),
            "seconds": row.seconds(),
            "host": row.info.host,
            "run": row.info,
            "verdict": row.verdict,
            "job": jobs.iter().find(is_of).map(nodes::json),
        })
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(shortened("torchrun", 8), "torchrun");
        assert_eq!(shortened("torchrun t", 8), "torchru…");
    }

    #[test]
    fn a_row_has_how_far_a_run_came_and_where() {
        let info = RunInfo {
            id: "a".to_owned(),
            started_at: 100.0,
            host: Some("node1".to_owned()),
            total_steps: Some(50),
            command: vec!["torchrun".to_owned()],
            ..RunInfo::default()
        };
        let last =
            Some(TrainedStep { at: 130.0, step: 7, loss: Some(2.5), ..TrainedStep::default() });
        let row = |verdict, is_running| Row { info: &info, verdict, is_running, last, now: 161.0 };
        let words = |row: Row<'_>| {
            let text = list(&[row], &[], Language::English);
            let line = text.lines().nth(1).expect("a line").to_owned();
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let running = ["a", "running", "7/50", "2.5000", "1:01", "-", "node1", "torchrun"];
        assert_eq!(words(row(None, true)), running);
        assert_eq!(words(row(None, false))[4], "0:30", "until its last step");
        let end = Verdict::new("a", Cause::DiskFull, Vec::new(), 200.0).after(9.0);
        let ended = words(row(Some(&end), false));
        assert_eq!(ended[1..6], ["a disk is full", "7/50", "2.5000", "0:09", "17"]);
    }
}
