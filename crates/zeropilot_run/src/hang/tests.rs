use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::process::Process;
use crate::stacks::Call;

const DISTRIBUTED: &str = "/v/site-packages/torch/distributed/distributed_c10d.py";
const ENGINE: &str = "/v/site-packages/deepspeed/runtime/engine.py";
const LOADER: &str = "/v/site-packages/torch/utils/data/dataloader.py";
const BATON: &str = "/v/site-packages/torch/utils/file_baton.py";
const STAGE_3: &str = "/v/site-packages/deepspeed/runtime/zero/stage3.py";

/// The loop that the stacks are in.
const PROGRAM: &str = "\
def main():
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss)
        if rank == 0:
            engine.save_checkpoint('out')
    dist.barrier()
main()
";

/// A rank at a line of the program, and the functions it called from there, the outermost first.
fn rank(rank: u32, program: &str, line: u32, called: &[(&str, &str)]) -> Stood {
    let frame = |file: &str, line, function: &str| Frame {
        file: file.to_owned(),
        line,
        function: function.to_owned(),
    };
    let own = [frame(program, 8, "<module>"), frame(program, line, "main")];
    let called = called.iter().map(|(file, function)| frame(file, 1, function));
    let mut frames: Vec<Frame> = own.into_iter().chain(called).collect();
    frames.reverse();
    let process = Process::read(i32::try_from(std::process::id()).expect("a number"));
    Stood {
        rank,
        process: process.expect("this process"),
        stack: Ok(Stack { threads: vec![Thread { frames }] }),
        children: Vec::new(),
        kernel: String::new(),
        calls: None,
    }
}

struct Program(tempfile::TempDir);

impl Program {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("train.py"), text).expect("a program");
        Self(directory)
    }

    fn path(&self) -> String {
        self.0.path().join("train.py").to_string_lossy().into_owned()
    }

    fn explain(&self, stood: &[Stood]) -> Explained {
        explain(stood, Some(self.0.path()), true, |_| (None, false))
    }
}

const REDUCE: [(&str, &str); 2] = [(ENGINE, "backward"), (DISTRIBUTED, "all_reduce")];
const SAVE: [(&str, &str); 2] = [(ENGINE, "save_checkpoint"), (DISTRIBUTED, "barrier")];

#[test]
fn a_collective_that_one_rank_calls_alone_is_named_with_its_condition_and_rule() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let stood = [rank(0, &path, 6, &SAVE), rank(1, &path, 4, &REDUCE), rank(2, &path, 4, &REDUCE)];
    let found = program.explain(&stood);
    assert_eq!(found.odd, [0]);
    let reason = HangReason::OneRank {
        condition: "rank == 0".to_owned(),
        place: "train.py:5".to_owned(),
        rule: Some("H08".to_owned()),
    };
    assert_eq!(found.reason, Some(reason));
    assert_eq!(found.stood.len(), 2);
    let others = &found.stood[1];
    assert_eq!(
        (others.ranks.as_slice(), others.place.as_deref()),
        (&[1, 2][..], Some("train.py:4"))
    );
    assert_eq!(others.collective.as_deref(), Some("all_reduce"));
}

#[test]
fn a_collective_of_the_program_and_a_skipped_part_have_their_rules() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let alone = rank(0, &path, 6, &[(DISTRIBUTED, "barrier")]);
    let found = program.explain(&[alone, rank(1, &path, 4, &REDUCE), rank(2, &path, 4, &REDUCE)]);
    assert!(
        matches!(found.reason, Some(HangReason::OneRank { rule: Some(rule), .. }) if rule == "H11")
    );
    let text = PROGRAM.replace("        if rank == 0:", "        if bad: continue");
    fs::write(&path, text).expect("a program");
    let forward = [(ENGINE, "forward"), (DISTRIBUTED, "all_gather")];
    let found = program.explain(&[rank(0, &path, 3, &forward), rank(1, &path, 4, &REDUCE)]);
    let rule = Some("H13".to_owned());
    let skip = Some("train.py:5".to_owned());
    assert_eq!(found.reason, Some(HangReason::OtherPath { skip, rule }));
}

