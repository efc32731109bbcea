//! Training that goes on, but not as it should: a slow rank, a bad batch, a loss that does not come back.

use zeropilot_record::{Jumped, RunEvent};

use crate::job::{Job, program};
use crate::supervised::{events, signal};

/// Rank 1 takes half a second longer for each micro-batch, and rank 0 waits for it in a collective.
#[test]
fn the_rank_that_the_others_wait_for_is_named() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(program());
    let arguments = "--steps 100000 --slow-rank 1 --slow 0.5";
    let mut run = job.start(&["--find-stragglers"], "torchrun", arguments);
    let found = |event: &RunEvent| match event {
        RunEvent::Straggler { rank, stood, .. } => Some((*rank, stood.place.clone())),
        _ => None,
    };
    run.wait_until("a straggler", |run| run.events().iter().any(|event| found(event).is_some()));
    signal("TERM", run.child.id());
    let stragglers: Vec<_> = run.events().iter().filter_map(found).collect();
    let (code, _) = run.end();
    assert_eq!((code, stragglers.len(), stragglers[0].0), (Some(143), 1, 1), "{stragglers:?}");
    let place = stragglers[0].1.as_deref().unwrap_or_default();
    assert!(place.contains("program.py:"), "{place}");
    assert!(job.printed().contains("the other ranks wait for rank 1"), "{}", job.printed());
}

/// Steps of half a second and more take two seconds longer from step 130 on.
#[test]
#[ignore = "long: run with --run-ignored all (CI does so every night)"]
fn steps_that_become_slower_are_reported() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(program());
    let arguments = "--steps 100000 --pause 0.25 --slow-from 130 --slow 1";
    let mut run = job.start(&[], "torchrun", arguments);
    let found = |event: &RunEvent| match event {
        RunEvent::Slower { seconds_per_step, usual } => Some((*seconds_per_step, *usual)),
        _ => None,
    };
    run.wait_until("slower steps", |run| run.events().iter().any(|event| found(event).is_some()));
    signal("TERM", run.child.id());
    let slower: Vec<_> = run.events().iter().filter_map(found).collect();
    let (code, _) = run.end();
    assert_eq!((code, slower.len()), (Some(143), 1), "{slower:?}");
    assert!(slower[0].0 > 1.5 * slower[0].1, "{slower:?}");
    assert!(job.printed().contains("steps"), "{}", job.printed());
}

#[test]
fn a_bad_batch_is_reported_with_its_step() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(program());
    let (code, verdict) = job.start(&[], "torchrun", "--steps 45 --spike-at 40").end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());
    let jumps: Vec<(Jumped, u64)> = events(job.directory.path())
        .into_iter()
        .filter_map(|event| match event {
            RunEvent::Spike { what, step, .. } => Some((what, step)),
            _ => None,
        })
        .collect();
    assert_eq!(jumps, [(Jumped::Loss, 40)], "{:?}", job.losses());
}

/// One step with a learning rate that breaks the weights: the checkpoint of that step holds them already, and is passed over.
#[test]
fn a_loss_that_stays_high_goes_back_to_the_checkpoint_before() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let job = Job::new(&home, 2).running(program());
    let options = ["--rollback-on-spike", "--resume-with", "--resume {}"];
    let arguments = "--steps 60 --break-at 40 --once broken --save ckpt --save-every 10";
    let (code, verdict) = job.start(&options, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{:?}\n{}", job.losses(), job.printed());
    let attempts = verdict["attempts"].as_array().expect("attempts");
    let first = (&attempts[0]["cause"], attempts[0]["since"].as_u64());
    assert_eq!(first, (&serde_json::json!("loss_spike"), Some(41)), "{verdict:#}");
    let resumed = attempts[1]["resumed_from"].as_str().expect("a checkpoint");
    assert!(resumed.ends_with("ckpt/global_step30"), "{resumed}");
    let last = job.losses().last().map(|(step, loss)| (*step, *loss)).expect("losses");
    assert!(last.0 == 60 && last.1 < 1.0, "{last:?}");
}
