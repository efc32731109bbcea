//! `--task` as a user runs it: jobs with several models on the same GPUs.

mod command;

use command::{run, run_in};
use serde_json::Value;

fn answer(arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["memory", "--json"].iter().chain(arguments).copied().collect();
    let run = run(&all);
    assert!(run.code < 2, "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("one JSON object")
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

/// Parameters of Llama 3.1 8B and Llama 3.2 1B, as published.
const LLAMA_8B: u64 = 8_030_261_248;
const LLAMA_1B: u64 = 1_235_814_400;

#[test]
fn a_reference_is_whole_below_stage_3_and_shared_in_it() {
    let of = |stage: &str| {
        let answer = answer(&[
            "--model",
            "llama-3.1-8b",
            "--gpus",
            "4x80GB",
            "--stage",
            stage,
            "--task",
            "dpo",
            "--grad-checkpointing",
        ]);
        assert_eq!(answer["task"], "dpo");
        assert_eq!(answer["models"][0]["role"], "reference");
        assert_eq!(number(&answer, "/models/0/parameters"), LLAMA_8B);
        number(&answer, "/models/0/device")
    };
    for stage in ["0", "1", "2"] {
        assert_eq!(of(stage), 2 * LLAMA_8B, "stage {stage}");
    }
    // A quarter of it, and the norms (65 of 4,096 elements) whole.
    assert_eq!(of("3"), 2 * LLAMA_8B / 4 + 65 * 4096 * 2);
}

/// Parameters of a Llama 3.1 8B that judges: without the output projection, with a head of one column.
const JUDGE_8B: u64 = LLAMA_8B - 128_256 * 4096 + 4096;

#[test]
fn ppo_trains_two_models_in_one_engine_and_runs_two_more() {
    let job = "--model llama-3.1-8b --gpus 8x80GB --task ppo --seq-len 512 --stage";
    let of = |more: &str| {
        let all = format!("{job} {more}");
        answer(&all.split_whitespace().collect::<Vec<_>>())
    };
    let whole = of("2");
    assert_eq!(number(&whole, "/critic/parameters"), JUDGE_8B);
    let [reference, judge] = [0, 1].map(|place| &whole["models"][place]);
    assert_eq!((&reference["role"], &judge["role"]), (&"reference".into(), &"reward".into()));
    assert_eq!(number(reference, "/device"), 2 * LLAMA_8B);
    assert_eq!(number(judge, "/device"), 2 * JUDGE_8B);
    // An eighth of the weights of both, and their norms (65 of 4,096 elements each) and one head whole.
    let shared = of("3");
    let of_both = |what: &str| number(&shared, &format!("/device/at_peak/{what}"));
    assert_eq!(of_both("weights"), 2 * (LLAMA_8B + JUDGE_8B) / 8 + (65 + 66) * 4096 * 2);
    assert_eq!(of_both("optimizer_states"), 8 * (LLAMA_8B + JUDGE_8B) / 8);
    // A smaller judge is also what the value model is like, unless that is named too.
    let small = of("2 --reward-model llama-3.2-1b");
    let judge_1b = LLAMA_1B + 2048;
    assert_eq!(number(&small, "/critic/parameters"), judge_1b);
    assert_eq!(number(&small, "/models/1/device"), 2 * judge_1b);
    let named = of("2 --reward-model llama-3.2-1b --critic llama-3.1-8b");
    assert_eq!(number(&named, "/critic/parameters"), JUDGE_8B);
}

/// With adapters TRL trains all of the value model, ms-swift adapters on it and its head.
#[test]
fn who_trains_the_value_model_of_ppo_decides_how_much_of_it() {
    let job = "--model llama-3.1-8b --gpus 4x80GB --task ppo --seq-len 512 --stage 2 --method lora";
    let of = |trainer: &str| {
        let all = format!("{job} --trainer {trainer}");
        number(
            &answer(&all.split_whitespace().collect::<Vec<_>>()),
            "/device/at_peak/optimizer_states",
        )
    };
    // Two moments in 32 bits of everything that is trained, a quarter on each GPU.
    let moments = 8 * JUDGE_8B / 4;
    let (trl, swift) = (of("trl"), of("swift"));
    assert!(trl > moments && trl < moments + moments / 10, "{trl} for {moments}");
    assert!(swift < moments / 50, "{swift}");
}

#[test]
fn grpo_runs_a_reward_model_beside_the_policy() {
    let job = "--model llama-3.2-1b --gpus 4x80GB --task grpo --stage 3";
    let of = |more: &str| {
        let all = format!("{job} {more}");
        answer(&all.split_whitespace().collect::<Vec<_>>())
    };
    assert_eq!(of("")["models"].as_array().map(Vec::len), Some(0));
    let judged = of("--reward-model llama-3.1-8b");
    assert_eq!(judged["models"][0]["role"], "reward");
    // A quarter of it, and the norms (65 of 4,096 elements) and the head whole.
    assert_eq!(number(&judged, "/models/0/device"), 2 * JUDGE_8B / 4 + 66 * 4096 * 2);
    assert!(number(&judged, "/device/peak/others/reward") > 0);
}

#[test]
fn a_distillation_names_both_models_in_one_answer() {
    let arguments = [
        "--model",
        "llama-3.2-1b",
        "--teacher",
        "llama-3.1-8b",
        "--gpus",
        "4x24GB",
        "--stage",
        "3",
        "--offload",
        "--micro-batch",
        "2",
        "--seq-len",
        "1024",
        "--task",
        "distill",
    ];
    let json = answer(&arguments);
    assert_eq!(json["models"][0]["role"], "teacher");
    assert_eq!(number(&json, "/parameters/total"), LLAMA_1B);
    assert_eq!(number(&json, "/models/0/parameters"), LLAMA_8B);
    // Its shares are in host memory, as the option survives for a frozen model.
    assert_eq!(number(&json, "/models/0/host"), 2 * LLAMA_8B / 4);
    // 24 bytes for each of 2 · 1024 · 128256 logits, at the least.
    let loss = number(&json, "/device/peak/others/loss");
    assert!(loss > 24 * 2 * 1024 * 128_256, "{loss}");
    let all: Vec<&str> = ["memory"].iter().chain(&arguments).copied().collect();
    let text = run(&all).stdout;
    assert!(text.contains("teacher: 8.03 B parameters, frozen"), "{text}");
}

#[test]
fn what_a_reference_costs_is_saved_by_each_way_around_it() {
    let expected = |more: &[&str]| {
        let job = ["--model", "llama-3.1-8b", "--gpus", "4x80GB", "--stage", "2", "--task", "dpo"];
        let all: Vec<&str> = job.iter().chain(more).copied().collect();
        let answer = answer(&all);
        (number(&answer, "/device/expected"), answer["models"].as_array().map_or(0, Vec::len))
    };
    let (copied, models) = expected(&[]);
    let (precomputed, none) = expected(&["--reference", "precomputed"]);
    assert_eq!((models, none), (1, 0));
    assert!(copied >= precomputed + 2 * LLAMA_8B, "{copied} {precomputed}");
    let (adapters, none) = expected(&["--method", "lora"]);
    assert!(adapters < precomputed && none == 0, "{adapters}");
}

#[test]
fn generation_gathers_the_whole_model_in_stage_3() {
    let of = |stage: &str| {
        let answer = answer(&[
            "--model",
            "llama-3.1-8b",
            "--gpus",
            "4x80GB",
            "--stage",
            stage,
            "--task",
            "grpo",
            "--grad-checkpointing",
            "--seq-len",
            "1024",
        ]);
        let rest = number(&answer, "/tensors/after_step/total");
        number(&answer, "/device/peak/others/generate") - rest
    };
    // What is not gathered already: all but the norms.
    let gathered = 2 * (LLAMA_8B - 65 * 4096);
    let (sharded, whole) = (of("3"), of("2"));
    assert_eq!(sharded, gathered + whole);
}

/// GRPO of Llama 3.1 8B on eight H100, its completions generated as `more` says.
fn grpo(more: &str) -> Value {
    let job = "--model llama-3.1-8b --gpus 8xH100 --stage 3 --grad-checkpointing --task grpo";
    let all: Vec<&str> = job.split(' ').chain(more.split(' ')).collect();
    answer(&all)
}

const GIB: u64 = 1 << 30;

#[test]
fn vllm_on_the_same_gpus_takes_its_share_of_each() {
    let server = grpo("--rollout server");
    assert!(server["rollout"].is_null());
    let awake = grpo("--rollout vllm");
    // 0.3 of the card by default, as TRL has it.
    let share = number(&awake, "/device/capacity") / 1000 * 300;
    assert_eq!(number(&awake, "/rollout/generating"), share);
    assert_eq!(number(&awake, "/rollout/training/expected"), share);
    let need = |answer: &Value| number(answer, "/device/expected");
    assert_eq!(need(&awake), need(&server) + share);
    // Weights in 16 bits, about 2 GiB to run; the cache has the rest: keys and values of 8 heads of 128 in 32 layers.
    assert_eq!(number(&awake, "/rollout/weights"), 2 * LLAMA_8B);
    let cache = share - 2 * LLAMA_8B - 2 * GIB;
    assert_eq!(number(&awake, "/rollout/cache"), cache);
    assert_eq!(number(&awake, "/rollout/cached_tokens"), cache / (2 * 2 * 8 * 128 * 32));
    let split = grpo("--rollout vllm --vllm-tensor-parallel-size 4");
    assert_eq!(number(&split, "/rollout/weights"), 2 * LLAMA_8B / 4);
    assert_eq!(
        number(&split, "/rollout/cached_tokens"),
        number(&split, "/rollout/cache") / (2 * 2 * 2 * 128 * 32)
    );
}

#[test]
fn a_sleeping_vllm_meets_only_what_rests_on_the_gpu() {
    let asleep = grpo("--rollout vllm --vllm-sleep --vllm-gpu-memory-utilization 0.5");
    assert_eq!(asleep["rollout"]["sleeps"], true);
    assert_eq!(number(&asleep, "/rollout/training/expected"), 2 * GIB);
    assert_eq!(asleep["device"]["peak"]["phase"], "generate");
    // Sixteen bytes for each parameter (weights, gradients, master weights and two moments), an eighth on each GPU, and
    // 500 million elements of gradients in 16 bits.
    let at_rest = 16 * LLAMA_8B / 8 + 1_000_000_000;
    let driver: u64 = ["context", "communicators"].iter().map(|name| term(&asleep, name)).sum();
    let need = number(&asleep, "/device/expected");
    let share = number(&asleep, "/rollout/generating");
    let predicted = at_rest + driver + share;
    assert!(need.abs_diff(predicted) < predicted / 500, "{need} {predicted}");
    // Checkpoints of 32 × 4096 tokens in 32 layers take 34 GB: more than a small share.
    let small = grpo(
        "--rollout vllm --vllm-sleep --vllm-gpu-memory-utilization 0.22 --micro-batch 32 --seq-len 4096",
    );
    assert_ne!(small["device"]["peak"]["phase"], "generate");
}

fn term(answer: &Value, name: &str) -> u64 {
    let terms = answer["device"]["terms"].as_array().expect("terms");
    let found = terms.iter().find(|term| term["term"] == name).expect("the term");
    number(found, "/bytes/expected")
}

#[test]
fn adapters_are_merged_into_the_whole_model_for_vllm() {
    // Each rank gathers all weights in stage 3; without adapters one tensor after the other.
    let lora = grpo("--rollout server --method lora");
    assert_eq!(lora["device"]["peak"]["phase"], "generate");
    let gathered = number(&lora, "/device/at_peak/gathered_weights");
    assert!(gathered.abs_diff(2 * LLAMA_8B) < LLAMA_8B / 50, "{gathered}");
    let full = grpo("--rollout server");
    assert_ne!(full["device"]["peak"]["phase"], "generate");
    let embedding = 128_256 * 4096 * 2;
    let published = number(&full, "/device/peak/others/generate");
    let at_rest = 16 * LLAMA_8B / 8 + 1_000_000_000;
    assert!(published.abs_diff(at_rest + embedding) < at_rest / 200, "{published}");
}

#[test]
fn completions_of_a_whole_step_are_generated_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("ds.json");
    let text = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8,
        "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;
    std::fs::write(&config, text).expect("it is written");
    let config = config.to_str().expect("a name");
    let job = ["memory", "--model", "llama-3.2-1b", "--gpus", "4x80GB", "--config", config];
    let all: Vec<&str> =
        job.iter().chain(&["--task", "grpo", "--completion-len", "512"]).copied().collect();
    let text = run(&all).stdout;
    assert!(text.contains("generates 16 completions of 512 tokens"), "{text}");
}

#[test]
fn gkd_generates_unless_the_data_set_has_the_completions() {
    let of = |more: &[&str]| {
        let job = ["--model", "llama-3.2-1b", "--teacher", "llama-3.1-8b", "--gpus", "4x80GB"];
        let all: Vec<&str> = job.iter().chain(&["--task", "gkd"]).chain(more).copied().collect();
        answer(&all)["device"]["peak"]["others"]["generate"].as_u64()
    };
    // Stage 3 gathers all of the student.
    assert!(of(&[]).is_some_and(|peak| peak > 2 * LLAMA_1B));
    assert_eq!(of(&["--rollout", "none"]), None);
}

#[test]
fn every_task_is_answered_and_drawn() {
    for task in ["sft", "dpo", "kto", "orpo", "cpo", "reward", "grpo", "rloo", "distill", "gkd"] {
        let teacher: &[&str] = match task {
            "distill" | "gkd" => &["--teacher", "llama-3.1-8b"],
            _ => &[],
        };
        for verb in ["memory", "simulate"] {
            let job = [
                verb,
                "--model",
                "llama-3.2-1b",
                "--gpus",
                "4xA100-80G",
                "--task",
                task,
                "--seq-len",
                "512",
                "--timeline",
            ];
            let all: Vec<&str> = job.iter().chain(teacher).copied().collect();
            let run = run(&all);
            assert!(run.code < 2, "{all:?}: {}", run.stderr);
        }
    }
}

/// What happens once in a step must free what it allocates, or every further micro step would free it again.
#[test]
fn micro_steps_leave_nothing_behind() {
    let job = "--model llama-3.2-1b --gpus 4xA100-40G --stage 3 --rollout server";
    for task in ["grpo", "grpo --reference copy", "grpo --trainer swift", "rloo"] {
        for more in
            ["", "--method lora", "--method lora --grad-checkpointing", "--grad-checkpointing"]
        {
            // What rests on the GPU when a step begins, and the weights that are gathered for the server.
            let begins = |steps: &str| {
                let all = format!("{job} --task {task} {more} --grad-accum {steps}");
                let answer = answer(&all.split_whitespace().collect::<Vec<_>>());
                number(&answer, "/device/peak/others/generate")
            };
            assert_eq!(begins("1"), begins("4"), "{task} {more}");
        }
    }
}

#[test]
fn a_task_that_makes_no_sense_says_what_to_do() {
    let job = ["memory", "--model", "llama-3.2-1b", "--gpus", "4x24GB"];
    for (more, problem) in [
        (&["--task", "gkd"][..], "needs a teacher"),
        (
            &["--task", "gkd", "--teacher", "qwen3-8b"][..],
            "128256 tokens, but the teacher's has 151936",
        ),
        (&["--teacher", "qwen3-8b"][..], "`--teacher` has no effect with `--task sft`"),
        (&["--task", "dpo", "--reference", "adapters-off"][..], "needs adapters"),
        (&["--task", "orpo", "--reference", "copy"][..], "has no effect with `--task orpo`"),
        (
            &["--task", "dpo", "--completion-len", "4096", "--seq-len", "2048"][..],
            "more than the 2048 tokens",
        ),
        (&["--task", "grpo", "--vllm-sleep"][..], "add `--rollout vllm`"),
        (&["--task", "ppo", "--vllm-sleep"][..], "`--vllm-sleep` has no effect with `--task ppo`"),
        (
            &["--task", "grpo", "--rollout", "vllm", "--vllm-tensor-parallel-size", "0"][..],
            "`--vllm-tensor-parallel-size` is 0",
        ),
        (&["--task", "ppo", "--rollout-batch", "0"][..], "`--rollout-batch` is 0"),
        (&["--task", "ppo", "--reference", "none"][..], "needs a reference"),
        (&["--task", "ppo", "--rollout", "vllm"][..], "`--rollout` has no effect"),
        (&["--task", "ppo", "--trainer", "llamafactory"][..], "a value head on the policy"),
        (&["--task", "grpo", "--critic", "qwen3-8b"][..], "`--critic` has no effect"),
        (&["--task", "dpo", "--reward-model", "qwen3-8b"][..], "`--reward-model` has no effect"),
        (
            &["--task", "grpo", "--rollout", "vllm", "--vllm-gpu-memory-utilization", "1.5"][..],
            "cannot use a fraction of 1.5 of the GPU memory",
        ),
        (
            &["--task", "grpo", "--rollout", "vllm", "--vllm-tensor-parallel-size", "3"][..],
            "cannot form equal groups of 3",
        ),
        (
            &["--task", "grpo", "--rollout", "vllm", "--vllm-gpu-memory-utilization", "0.1"][..],
            "vLLM cannot start",
        ),
    ] {
        let all: Vec<&str> = job.iter().chain(more).copied().collect();
        let run = run(&all);
        assert!(run.code == 2 && run.stderr.contains(problem), "{more:?}: {}", run.stderr);
        assert!(run.stderr.contains("help:"), "{}", run.stderr);
    }
    let t5 = run(&["memory", "--model", "t5-3b", "--gpus", "4x24GB", "--task", "dpo"]);
    assert!(t5.code == 2 && t5.stderr.contains("causal language models"), "{}", t5.stderr);
}

#[test]
fn generation_is_not_timed_and_that_is_said() {
    let run =
        run(&["simulate", "--model", "llama-3.2-1b", "--gpus", "4xA100-80G", "--task", "grpo"]);
    assert!(run.stdout.contains("`generate`"), "{}", run.stdout);
    assert!(run.stdout.contains("each GPU generates 1 completion of"), "{}", run.stdout);
}

const DS: &str = r#"{"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"},
    "bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}"#;

/// What a script of TRL's says, beside what all of them have.
fn trl(trainer: &str, arguments: &str, trainer_arguments: &str) -> (&'static str, String) {
    let text = format!(
        "from trl import {trainer}Config, {trainer}Trainer\n\
         args = {trainer}Config(output_dir='o', deepspeed='ds.json', bf16=True, per_device_train_batch_size=2, {arguments})\n\
         {trainer}Trainer(model='meta-llama/Llama-3.2-1B', args=args, train_dataset=data{trainer_arguments}).train()\n"
    );
    ("train.py", text)
}

fn llamafactory(more: &str) -> (&'static str, String) {
    let text = format!(
        "model_name_or_path: meta-llama/Llama-3.2-1B\nper_device_train_batch_size: 2\nbf16: true\n\
         deepspeed: ds.json\ncutoff_len: 1024\n{more}"
    );
    ("train.yaml", text)
}

fn swift(more: &str) -> (&'static str, String) {
    let text = format!(
        "NPROC_PER_NODE=4 swift rlhf --model meta-llama/Llama-3.2-1B --per_device_train_batch_size 2 --bf16 true \
         --deepspeed ds.json --max_length 1024 {more}\n"
    );
    ("train.sh", text)
}

/// The answer to a job file is the answer to what it says, given as options.
#[test]
fn a_job_file_gives_the_same_as_the_options() {
    let of_trl = "--task dpo --seq-len 1024";
    let of_swift = "--trl-version 0.29 --seq-len 1024";
    let full = "--method full";
    let lora = "--method lora --lora-rank 8";
    let jobs = [
        (trl("DPO", "", ""), of_trl.to_owned()),
        (
            trl("DPO", "precompute_ref_log_probs=True, max_length=512", ""),
            "--task dpo --seq-len 512 --reference precomputed".to_owned(),
        ),
        (trl("KTO", "", ""), "--task kto --seq-len 1024".to_owned()),
        (trl("ORPO", "", ""), "--task orpo --seq-len 1024".to_owned()),
        (trl("CPO", "loss_type='simpo'", ""), "--task cpo --seq-len 1024".to_owned()),
        (trl("Reward", "", ""), "--task reward --seq-len 1024".to_owned()),
        (
            trl("GKD", "lmbda=0.0", ", teacher_model='meta-llama/Llama-3.1-8B'"),
            "--task gkd --teacher llama-3.1-8b --seq-len 1024 --completion-len 128 --rollout none"
                .to_owned(),
        ),
        (
            trl("PPO", "response_length=128", ", reward_model='meta-llama/Llama-3.1-8B'"),
            "--task ppo --reward-model llama-3.1-8b --completion-len 128 --seq-len 2048".to_owned(),
        ),
        (
            trl("GRPO", "", ", reward_funcs='meta-llama/Llama-3.1-8B'"),
            "--task grpo --reward-model llama-3.1-8b --seq-len 2048 --completion-len 512"
                .to_owned(),
        ),
        (
            trl("GRPO", "max_completion_length=256, max_prompt_length=512", ""),
            "--task grpo --seq-len 768 --completion-len 256".to_owned(),
        ),
        (
            trl("GRPO", "beta=0.04, use_vllm=True, vllm_mode='server'", ""),
            "--task grpo --seq-len 2048 --completion-len 512 --reference copy --rollout server"
                .to_owned(),
        ),
        (
            trl(
                "GRPO",
                "use_vllm=True, vllm_enable_sleep_mode=True, vllm_gpu_memory_utilization=0.4, vllm_tensor_parallel_size=2",
                "",
            ),
            "--task grpo --seq-len 2048 --completion-len 512 --rollout vllm --vllm-sleep \
             --vllm-gpu-memory-utilization 0.4 --vllm-tensor-parallel-size 2"
                .to_owned(),
        ),
        (
            trl("RLOO", "max_completion_length=4096", ""),
            "--task rloo --seq-len 8192 --completion-len 4096 --reference copy".to_owned(),
        ),
        (
            llamafactory("stage: dpo\nfinetuning_type: full\n"),
            format!("--task dpo --seq-len 1024 --trainer llamafactory {full}"),
        ),
        (
            llamafactory("stage: dpo\npref_loss: simpo\nfinetuning_type: full\n"),
            format!("--task dpo --seq-len 1024 --trainer llamafactory --reference none {full}"),
        ),
        (
            llamafactory("stage: kto\nfinetuning_type: lora\n"),
            format!("--task kto --seq-len 1024 --trainer llamafactory {lora}"),
        ),
        (
            swift("--rlhf_type dpo --train_type full"),
            format!("--task dpo --trainer swift {of_swift} {full}"),
        ),
        (swift("--rlhf_type kto"), format!("--task kto --trainer swift {of_swift} {lora}")),
        (swift("--rlhf_type orpo"), format!("--task orpo {of_swift} {lora}")),
        (swift("--rlhf_type simpo"), format!("--task cpo {of_swift} {lora}")),
        (swift("--rlhf_type rm --train_type full"), format!("--task reward {of_swift} {full}")),
        (
            swift("--rlhf_type gkd --teacher_model meta-llama/Llama-3.1-8B --train_type full"),
            format!("--task gkd --teacher llama-3.1-8b --completion-len 512 {of_swift} {full}"),
        ),
        (
            swift("--rlhf_type grpo --use_vllm true --vllm_mode colocate --sleep_level 1"),
            format!(
                "--task grpo --trainer swift --trl-version 0.29 --seq-len 1536 --completion-len 512 \
                 --reference adapters-off --rollout vllm --vllm-gpu-memory-utilization 0.9 --vllm-sleep {lora}"
            ),
        ),
        (
            swift("--rlhf_type ppo --reward_model meta-llama/Llama-3.1-8B --train_type full"),
            format!(
                "--task ppo --reward-model llama-3.1-8b --trainer swift --trl-version 0.29 --seq-len 1536 \
                 --completion-len 512 {full}"
            ),
        ),
        (
            swift("--rlhf_type grpo --max_completion_length 512"),
            format!(
                "--task grpo --trainer swift --trl-version 0.29 --seq-len 1536 --completion-len 512 \
                 --reference adapters-off {lora}"
            ),
        ),
    ];
    for ((name, text), options) in jobs {
        compare(name, &text, &options);
    }
}

/// `GRPOConfig.__post_init__` and `_prepare_inputs`: so many micro-batches generate at once, those of a step by default.
#[test]
fn completions_per_generation_are_read_from_the_trainer() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("ds.json"), DS).expect("it is written");
    let ask = |verb: &str, trainer: &str, more: &str| {
        let arguments = format!("gradient_accumulation_steps=4{more}");
        let (name, text) = trl(trainer, &arguments, "");
        std::fs::write(directory.path().join(name), text).expect("it is written");
        let run = run_in(directory.path(), &[verb, name, "--gpus", "4xA100-80G"]);
        assert!(run.code < 2, "{more}: {}", run.stderr);
        run.stdout
    };
    for trainer in ["GRPO", "RLOO"] {
        let of = |more: &str| ask("memory", trainer, more);
        for (more, completions) in [
            ("", "8 completions"),
            (", steps_per_generation=16", "32 completions"),
            (", steps_per_generation=1", "2 completions"),
            // Of all four GPUs.
            (", generation_batch_size=64", "16 completions"),
            (", num_iterations=2", "8 completions"),
        ] {
            let text = of(more);
            assert!(text.contains(&format!("generates {completions}")), "{more}: {text}");
        }
        let text = of(", steps_per_generation=16");
        let stated = |line: &str| line.contains("steps_per_generation") && line.contains("16  ");
        assert!(text.lines().any(stated), "{text}");
    }
    let left_out = |verb: &str, more: &str| {
        let text = ask(verb, "GRPO", more);
        let lines = text.lines().filter(|line| line.starts_with("Not modeled"));
        let said = |words: &str| lines.clone().filter(|line| line.contains(words)).count();
        (said("not repeated once per optimizer step"), said("the plan counts those of one"))
    };
    assert_eq!(left_out("simulate", ""), (0, 0));
    assert_eq!(left_out("simulate", ", steps_per_generation=4"), (0, 0));
    assert_eq!(left_out("simulate", ", steps_per_generation=8"), (1, 0));
    assert_eq!(left_out("simulate", ", num_iterations=2"), (1, 0));
    assert_eq!(left_out("plan", ", steps_per_generation=8"), (1, 1));
    assert_eq!(left_out("plan", ", num_iterations=2"), (1, 0));
    assert_eq!(left_out("plan", ""), (0, 0));
}