#[test]
fn a_rank_that_is_done_with_the_loop_has_fewer_batches() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let done = rank(1, &path, 7, &[(DISTRIBUTED, "barrier")]);
    let found = program.explain(&[rank(0, &path, 4, &REDUCE), done.clone()]);
    let left = |skip| HangReason::LeftLoop { place: "train.py:2".to_owned(), skip };
    assert_eq!((found.odd, found.reason), (vec![1], Some(left(None))));
    // A `continue` may be the reason as well.
    let text = PROGRAM.replace("        if rank == 0:", "        if bad: continue");
    fs::write(&path, text).expect("a program");
    let found = program.explain(&[rank(0, &path, 4, &REDUCE), done]);
    assert_eq!(found.reason, Some(left(Some("train.py:5".to_owned()))));
}

#[test]
fn ranks_in_different_parts_of_a_step_are_explained_by_the_stage() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let gather =
        [(ENGINE, "forward"), ("/v/deepspeed/runtime/zero/partition_parameters.py", "wait")];
    let reduce = [(ENGINE, "backward"), (STAGE_3, "step"), (DISTRIBUTED, "reduce_scatter_tensor")];
    let stood = [rank(0, &path, 4, &reduce), rank(1, &path, 3, &gather)];
    let found = program.explain(&stood);
    let rule = Some("H09".to_owned());
    assert_eq!(found.reason, Some(HangReason::OtherPath { skip: None, rule }));
    assert!(found.odd.is_empty(), "of two, neither can be told from the other");
    assert_eq!(found.stood[1].collective.as_deref(), Some("all_gather"));
    let stood = [stood[0].clone(), rank(2, &path, 4, &reduce), stood[1].clone()];
    assert_eq!(program.explain(&stood).odd, [1]);
}

#[test]
fn whoever_is_in_no_collective_is_waited_for() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let sleeps = rank(1, &path, 3, &[]);
    let found = program.explain(&[rank(0, &path, 4, &REDUCE), sleeps]);
    assert_eq!((found.odd, found.reason), (vec![1], Some(HangReason::Elsewhere)));
    assert_eq!(found.stood[1].place.as_deref(), Some("train.py:3"));

    // The worker that loads the sample says where.
    let mut loads = rank(1, &path, 2, &[(LOADER, "__next__")]);
    let worker = rank(1, "/data/read.py", 9, &[]);
    loads.children = vec![Stack::default(), worker.stack.expect("a stack")];
    let found = program.explain(&[rank(0, &path, 4, &REDUCE), loads]);
    assert_eq!((found.odd, found.reason), (vec![1], Some(HangReason::Data)));
    assert_eq!(found.stood[1].place.as_deref(), Some("/data/read.py:9"));
}

#[test]
fn a_lock_and_a_stopped_process_explain_themselves() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let waits = [rank(0, &path, 3, &[(BATON, "wait")]), rank(1, &path, 3, &[(BATON, "wait")])];
    let found = explain(&waits, None, true, |_| (Some("/c/lock".to_owned()), false));
    let lock = HangReason::ExtensionLock { path: Some("/c/lock".to_owned()), is_held: false };
    assert_eq!((found.odd, found.reason), (vec![], Some(lock)));

    let mut stopped = rank(1, &path, 4, &REDUCE);
    stopped.process.state = 'T';
    let found = program.explain(&[rank(0, &path, 4, &REDUCE), stopped]);
    assert_eq!((found.odd, found.reason), (vec![1], Some(HangReason::Stopped)));
}

#[test]
fn where_all_wait_together_somebody_else_is_missing() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let found = program.explain(&[rank(0, &path, 4, &REDUCE), rank(1, &path, 4, &REDUCE)]);
    assert_eq!((found.odd, found.reason), (vec![], Some(HangReason::AllWait)));
    // One that waits in the same collective at another place is not at fault if a third may be missing.
    let barrier = [(DISTRIBUTED, "barrier")];
    let stood = [rank(0, &path, 6, &barrier), rank(1, &path, 7, &barrier)];
    let found = explain(&stood, None, false, |_| (None, false));
    assert_eq!((found.odd, found.reason), (vec![], Some(HangReason::AllWait)));
    assert_eq!(program.explain(&stood).odd, [0]);
}

