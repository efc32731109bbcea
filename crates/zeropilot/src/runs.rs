//! `zeropilot runs` and `zeropilot report`: what was recorded.

use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_record::RunEvent;
use zeropilot_run::{JobRecords, Record, Standing, jobs, now};
use zeropilot_text::Language;
use zeropilot_view::run::nodes::{JobLook, NodeLook};
use zeropilot_view::run::report::{Page, page};
use zeropilot_view::run::{self as words, Row};
use zeropilot_view::{Format, talk};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;
use crate::records::{home, named_or_home};

/// The arguments of `zeropilot runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsCommand {
    /// Read the records in this directory; if omitted, in ZEROPILOT_RUNS or the user's state directory
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

/// The arguments of `zeropilot report`.
#[derive(Debug, Args)]
pub(crate) struct ReportCommand {
    /// Name or directory of a run; if omitted, the last run
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Write the report to this file; if omitted, `report.html` in the record
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Lists runs.
pub(crate) fn list(
    command: &RunsCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let mut output = Output::new(layout(Format::Human, global, language).color);
    let home = match named_or_home(command.runs.as_deref(), language) {
        Ok(home) => home,
        Err(problem) => {
            output.say(&problem);
            return ExitStatus::Failure;
        }
    };
    let records = Record::list(&home);
    let row = |record: &'_ Record| record.standing() == Standing::Running;
    let running: Vec<bool> = records.iter().map(row).collect();
    let rows: Vec<Row<'_>> = records
        .iter()
        .zip(running)
        .map(|(record, is_running)| Row {
            info: &record.info,
            verdict: record.verdict.as_ref(),
            is_running,
            last: record.last_step(),
            now: now(),
        })
        .collect();
    let jobs: Vec<JobLook> = jobs(&records).iter().map(|job| job_look(&records, job)).collect();
    output.result(&if command.format.is_json() {
        format!("{:#}\n", words::list_json(&rows, &jobs))
    } else {
        words::list(&rows, &jobs, language)
    });
    output.flush();
    ExitStatus::Clean
}

fn job_look(records: &[Record], job: &JobRecords) -> JobLook {
    let member = |index: &usize| {
        let Record { info, verdict, .. } = &records[*index];
        NodeLook {
            id: info.id.clone(),
            node: info.node.as_ref().and_then(|of| of.node),
            host: info.host.clone(),
            cause: verdict.as_ref().map(|verdict| verdict.cause.clone()),
            is_running: records[*index].standing() == Standing::Running,
        }
    };
    JobLook {
        job: job.job.clone(),
        nodes: job.nodes,
        members: job.members.iter().map(member).collect(),
        failed_first: job.failed_first,
    }
}

/// The job that a run is a part of, as far as records of its nodes lie in one directory.
pub(crate) fn job_of(record: &Record) -> Option<JobLook> {
    let records = Record::list(&home());
    let is_own = |index: &usize| records[*index].info.id == record.info.id;
    let jobs = jobs(&records);
    let job = jobs.iter().find(|job| job.members.iter().any(is_own))?;
    Some(job_look(&records, job))
}

/// Writes the page of a run.
pub(crate) fn report(
    command: &ReportCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let mut output = Output::new(layout(Format::Human, global, language).color);
    let written = find(command.run.as_deref(), language).and_then(|record| {
        let unreadable = |error| talk::cannot_read(&record.directory, error, language);
        let events: Vec<_> = record.events().map_err(unreadable)?.collect();
        // Of a run that was lost, the events know how far it came.
        let started = events.iter().filter_map(|event| match event.happening {
            RunEvent::AttemptStarted { attempt, .. } => Some(attempt),
            _ => None,
        });
        let tail = record.tail(started.max().unwrap_or(1));
        let page = page(
            &Page {
                info: &record.info,
                verdict: record.verdict.as_ref(),
                events: &events,
                tail: &tail,
                is_lost: record.standing() == Standing::Lost,
            },
            language,
        );
        let path = command.output.clone().unwrap_or_else(|| record.directory.join("report.html"));
        std::fs::write(&path, page).map_err(|error| talk::cannot_write(&path, &error, language))?;
        Ok(path)
    });
    match written {
        Ok(path) => {
            output.result(&format!("{}\n", path.display()));
            output.flush();
            ExitStatus::Clean
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

/// A run by its name or directory, or the last one.
pub(crate) fn find(run: Option<&Path>, language: Language) -> Result<Record, String> {
    let found = match run {
        None => Record::list(&home()).into_iter().next(),
        Some(run) => Record::open(run).ok().or_else(|| Record::named(&home(), run.as_os_str())),
    };
    found.ok_or_else(|| match run {
        Some(run) => words::no_such_run(&run.display().to_string(), language),
        None => words::no_runs_yet(&home().display().to_string(), language),
    })
}
