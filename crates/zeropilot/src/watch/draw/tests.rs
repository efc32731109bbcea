//! Screens as they are drawn, in both languages. What they say is in the snapshots; numbers come from the events here.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use zeropilot_cluster::discovery::NoDriver;
use zeropilot_record::{
    Cause, Ending, Event, Fullest, GpuProcess, GpuUse, Memory, Offload, Phase, RankMemory,
    RunEvent, RunInfo, Setup, Shortage, Strategy,
};
use zeropilot_text::Language;
use zeropilot_view::run::watch::machine::{HostMemory, MachineLook, TrainingProcess};
use zeropilot_view::run::watch::{Digest, Glyphs, Look};

use super::{Brush, draw};
use crate::watch::source::Seen;

const GIB: u64 = 1 << 30;

/// A run that ran out of memory, took a fallback and goes on.
fn run(ranks: u32) -> Look {
    let offload_optimizer = Offload::Cpu;
    let strategy = Strategy { stage: 3, offload_optimizer, ..Strategy::default() };
    let fallback = Setup::Strategy(strategy);
    let oom = Cause::OutOfMemory {
        memory: Memory::Device,
        shortage: Shortage::Refused,
        phase: Some(Phase::Backward),
    };
    let line = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 GiB";
    let mut events = vec![
        (0.0, RunEvent::AttemptStarted { attempt: 1, strategy: Setup::AsGiven, pid: 7 }),
        (
            40.0,
            RunEvent::Fingerprint { id: "oom".to_owned(), line: line.to_owned(), rank: Some(1) },
        ),
        (41.0, RunEvent::RankGone { rank: 1, ending: Ending::Exited(1) }),
        (42.0, RunEvent::AttemptEnded { attempt: 1, ending: Ending::Exited(1), cause: oom }),
        (
            42.0,
            RunEvent::FallbackTaken {
                strategy: fallback.clone(),
                config: "config-2.json".to_owned(),
            },
        ),
        (43.0, RunEvent::AttemptStarted { attempt: 2, strategy: fallback, pid: 8 }),
    ];
    for step in 1..=40_u32 {
        let at = 50.0 + f64::from(step);
        let loss = Some(2.0 + 8.0 / f64::from(step));
        events.push((at, RunEvent::Step { step: u64::from(step), loss }));
        if step % 5 == 0 {
            let pace = RunEvent::Pace {
                steps_per_second: 1.0 + f64::from(step % 10) / 20.0,
                tokens_per_second: Some(32768.0),
                total_steps: Some(400),
            };
            let memory = |rank| RankMemory { rank, rss: (3 + u64::from(rank % 2)) * GIB };
            events.push((at, pace));
            events.push((at, RunEvent::Memory { ranks: (0..ranks).map(memory).collect() }));
        }
    }
    let events = events.into_iter().map(|(at, happening)| Event::new(1000.0 + at, happening));
    let info = RunInfo {
        id: "20260102-030405-678".to_owned(),
        started_at: 1000.0,
        predicted: Some(5 * GIB),
        fullest: Some(Fullest { phase: Phase::Backward, near: None }),
        tokens_per_step: Some(32768),
        ..RunInfo::default()
    };
    let host = Some(HostMemory { total: 64 * GIB, available: 16 * GIB });
    let digest = Digest::of(&events.collect::<Vec<_>>());
    let (verdict, checkpoint, job) = (None, None, None);
    Look { info, verdict, is_running: true, now: 1092.0, digest, host, checkpoint, job }
}

fn gpu(index: u32, used: u64, rank: Option<u32>) -> GpuUse {
    GpuUse {
        index,
        name: "NVIDIA A100-SXM4-80GB".to_owned(),
        used: used * GIB,
        total: 80 * GIB,
        utilization: Some(98),
        watts: Some(389.4),
        celsius: Some(61),
        processes: vec![GpuProcess { pid: 4000 + index, rank, used: Some((used - 1) * GIB) }],
    }
}

fn on_gpus() -> Look {
    let mut look = run(2);
    let gpus = vec![gpu(0, 62, Some(0)), gpu(1, 79, Some(1))];
    look.digest.take(&Event::new(1091.0, RunEvent::Gpus { gpus }));
    look.info.predicted = Some(70 * GIB);
    look
}

