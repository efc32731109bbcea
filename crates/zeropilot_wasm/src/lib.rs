//! zeropilot in a browser: a question as JSON in, an answer as JSON out.
//!
//! Every answer is `{"json": …, "words": …}`: what the command line prints with `--json`, and the words that stand beside it;
//! a question without an answer is `{"problem": "…"}` with the words of the command line. Nothing is computed or worded here.

mod answer;
mod catalogue;
mod config;
mod model;
mod pasted;
mod question;

use wasm_bindgen::prelude::wasm_bindgen;

/// What to run on these GPUs.
#[wasm_bindgen]
pub fn plan(question: &str) -> String {
    question::put(question, answer::plan)
}

/// How much memory a job needs, and what it holds through a step. A module's own memory is exported as `memory`.
#[wasm_bindgen]
pub fn memory_of(question: &str) -> String {
    question::put(question, answer::memory)
}

/// All stages and offloads side by side.
#[wasm_bindgen]
pub fn compare(question: &str) -> String {
    question::put(question, answer::compare)
}

/// What a GPU holds through a step, moment by moment.
#[wasm_bindgen]
pub fn film(question: &str) -> String {
    question::put(question, answer::film)
}

/// How long a step takes, and what happens in its streams.
#[wasm_bindgen]
pub fn simulate(question: &str) -> String {
    question::put(question, answer::simulate)
}

/// Whether the engine takes a config, and what is wrong with it.
#[wasm_bindgen]
pub fn check(question: &str) -> String {
    question::put(question, config::check)
}

/// A config with its fixes applied, and what that changed.
#[wasm_bindgen]
pub fn fix(question: &str) -> String {
    question::put(question, config::fix)
}

/// What a pasted text is, and the config in it.
#[wasm_bindgen]
pub fn recognize(question: &str) -> String {
    question::put(question, pasted::recognize)
}

/// Why a run went out of memory, from its log.
#[wasm_bindgen]
pub fn diagnose(question: &str) -> String {
    question::put(question, pasted::diagnose)
}

/// A key or a concept.
#[wasm_bindgen]
pub fn explain(question: &str) -> String {
    question::put(question, config::explain)
}

/// What can be written at a place in a config.
#[wasm_bindgen]
pub fn complete(question: &str) -> String {
    question::put(question, config::complete)
}

/// What can be chosen: models, accelerators, engines, readers of a config, and the parts memory is shown in.
#[wasm_bindgen]
pub fn catalogue(question: &str) -> String {
    question::put(question, catalogue::catalogue)
}