/// The answer to a job file is the answer to options, and nothing of its task is left out.
fn compare(name: &str, text: &str, options: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("it is written");
    };
    write(name, text);
    write("ds.json", DS);
    let ask = |arguments: &[&str]| {
        let all = ["memory", "--json", "--gpus", "4xA100-80G"];
        let all: Vec<&str> = all.iter().chain(arguments).copied().collect();
        let run = run_in(directory.path(), &all);
        assert!(run.code < 2, "{text}{options}: {}", run.stderr);
        let mut answer: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
        let said = answer.as_object_mut().and_then(|answer| answer.remove("provenance"));
        (answer, said.expect("what it rests on"))
    };
    let (of_job, said) = ask(&[name]);
    let words: Vec<&str> = options.split_whitespace().collect();
    let common = ["--model", "meta-llama/Llama-3.2-1B", "--config", "ds.json"];
    let batch = ["--micro-batch", "2", "--precision", "bf16"];
    // The trainers of PPO do not read what their arguments say of it.
    let is_ppo = words.contains(&"ppo");
    let checkpointing = Some("--grad-checkpointing").filter(|_| !is_ppo);
    let all = common.iter().chain(&batch).chain(&checkpointing).chain(&words);
    let all: Vec<&str> = all.copied().collect();
    let (of_options, _) = ask(&all);
    assert_eq!(of_job, of_options, "{text}{options}");
    let left_out = said["not_modelled"].to_string();
    assert!(!left_out.contains("the other models"), "{text}: {left_out}");
}

