//! A second sample of jobs, of repositories that no rule had seen: how many findings were true when they were first read.
//!
//! Everything is written in `knowledge/findings`, so that the section needs no checkout. What is found after the rules
//! were corrected is written there, too; with checkouts, that is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde::Deserialize;

use crate::job_study_page::{PAGE, percent};
use crate::jobs::{Job, JobStudy, Kind, Understanding};
use crate::labels::Verdict;

/// Where the section begins.
const TITLE: &str = "\n## Second sample: ";

/// A file of the sample.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    repository: String,
    commit: String,
    path: String,
    sha256: String,
    kind: Kind,
    /// What was understood when the findings were read.
    first: Understanding,
    /// What is understood now.
    now: Understanding,
    /// Whether a reader says that it starts DeepSpeed.
    starts_deepspeed: bool,
}

impl Seen {
    fn job(&self) -> Job {
        Job {
            repository: self.repository.clone(),
            commit: self.commit.clone(),
            path: self.path.clone(),
            sha256: self.sha256.clone(),
            kind: self.kind,
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    fn words(self) -> &'static str {
        match self {
            Self::Error => "errors",
            Self::Warning => "warnings",
            Self::Note => "notes",
        }
    }
}

/// Why findings were false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
    NoReader,
    NoWarmup,
    Exclusive,
    Devices,
    NotGiven,
    Advice,
}

impl Cause {
    const ALL: [Self; 6] = [
        Self::NoReader,
        Self::NoWarmup,
        Self::Exclusive,
        Self::Devices,
        Self::NotGiven,
        Self::Advice,
    ];

    /// What was wrong, and what was changed.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::NoReader => (
                "the program does not read the config: it takes its arguments from a fixed file, or parses no command line",
                "zeropilot reads the fixed file, or ignores the config",
            ),
            Self::NoWarmup => (
                "the job has no warmup, or does not train",
                "the rule uses the value that replaces `\"auto\"`, and skips jobs that only evaluate",
            ),
            Self::Exclusive => (
                "the two calls are in different branches of one condition",
                "the rule skips branches that exclude each other",
            ),
            Self::Devices => (
                "a hostfile or `--include` selects the GPUs, and the advice does not apply",
                "the rule skips launches with a hostfile; `--include` has its own text",
            ),
            Self::NotGiven => (
                "the config is an option that the script does not set",
                "zeropilot uses the default of the option",
            ),
            Self::Advice => (
                "the fact is true, but the advice breaks the job",
                "the advice names the other batch size key and the order of the calls",
            ),
        }
    }
}

/// A finding that was read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reading {
    job: String,
    rule: String,
    key: String,
    /// The file that it is in.
    file: String,
    severity: Severity,
    verdict: Verdict,
    reason: String,
    /// For a false one.
    cause: Option<Cause>,
    /// Whether it is found now.
    reported: bool,
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    // The files are part of the program and a test reads them.
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

fn seen() -> Vec<Seen> {
    read(include_str!("../../../knowledge/findings/second_jobs.jsonl"))
}

fn readings() -> Vec<Reading> {
    read(include_str!("../../../knowledge/findings/second_labels.jsonl"))
}

/// Writes the section into the page; with `--list` names what is found now.
pub(crate) fn run(arguments: &[String]) -> io::Result<ExitCode> {
    match std::env::var_os("ZEROPILOT_JOBS") {
        None => eprintln!(
            "not compared: set ZEROPILOT_JOBS to a directory with the repositories of \
             knowledge/findings/second_jobs.jsonl"
        ),
        Some(checkouts) => {
            let page = std::path::absolute(PAGE)?;
            let jobs: Vec<Job> = seen().iter().map(Seen::job).collect();
            let study = JobStudy::of(Path::new(&checkouts), &jobs)?;
            if arguments.iter().any(|argument| argument == "--list") {
                list(&study);
                return Ok(ExitCode::SUCCESS);
            }
            let differences = differences(&study);
            differences.iter().for_each(|line| eprintln!("{line}"));
            if !differences.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
            return write(&page);
        }
    }
    write(Path::new(PAGE))
}

fn write(page: &Path) -> io::Result<ExitCode> {
    let text = std::fs::read_to_string(page)?;
    let before = text.find(TITLE).map_or(text.as_str(), |start| &text[..start]);
    std::fs::write(page, format!("{before}\n{}", section()))?;
    println!("docs/job-study.md has the second sample");
    Ok(ExitCode::SUCCESS)
}