#[test]
fn where_nobody_waits_in_a_collective_the_only_one_at_another_place_is_named() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let [a, b, c] = [(0, 4), (1, 4), (2, 3)].map(|(number, line)| rank(number, &path, line, &[]));
    let found = program.explain(&[a, b, c]);
    assert_eq!((found.odd, found.reason), (vec![2], None));
    let loads = |number| rank(number, &path, 2, &[(LOADER, "__next__")]);
    let found = program.explain(&[loads(0), loads(1)]);
    assert_eq!((found.odd, found.reason), (vec![], Some(HangReason::Data)));
}

#[test]
fn without_a_stack_nobody_is_accused() {
    let program = Program::new(PROGRAM);
    let mut unknown = rank(1, &program.path(), 4, &REDUCE);
    unknown.stack = Err(zeropilot_record::NoStack::NoTool);
    unknown.kernel = "D nfs_wait".to_owned();
    let found = program.explain(&[rank(0, &program.path(), 4, &REDUCE), unknown]);
    assert_eq!((found.odd, found.reason), (vec![], None));
    assert_eq!(found.stood[1].kernel.as_deref(), Some("D nfs_wait"));
}

/// The calls of a rank in a group, of which the last have not finished.
fn calls(group: &str, finished: &[&str], pending: &[&str]) -> Calls {
    let call = |operation: &&str, is_finished| Call {
        operation: (*operation).to_owned(),
        shapes: vec![vec![8]],
        is_finished,
    };
    let finished = finished.iter().map(|operation| call(operation, true));
    let made = finished.chain(pending.iter().map(|operation| call(operation, false)));
    Calls { groups: BTreeMap::from([(group.to_owned(), (1..).zip(made).collect())]) }
}

#[test]
fn who_waits_is_found_where_only_the_flight_recorder_shows_it() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let at = |number, pending: &[&str]| Stood {
        calls: Some(calls("default_pg", &["broadcast"], pending)),
        ..rank(number, &path, 4, &[])
    };
    let found = program.explain(&[at(0, &["all_reduce"]), at(1, &[]), at(2, &["all_reduce"])]);
    assert_eq!((found.odd, found.reason), (vec![1], Some(HangReason::Elsewhere)));
    let pending: Vec<_> = found.stood.iter().map(|at| at.pending.as_deref()).collect();
    assert_eq!(pending, [Some("all_reduce"), None]);
}

#[test]
fn ranks_at_the_same_place_in_different_calls_are_told_apart() {
    let program = Program::new(PROGRAM);
    let path = program.path();
    let at = |number, calls| Stood { calls: Some(calls), ..rank(number, &path, 4, &REDUCE) };
    let reduce = |number| at(number, calls("default_pg", &["broadcast"], &["all_reduce"]));

    let found = program.explain(&[reduce(0), reduce(1)]);
    assert_eq!((found.odd, found.reason), (Vec::new(), Some(HangReason::AllWait)));

    let other = at(2, calls("default_pg", &["broadcast"], &["all_gather"]));
    let found = program.explain(&[reduce(0), other, reduce(1)]);
    let reason = HangReason::OtherCall {
        group: "default_pg".to_owned(),
        call: 2,
        operation: "all_reduce [8]".to_owned(),
        other: "all_gather [8]".to_owned(),
    };
    assert_eq!((found.odd, found.reason), (vec![2], Some(reason)));

    let mut elsewhere = calls("default_pg", &["broadcast"], &[]);
    elsewhere.groups.extend(calls("tensor_parallel", &[], &["all_reduce"]).groups);
    let found = program.explain(&[reduce(0), reduce(1), at(2, elsewhere)]);
    let (group, operation) = ("default_pg".to_owned(), "all_reduce".to_owned());
    let reason = HangReason::NotCalled { group, call: 2, operation };
    assert_eq!((found.odd, found.reason), (vec![2], Some(reason)));
}