#[test]
fn what_no_answer_follows_of_a_job_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    for (job, words) in [
        (
            format!(
                "# /// script\n# dependencies = [\"trl==0.11.4\"]\n# ///\n{}",
                trl("PPO", "", "").1
            ),
            "this task's loss and other models",
        ),
        (trl("PPO", "num_mini_batches=2", "").1, "several optimizer steps per rollout"),
        (trl("PPO", "", "").1, "do not read `gradient_checkpointing`"),
        (trl("DPO", "use_liger_kernel=True", "").1, "fused loss for this task"),
    ] {
        std::fs::write(directory.path().join("train.py"), &job).expect("it is written");
        std::fs::write(directory.path().join("ds.json"), DS).expect("it is written");
        let run = run_in(directory.path(), &["memory", "train.py", "--gpus", "4xA100-80G"]);
        assert!(run.code < 2 && run.stdout.contains(words), "{job}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn before_trl_1_10_frozen_models_get_the_optimizer_of_the_config() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = r#"{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}, "train_micro_batch_size_per_gpu": 1}"#;
    std::fs::write(directory.path().join("ds.json"), config).expect("it is written");
    let of = |version: &str| {
        let job = [
            "memory",
            "--json",
            "--model",
            "llama-3.2-1b",
            "--gpus",
            "4x80GB",
            "--config",
            "ds.json",
        ];
        let more = ["--task", "dpo", "--trl-version", version];
        let all: Vec<&str> = job.iter().chain(&more).copied().collect();
        let run = run_in(directory.path(), &all);
        assert!(run.code < 2, "{}", run.stderr);
        let answer: Value = serde_json::from_str(&run.stdout).expect("one JSON object");
        number(&answer, "/models/0/device")
    };
    // 16-bit weights; with an optimizer also fp32 weights and two moments of each, as recorded of stage 0.
    assert_eq!(of("1.10"), 2 * LLAMA_1B);
    assert!(of("1.9") >= 14 * LLAMA_1B);
}