fn list(study: &JobStudy) {
    for found in &study.found {
        let (job, rule, key, file) = (&found.job, found.rule, &found.key, &found.file);
        println!("{job}\t{rule}\t{key}\t{file}\t{}\t{}", found.severity.name(), found.message);
    }
    for (sha256, how) in &study.files {
        println!("{sha256}\t{how:?}");
    }
}

/// Where the data do not say what is found now.
fn differences(study: &JobStudy) -> Vec<String> {
    let mut left: BTreeMap<(String, String, String, String), usize> = BTreeMap::new();
    for found in &study.found {
        let key = (found.job.clone(), found.rule.to_owned(), found.key.clone(), found.file.clone());
        *left.entry(key).or_default() += 1;
    }
    let mut differences = Vec::new();
    for reading in readings() {
        let key = (reading.job, reading.rule, reading.key, reading.file);
        let is_found = left.get_mut(&key).filter(|count| **count > 0);
        if is_found.is_some() != reading.reported {
            let (now, verdict, why) = (!reading.reported, reading.verdict, &reading.reason);
            differences.push(format!("reported should be {now}: {key:?} ({verdict:?}: {why})"));
        }
        if let Some(count) = is_found {
            *count -= 1;
        }
    }
    // Found only since more launches are understood; they had no reader.
    for (key, _) in left.into_iter().filter(|(_, count)| *count > 0) {
        eprintln!("no verdict: {key:?}");
    }
    for file in seen() {
        let now = study.files.get(&file.sha256);
        if now != Some(&file.now) {
            differences.push(format!("now should be {now:?}: {}/{}", file.repository, file.path));
        }
    }
    differences
}

/// The section, as it stands at the end of the page.
pub(crate) fn section() -> String {
    let (seen, readings) = (seen(), readings());
    let repositories: BTreeSet<&str> = seen.iter().map(|it| it.repository.as_str()).collect();
    let count = |verdict| readings.iter().filter(|it| it.verdict == verdict).count();
    let (right, wrong, open) = (count(Verdict::True), count(Verdict::False), count(Verdict::Open));
    let (distinct_right, distinct) = distinct(&seen, &readings);
    format!(
        "## Second sample: {repositories} repositories not seen before\n\n\
         An independent reviewer chose {files} files of {repositories} other repositories, which we had not used to \
         develop any rule, and judged every finding in them. `knowledge/findings/second_jobs.jsonl` lists the files, \
         and `knowledge/findings/second_labels.jsonl` has the verdicts. zeropilot crashed on 0 of these files.\n\n\
         {all} findings have a verdict: {right} are true, {wrong} were false, and {open} cannot be decided from the \
         repository. **Of the decided findings, {before:.1}% were true.** If each rule counts once for a file of a \
         repository, {distinct_right} of {distinct} were true ({distinct_share:.0}%). Two of the true findings (V06) apply \
         only to DeepSpeed 0.19.6 and later: older releases accept a warmup of 0 steps.\n\n{severities}\n\n{launches}\n\n\
         ### False findings\n\n\
         | findings | rules | reason | correction |\n| ---: | --- | --- | --- |\n{causes}\n\n{after}\n",
        repositories = repositories.len(),
        files = seen.len(),
        all = readings.len(),
        before = percent(right, right + wrong),
        distinct_share = percent(distinct_right, distinct),
        severities = severities(&readings),
        launches = launches(&seen),
        causes = causes(&readings),
        after = after(&seen, &readings),
    )
}

/// How many of the decided findings are true, and how many there are, one for each rule and file of a repository.
fn distinct(seen: &[Seen], readings: &[Reading]) -> (usize, usize) {
    let repository = |job: &str| {
        seen.iter().find(|it| it.sha256.starts_with(job)).map_or("", |it| it.repository.as_str())
    };
    let mut verdicts: BTreeMap<(&str, &str, &str), Vec<Verdict>> = BTreeMap::new();
    for it in readings {
        verdicts.entry((&it.rule, repository(&it.job), &it.file)).or_default().push(it.verdict);
    }
    let has = |verdict| move |it: &&Vec<Verdict>| it.contains(&verdict);
    let wrong = verdicts.values().filter(has(Verdict::False)).count();
    let right = verdicts.values().filter(|it| !it.contains(&Verdict::False));
    let right = right.filter(has(Verdict::True)).count();
    (right, right + wrong)
}

fn severities(readings: &[Reading]) -> String {
    let rows = Severity::ALL.map(|severity| {
        let count = |verdict| {
            readings.iter().filter(|it| it.severity == severity && it.verdict == verdict).count()
        };
        let (right, wrong) = (count(Verdict::True), count(Verdict::False));
        let share = percent(right, right + wrong);
        let open = count(Verdict::Open);
        format!("| {} | {right} | {wrong} | {open} | {share:.0}% |", severity.words())
    });
    format!(
        "| severity | true | false | undecided | precision |\n| --- | ---: | ---: | ---: | ---: |\n{}",
        rows.join("\n")
    )
}

