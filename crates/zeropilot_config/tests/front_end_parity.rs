//! Whether `front_end::fill` does to a config what the real Trainer and the real accelerate do.
//!
//! Random configs and arguments go through both; the tree handed to the engine must be the same to
//! the last bit and in the same order, or both must refuse, for the same reason. The other side is
//! `oracle/front_end_server.py`. `ZEROPILOT_FRONT_END_CASES` sets the number of cases per front end;
//! the rest of the environment is described in `zeropilot_oracle`.

#[path = "front_end_parity/arguments.rs"]
mod arguments;
#[path = "front_end_parity/case.rs"]
mod case;
#[path = "front_end_parity/comparison.rs"]
mod comparison;
#[path = "front_end_parity/configs.rs"]
mod configs;
mod tagged;
#[path = "front_end_parity/tree.rs"]
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use arguments::forget_some;
use case::Case;
use comparison::{agrees, disagreement};
use configs::templates;
use serde_json::{Value as Json, json};
use tagged::tagged;
use tree::smaller;
use zeropilot_config::front_end::{Filled, FrontEnd, fill};
use zeropilot_config::syntax::Node;
use zeropilot_oracle::{Oracle, Random};

const DEFAULT_CASES: usize = 5_000;
/// One oracle per core of a small machine.
const WORKERS: usize = 2;
const BATCH: usize = 250;

#[test]
fn configs_reach_the_engine_as_the_real_front_ends_hand_them_over() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let cases = zeropilot_oracle::setting("ZEROPILOT_FRONT_END_CASES").unwrap_or(DEFAULT_CASES);
    println!("front-end parity: {cases} cases per front end");
    let templates = templates();
    let mut random = Random::new(zeropilot_oracle::seed());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (home, templates) = (&home, &templates);
                let mut random = random.fork();
                scope.spawn(move || {
                    let mut real = RealFrontEnds::start(home);
                    let mut tally = Tally::default();
                    for front_end in [FrontEnd::HfTrainer, FrontEnd::Accelerate] {
                        let share = cases / WORKERS + usize::from(worker < cases % WORKERS);
                        compare(&mut real, &mut random, front_end, templates, share, &mut tally);
                    }
                    tally
                })
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(tally) => println!(
                    "reached the engine: {}, refused for {:?}",
                    tally.reached, tally.refused
                ),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}

#[test]
fn knowing_less_never_contradicts_knowing_all() {
    let (mut random, templates) = (Random::new(zeropilot_oracle::seed()), templates());
    for _ in 0..20_000 {
        let front_end = *random.pick(&[FrontEnd::HfTrainer, FrontEnd::Accelerate]);
        let case = Case::random(&mut random, front_end, &templates);
        let all = case.filled();
        let mut arguments = case.arguments.clone();
        forget_some(&mut random, &mut arguments);
        let model = (!random.one_in(3)).then_some(&case.model);
        let world_size = (!random.one_in(3)).then_some(case.world_size);
        let less = fill(front_end, &case.config, &arguments, model, world_size);
        let told = || format!("{}\nknown: {arguments:?} {model:?} {world_size:?}", case.request());
        if !all.problems.is_empty() {
            continue;
        }
        assert_eq!(less.problems, [], "refused without need: {}", told());
        assert!(
            agrees(&less, &less.root, &all.root, ""),
            "another value: {}\n{}",
            told(),
            tagged(&less.root.value)
        );
    }
}

#[derive(Default)]
struct Tally {
    reached: usize,
    /// By the name of the first problem's kind.
    refused: BTreeMap<String, usize>,
}

impl Tally {
    fn refusal(&mut self, filled: &Filled) {
        let kind = filled
            .problems
            .first()
            .map(|problem| format!("{:?}", problem.kind))
            .unwrap_or_default();
        let name = kind.split(' ').next().unwrap_or_default().to_owned();
        *self.refused.entry(name).or_default() += 1;
    }
}

/// The process that walks configs through the real classes.
struct RealFrontEnds(Oracle);

impl RealFrontEnds {
    fn start(home: &Path) -> Self {
        Self(Oracle::start(home, "front_end_server.py"))
    }

    fn ask(&mut self, cases: &[Case]) -> Vec<Json> {
        self.0.answers(cases.iter().map(Case::request).collect())
    }
}

fn compare(
    real: &mut RealFrontEnds,
    random: &mut Random,
    front_end: FrontEnd,
    templates: &[Node],
    mut left: usize,
    tally: &mut Tally,
) {
    while left > 0 {
        let cases: Vec<Case> =
            (0..left.min(BATCH)).map(|_| Case::random(random, front_end, templates)).collect();
        left -= cases.len();
        for (case, answer) in cases.iter().zip(real.ask(&cases)) {
            match disagreement(case, &answer) {
                Some(_) => report(real, case),
                None if answer["ok"] == json!(true) => tally.reached += 1,
                None => tally.refusal(&case.filled()),
            }
        }
    }
}

/// Prints the smallest config found that still disagrees, and fails.
fn report(real: &mut RealFrontEnds, case: &Case) {
    let mut smallest = case.clone();
    'shrinking: loop {
        for config in smaller(&smallest.config) {
            let candidate = Case { config, ..smallest.clone() };
            let answer = real.ask(std::slice::from_ref(&candidate)).remove(0);
            if disagreement(&candidate, &answer).is_some() {
                smallest = candidate;
                continue 'shrinking;
            }
        }
        break;
    }
    let answer = real.ask(std::slice::from_ref(&smallest)).remove(0);
    let reason = disagreement(&smallest, &answer).unwrap_or_default();
    let ours = smallest.filled();
    panic!(
        "{reason}\nrequest: {}\nthe front end: {answer}\nours: {}\nproblems: {:#?}",
        smallest.request(),
        tagged(&ours.root.value),
        ours.problems
    );
}