#[test]
fn a_plan_chooses_the_share_of_vllm() {
    let plan = |more: &str| {
        let job =
            "plan --model llama-3.1-8b --gpus 8xH100 --task grpo --rollout vllm --global-batch 128";
        let all: Vec<&str> = job.split(' ').chain(more.split_whitespace()).collect();
        let run = run(&all);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        run.stdout
    };
    // Weights of 16.06 GB, 2.15 GB to run, and 16 sequences of 2,048 tokens of 131,072 bytes, 4.3 GB: 22.5 of 84.9 GB.
    let chosen = plan("");
    assert!(
        chosen.contains("vllm_gpu_memory_utilization=0.3, vllm_enable_sleep_mode=True"),
        "{chosen}"
    );
    // A quarter of the weights, and 64 sequences with a quarter of the heads: 4.0 + 2.15 + 4.3 GB.
    let split = plan("--vllm-tensor-parallel-size 4");
    assert!(split.contains("vllm_gpu_memory_utilization=0.15"), "{split}");
    // A cache of 68.7 GB would hold all sequences; it gets a third of the GPU: 16.06 + 2.15 + 28.3 GB.
    let long = plan("--seq-len 32768 --completion-len 16384");
    assert!(long.contains("vllm_gpu_memory_utilization=0.55"), "{long}");
    let said = plan("--vllm-gpu-memory-utilization 0.45 --vllm-sleep=false");
    assert!(said.contains("vllm_gpu_memory_utilization=0.45)"), "{said}");
}