/// How many launch scripts there are, how many of them are understood, and the same for those that start DeepSpeed.
fn share(seen: &[Seen]) -> [(usize, usize); 2] {
    let scripts = || seen.iter().filter(|it| it.kind == Kind::Script);
    let understood = || scripts().filter(|it| it.first.is_understood());
    let starting = understood().filter(|it| it.starts_deepspeed).count();
    let all = scripts().filter(|it| it.starts_deepspeed).count();
    [(understood().count(), scripts().count()), (starting, all)]
}

fn launches(seen: &[Seen]) -> String {
    let [(understood, all), (starting, deepspeed)] = share(seen);
    format!(
        "zeropilot understood {understood} of {all} launch scripts ({:.0}%). {deepspeed} of the scripts start DeepSpeed; \
         zeropilot understood {starting} of these ({:.0}%).",
        percent(understood, all),
        percent(starting, deepspeed),
    )
}

fn causes(readings: &[Reading]) -> String {
    let rows = Cause::ALL.map(|cause| {
        let of: Vec<&Reading> = readings.iter().filter(|it| it.cause == Some(cause)).collect();
        let rules: BTreeSet<&str> = of.iter().map(|it| it.rule.as_str()).collect();
        let (reason, correction) = cause.words();
        format!("| {} | {} | {reason} | {correction} |", of.len(), Vec::from_iter(rules).join(", "))
    });
    rows.join("\n")
}

fn after(seen: &[Seen], readings: &[Reading]) -> String {
    let gone = |verdict| {
        let of: Vec<&Reading> = readings.iter().filter(|it| it.verdict == verdict).collect();
        (of.iter().filter(|it| !it.reported).count(), of.len())
    };
    let (wrong_gone, wrong) = gone(Verdict::False);
    let (right_gone, right) = gone(Verdict::True);
    let lost: Vec<String> = readings
        .iter()
        .filter(|it| it.verdict == Verdict::True && !it.reported)
        .map(|it| format!("{} in `{}`", it.rule, it.file))
        .collect();
    // A finding in a config that no program reads is gone with the others in it.
    let lost = match lost.is_empty() {
        true => String::new(),
        false => format!(" ({}: the job does not read this config)", lost.join(", ")),
    };
    let mut left = readings.iter().filter(|it| it.verdict == Verdict::False && it.reported);
    let is_advice = wrong_gone < wrong && left.all(|it| it.cause == Some(Cause::Advice));
    let left = if is_advice { " The findings that remain have corrected advice." } else { "" };
    let is_new = |it: &&Seen| !it.first.is_understood() && it.now.is_understood();
    let understood = seen.iter().filter(is_new).count();
    format!(
        "### After the corrections\n\nzeropilot no longer reports {wrong_gone} of the {wrong} false findings and \
         {right_gone} of the {right} true ones{lost}.{left} It also understands {understood} more files: it follows an `if` \
         whose condition the script itself decides, directories relative to the script, and options whose value is \
         known only at run time. We corrected zeropilot with this sample, so the numbers after the correction are not \
         an independent measure."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_shares_no_repository_with_the_first_and_every_verdict_is_about_a_file_of_it() {
        let (seen, readings) = (seen(), readings());
        let first = crate::jobs::jobs();
        let first: BTreeSet<&str> = first.iter().map(|job| job.repository.as_str()).collect();
        let files: BTreeSet<&str> = seen.iter().map(|it| it.sha256.as_str()).collect();
        assert_eq!(files.len(), seen.len());
        for it in &seen {
            assert!(!first.contains(it.repository.as_str()), "{it:?}");
            assert!(it.commit.len() == 40 && it.sha256.len() == 64, "{it:?}");
        }
        for it in &readings {
            let is_known = files.iter().any(|file| file.starts_with(&it.job));
            assert!(is_known && it.job.len() == 16 && !it.reason.is_empty(), "{it:?}");
            assert!(zeropilot_lint::rule(&it.rule).is_some(), "{it:?}");
            assert_eq!(it.cause.is_some(), it.verdict == Verdict::False, "{it:?}");
        }
    }

    #[test]
    fn the_page_ends_with_the_section() {
        let page = std::fs::read_to_string(PAGE).expect("the page");
        let start = page.find(TITLE).expect("the section");
        assert_eq!(
            &page[start + 1..],
            section(),
            "run `cargo run -p zeropilot_field_study -- second-sample`"
        );
    }
}