fn machine(gpus: Result<Vec<GpuUse>, NoDriver>) -> Seen {
    let process = |rank| TrainingProcess {
        rank,
        pid: 4000 + rank,
        rss: 3 * GIB,
        command:
            "/opt/venv/bin/python -u train.py --local_rank=0 --deepspeed ds.json --output_dir out"
                .to_owned(),
    };
    Seen::Machine(MachineLook {
        gpus,
        memory: Some(HostMemory { total: 64 * GIB, available: 16 * GIB }),
        processes: (0..2).map(process).collect(),
    })
}

fn screen(seen: &Seen, (width, height): (u16, u16), brush: Brush, scroll: usize) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal
        .draw(|frame| {
            draw(frame, seen, brush, scroll);
        })
        .expect("drawn");
    let drawn = terminal.backend().to_string();
    // Behind wide characters the backend says which cells they hide.
    let lines = drawn.lines().map(|line| line.split(" Hidden by").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn brush(language: Language) -> Brush {
    Brush { color: true, glyphs: Glyphs::Blocks, language }
}

const SMALL: (u16, u16) = (80, 24);

#[test]
fn a_run_in_both_languages() {
    let seen = Seen::Run(Box::new(run(2)));
    insta::assert_snapshot!("run_english", screen(&seen, SMALL, brush(Language::English), 0));
    insta::assert_snapshot!("run_chinese", screen(&seen, SMALL, brush(Language::Chinese), 0));
}

#[test]
fn a_run_on_gpus_above_its_prediction() {
    let seen = Seen::Run(Box::new(on_gpus()));
    insta::assert_snapshot!("gpus_english", screen(&seen, SMALL, brush(Language::English), 0));
    insta::assert_snapshot!("gpus_chinese", screen(&seen, (110, 30), brush(Language::Chinese), 0));
}

#[test]
fn a_machine_with_gpus_and_one_without() {
    let gpus = machine(Ok(vec![gpu(0, 62, Some(0)), gpu(1, 79, None)]));
    insta::assert_snapshot!("machine_english", screen(&gpus, SMALL, brush(Language::English), 0));
    let none = machine(Err(NoDriver::NoLibrary));
    insta::assert_snapshot!("machine_chinese", screen(&none, SMALL, brush(Language::Chinese), 0));
}

#[test]
fn without_unicode_every_character_is_ascii() {
    for seen in [Seen::Run(Box::new(on_gpus())), machine(Ok(vec![gpu(0, 62, None)]))] {
        let brush = Brush { glyphs: Glyphs::Ascii, ..brush(Language::English) };
        let drawn = screen(&seen, SMALL, brush, 0);
        assert!(drawn.is_ascii(), "{drawn}");
    }
}

#[test]
fn without_colours_there_are_none() {
    for seen in [Seen::Run(Box::new(on_gpus())), machine(Ok(vec![gpu(0, 62, None)]))] {
        let brush = Brush { color: false, ..brush(Language::English) };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        terminal
            .draw(|frame| {
                draw(frame, &seen, brush, 0);
            })
            .expect("drawn");
        let cells = &terminal.backend().buffer().content;
        let plain = ratatui::style::Color::Reset;
        assert!(cells.iter().all(|cell| cell.fg == plain && cell.bg == plain));
    }
}

#[test]
fn many_ranks_scroll_and_leave_room_for_what_happened() {
    let seen = Seen::Run(Box::new(run(64)));
    let top = screen(&seen, SMALL, brush(Language::English), 0);
    assert!(top.contains("rank 0 ") && !top.contains("rank 63") && top.contains("scroll"), "{top}");
    assert!(top.contains("next fallback"), "{top}");
    let end = screen(&seen, SMALL, brush(Language::English), usize::MAX);
    assert!(!end.contains("rank 0 ") && end.contains("rank 63"), "{end}");
}

#[test]
fn no_size_of_a_terminal_is_too_small() {
    let all = [Seen::Run(Box::new(on_gpus())), Seen::Run(Box::new(run(0))), machine(Ok(vec![]))];
    for seen in &all {
        for width in [0, 1, 7, 20, 41, 200] {
            for height in [0, 1, 2, 9, 60] {
                let backend = TestBackend::new(width, height);
                let mut terminal = Terminal::new(backend).expect("a terminal");
                let drawn = terminal.draw(|frame| {
                    draw(frame, seen, brush(Language::Chinese), 3);
                });
                assert!(drawn.is_ok(), "{width}×{height}");
            }
        }
    }
}
