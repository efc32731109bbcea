//! The kernel kills ranks for memory, as it does at night on machines of one's own.

use serde_json::json;

use crate::job::{Job, config, program};
use crate::memory_group::MemoryGroup;
use crate::supervised::or_skipped;

/// Two ranks with half a million tokens a sample reached 4.6 GB with four samples at a time and 3.0 GB with two.
const BETWEEN: u64 = 3_700_000_000;

#[test]
fn a_kill_by_the_kernel_for_memory_is_known_and_the_next_rung_goes_on_from_the_checkpoint() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let Some(group) = or_skipped("no kernel kills for memory here", MemoryGroup::new(BETWEEN))
    else {
        return;
    };
    let mut asked = config(3);
    asked["train_batch_size"] = json!(8);
    asked["train_micro_batch_size_per_gpu"] = json!(4);
    asked["gradient_accumulation_steps"] = json!(1);
    let job = Job::with_config(&home, &asked).running(program()).wrapped(&group.wrapper());
    let options = ["--fallback", "--resume-with", "--resume {}"];
    let arguments = "--steps 4 --save ckpt --save-every 2 --long-from 3";
    let (code, verdict) = job.start(&options, "torchrun", arguments).end();
    assert_eq!(code, Some(0), "{verdict:#}\n{}", job.printed());

    let attempts = verdict["attempts"].as_array().expect("attempts");
    let first = &attempts[0];
    assert_eq!(
        (&first["cause"], &first["memory"], &first["shortage"]),
        (&json!("out_of_memory"), &json!("host"), &json!("killed")),
        "{verdict:#}"
    );
    // Stage 3 is the highest, and offloading would fill the very memory that is short.
    let second = job.config(2);
    assert!(second["zero_optimization"].get("offload_optimizer").is_none(), "{second:#}");
    let micro = second["train_micro_batch_size_per_gpu"].as_u64().expect("a number");
    let accumulation = second["gradient_accumulation_steps"].as_u64().expect("a number");
    assert_eq!((micro, micro * accumulation * 2), (2, 8), "the samples per step are the same");
    let resumed = attempts[1]["resumed_from"].as_str().expect("a checkpoint");
    assert!(resumed.ends_with("ckpt/global_step2"), "{resumed}");
    let steps: Vec<u64> = job.losses().iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [1, 2, 3, 4], "each step is made once");
}