#[test]
fn a_plan_fits_all_models_of_a_task() {
    let of = |more: &[&str]| {
        let job = [
            "plan",
            "--json",
            "--model",
            "llama-3.1-8b",
            "--gpus",
            "4xA100-80G",
            "--seq-len",
            "2048",
        ];
        let all: Vec<&str> =
            job.iter().chain(&["--global-batch", "16"]).chain(more).copied().collect();
        let run = run(&all);
        assert!(run.code < 2, "{}", run.stderr);
        serde_json::from_str::<Value>(&run.stdout).expect("one JSON object")
    };
    let least = |answer: &Value, stage: u64| {
        let rejected = answer["rejected"].as_array().expect("a list");
        let fits = |one: &&Value| {
            one["strategy"]["stage"] == stage && one["strategy"]["offload_optimizer"] == "none"
        };
        rejected.iter().find(fits).map(|one| number(one, "/device/expected"))
    };
    let alone = of(&["--task", "dpo", "--reference", "precomputed"]);
    let compared = of(&["--task", "dpo"]);
    assert_eq!(compared["task"], "dpo");
    // A copy of the model is whole on every GPU below stage 3.
    let (alone, with_copy) =
        (least(&alone, 0).expect("too much"), least(&compared, 0).expect("too much"));
    assert!(with_copy >= alone + 2 * LLAMA_8B, "{alone} {with_copy}");
    let grpo = of(&["--task", "grpo"]);
    assert!(grpo["provenance"]["not_modelled"].to_string().contains("`generate`"), "{grpo}");
    // For the Trainer sizes are numbers, so that the reference has them too.
    let config = of(&["--task", "dpo", "--for", "hf-trainer"]);
    let zero = config.pointer("/recommended/config/zero_optimization").expect("a section");
    assert!(!zero.to_string().contains("auto"), "{zero}");
}
