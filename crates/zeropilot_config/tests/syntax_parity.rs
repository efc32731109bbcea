//! Whether our readers and Python's agree, on generated and damaged texts.
//!
//! The other side is `oracle/syntax_server.py`. `ZEROPILOT_SYNTAX_CASES` sets how many texts per
//! reader; the rest of the environment is described in `zeropilot_oracle`.

#![allow(clippy::print_stdout, reason = "a run that fails must be replayable from its output")]

#[path = "syntax_parity/generator.rs"]
mod generator;
mod tagged;

use std::path::Path;

use generator::Generator;
use serde_json::{Value as Json, json};
use tagged::tagged;
use zeropilot_config::syntax::{decode, parse_hjson, parse_json};
use zeropilot_oracle::{Oracle, Random, base64};

const BATCH: usize = 2000;

/// Which of Python's readers reads a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Hjson,
    Json,
}

impl Reader {
    fn name(self) -> &'static str {
        match self {
            Self::Hjson => "hjson",
            Self::Json => "json",
        }
    }

    /// Nesting that the reader surely has stack for.
    fn safe_depth(self) -> usize {
        match self {
            Self::Hjson => 450,
            Self::Json => 900,
        }
    }
}

/// A value in tagged form, or why it was refused.
type Answer = Result<String, String>;

#[test]
fn hjson_is_read_as_python_reads_it() {
    compare(Reader::Hjson, 50_000);
}

#[test]
fn json_is_read_as_python_reads_it() {
    compare(Reader::Json, 20_000);
}

fn compare(reader: Reader, default_cases: usize) {
    let Some(home) = zeropilot_oracle::home() else { return };
    let cases = zeropilot_oracle::setting("ZEROPILOT_SYNTAX_CASES").unwrap_or(default_cases);
    let seed = zeropilot_oracle::seed();
    println!("{reader:?}: {cases} cases");

    let corpus = zeropilot_oracle::corpus().unwrap_or_default();
    let seeds: Vec<String> =
        corpus.into_iter().filter_map(|file| String::from_utf8(file.data).ok()).collect();
    let mut python = Python::start(&home);
    let mut random = Random::new(seed);
    let mut accepted = 0;
    let mut done = 0;
    while done < cases {
        let texts: Vec<Vec<u8>> = (0..BATCH.min(cases - done))
            .map(|_| {
                let strict = (random.below(10) < 7) == (reader == Reader::Json);
                Generator::new(&mut random, strict, reader.safe_depth(), &seeds).case()
            })
            .collect();
        let answers = python.read(reader, &texts);
        for (text, theirs) in texts.iter().zip(&answers) {
            accepted += usize::from(theirs.is_ok());
            if !agree(&ours(reader, text), theirs) {
                report(reader, text, &mut python, seed);
            }
        }
        done += texts.len();
    }
    println!("{reader:?}: all {cases} agree, {accepted} of them accepted");
    // A generator that only ever wrote broken texts would agree about nothing worth knowing.
    assert!(accepted * 10 >= cases, "only {accepted} of {cases} texts were accepted");
}

/// The process that reads texts with the real readers.
struct Python(Oracle);

impl Python {
    fn start(home: &Path) -> Self {
        Self(Oracle::start(home, "syntax_server.py"))
    }

    /// What the real reader makes of each text, in order.
    fn read(&mut self, reader: Reader, texts: &[Vec<u8>]) -> Vec<Answer> {
        let question = |text: &Vec<u8>| json!({"reader": reader.name(), "text_b64": base64(text)});
        let lines = self.0.ask(texts.iter().map(question).collect());
        lines.iter().map(|line| answer(line)).collect()
    }
}

fn answer(line: &str) -> Answer {
    let answer: Json = serde_json::from_str(line).expect("an answer is JSON");
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    if answer["ok"] == true { Ok(text("value")) } else { Err(text("error")) }
}

fn ours(reader: Reader, bytes: &[u8]) -> Answer {
    let document = decode(bytes).and_then(|text| match reader {
        Reader::Hjson => parse_hjson(text),
        Reader::Json => parse_json(text),
    });
    match document {
        Ok(document) => Ok(tagged(&document.root().value)),
        Err(error) => Err(format!("{:?} at {:?}", error.kind, error.span)),
    }
}

fn agree(ours: &Answer, theirs: &Answer) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

/// Fails with the smallest text found that still shows the disagreement.
fn report(reader: Reader, text: &[u8], python: &mut Python, seed: u64) -> ! {
    let mut smallest = text.to_vec();
    let mut chunk = smallest.len().div_ceil(2);
    while chunk > 0 {
        let candidates: Vec<Vec<u8>> = (0..smallest.len())
            .step_by(chunk)
            .map(|start| {
                let end = (start + chunk).min(smallest.len());
                [&smallest[..start], &smallest[end..]].concat()
            })
            .collect();
        let answers = python.read(reader, &candidates);
        let smaller = candidates
            .into_iter()
            .zip(&answers)
            .find(|(candidate, theirs)| !agree(&ours(reader, candidate), theirs));
        match smaller {
            Some((candidate, _)) => {
                smallest = candidate;
                chunk = chunk.min(smallest.len());
            }
            None => chunk /= 2,
        }
    }
    let theirs = python.read(reader, std::slice::from_ref(&smallest)).remove(0);
    panic!(
        "{reader:?} disagrees (ZEROPILOT_SEED={seed}) about\n  {:?}\n  ours:   {:?}\n  theirs: {:?}",
        String::from_utf8_lossy(&smallest),
        ours(reader, &smallest),
        theirs
    );
}
