//! What rules over jobs claim, asked of the jobs themselves: each is judged and then run, with the real launchers, the
//! real engine and the real front ends. The other side is `oracle/script_server.py`.
//!
//! LLaMA-Factory and ms-swift are not installed, and several nodes are not at hand: what is said of them is read in
//! sources.

#![cfg(feature = "job")]

use std::collections::BTreeSet;
use std::net::TcpListener;

use serde_json::{Map, Value, json};
use zeropilot_job::Outside;
use zeropilot_lint::job::judge;
use zeropilot_lint::{Diagnostic, Settings, Severity};
use zeropilot_oracle::{Oracle, part_of};

/// A job with the rule that has something to say about it, and what it prints when it is run.
struct Case {
    code: &'static str,
    command: &'static str,
    files: Vec<(&'static str, String)>,
    needs_model: bool,
    prints: &'static str,
}

fn case(code: &'static str, command: &'static str, prints: &'static str) -> Case {
    Case { code, command, files: Vec::new(), needs_model: false, prints }
}

impl Case {
    fn script(self, text: &str) -> Self {
        self.file("t.py", text)
    }

    fn config(self, config: Value) -> Self {
        self.file("ds.json", &config.to_string())
    }

    fn file(mut self, name: &'static str, text: &str) -> Self {
        self.files.push((name, text.to_owned()));
        self
    }

    fn model(mut self) -> Self {
        self.needs_model = true;
        self
    }

    /// The command with a port that is free.
    fn command(&self, port: u16) -> String {
        self.command.replace("PORT", &port.to_string())
    }
}

/// A config that trains on the CPU without anything being compiled.
fn plain(stage: u8) -> Value {
    json!({
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": true}},
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
    })
}

/// The same with an optimizer whose step is the gradient.
fn steps_by_gradient(stage: u8) -> Value {
    let mut config = plain(stage);
    config["gradient_clipping"] = json!(1.0);
    config["optimizer"] = json!({"type": "SGD", "params": {"lr": 1.0}});
    config["zero_allow_untested_optimizer"] = json!(true);
    config
}

/// For a script that brings its optimizer.
fn without_optimizer(stage: u8) -> Value {
    json!({
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "zero_allow_untested_optimizer": true,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
    })
}

/// For the HF Trainer.
fn filled(stage: u8, scheduler: Option<Value>) -> Value {
    let mut config = json!({
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "torch_adam": true}},
        "zero_optimization": {"stage": stage},
    });
    if let Some(scheduler) = scheduler {
        config["scheduler"] = scheduler;
    }
    config
}

/// The same with what the Trainer would leave to its default.
fn with_accumulation(steps: u64) -> Value {
    let mut config = filled(2, None);
    config["gradient_accumulation_steps"] = json!(steps);
    config
}

/// As the autotuner leaves it, or somebody who tried it.
fn autotuned() -> Value {
    let mut config = plain(1);
    config["autotuning"] = json!({"enabled": true});
    config
}

fn accumulating() -> Value {
    accumulating_in(1)
}

fn in_fp16() -> Value {
    let mut config = plain(2);
    config["fp16"] = json!({"enabled": true});
    config
}

fn accumulating_in(stage: u8) -> Value {
    let mut config = plain(stage);
    config["gradient_accumulation_steps"] = json!(4);
    config
}

fn with_batch(train: u64) -> Value {
    let mut config = plain(1);
    config["train_batch_size"] = json!(train);
    config
}

/// With more keys.
fn with(mut config: Value, keys: Value) -> Value {
    for (key, value) in keys.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    config
}

/// For two ranks that hold each weight together.
fn tensor_parallel() -> Value {
    with(plain(1), json!({"tensor_parallel": {"autotp_size": 2}}))
}

/// For two ranks that share their samples.
fn one_sample() -> Value {
    with_batch(1)
}

/// For two ranks with samples of their own.
fn two_samples() -> Value {
    with_batch(2)
}

fn with_writer() -> Value {
    let mut config = plain(1);
    config["checkpoint"] = json!({"writer": {"type": "MOCK"}});
    config
}

fn three_sizes() -> Value {
    json!({
        "train_batch_size": 16,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": true}},
        "zero_optimization": {"stage": 3},
    })
}

const TORCHRUN: &str = "torchrun --standalone --nproc_per_node 1 t.py";
const TWO: &str = "torchrun --standalone --nproc_per_node 2 t.py";
const ACCELERATE: &str = "accelerate launch --use_deepspeed --num_processes 1 --num_machines 1 --mixed_precision no --main_process_port PORT --deepspeed_config_file ds.json t.py";

fn engine_cases() -> Vec<Case> {
    let no_sync = include_str!("scripts/no_sync.py");
    let clipping = include_str!("scripts/clipping.py");
    let by_transformers = include_str!("scripts/saved_by_transformers.py");
    let by_torch = include_str!("scripts/saved_by_torch.py");
    let generation = include_str!("scripts/generation.py");
    let synced = generation.replace("do_sample=False", "do_sample=False, synced_gpus=True");
    let init = include_str!("scripts/early_init.py");
    let late = init.replace("import torch\n", "import torch\n\ndeepspeed.init_distributed()\n");
    let images = include_str!("scripts/images.py");
    let boundary = include_str!("scripts/boundary.py");
    let twice = include_str!("scripts/scheduler_twice.py");
    let pipeline = include_str!("scripts/pipeline.py");
    let unscaled = include_str!("scripts/loss_backward.py");
    let moe = include_str!("scripts/moe.py");
    let none = "";
    let mut cases = vec![
        case("H05", TORCHRUN, "no_sync context manager is incompatible")
            .script(no_sync)
            .config(plain(2)),
        case("H05", TORCHRUN, "no_sync context manager is incompatible")
            .script(no_sync)
            .config(plain(3)),
        case(none, TORCHRUN, "done").script(no_sync).config(plain(1)),
        case("Z06", TORCHRUN, "elements 0\n").script(by_transformers).config(plain(3)).model(),
        case("Z06", TORCHRUN, "elements 0\n").script(by_torch).config(plain(3)),
        case("Z06", TORCHRUN, "elements 0\n")
            .script(&by_torch.replace("engine.module.state_dict()", "model.state_dict()"))
            .config(plain(3)),
        case(none, TORCHRUN, "elements 72\n").script(by_torch).config(plain(2)),
        case("H01", TWO, "hangs").script(generation).config(plain(3)).model(),
        case(none, TWO, "done").script(&synced).config(plain(3)).model(),
        case("H09", TWO, "hangs").script(images).config(plain(3)),
        case("H09", TWO, "Signal 6 (SIGABRT)").script(images).config(plain(2)),
        case("H09", TWO, "Signal 6 (SIGABRT)").script(images).config(plain(1)),
        case(none, TWO, "done").script(images).config(plain(0)),
        case("B02", TWO, "train_batch_size is not equal to").script(init).config(three_sizes()),
        case(none, TWO, "done").script(&late).config(three_sizes()),
        case("B15", TORCHRUN, "updates 2\n").script(boundary).config(accumulating()),
        case(none, TORCHRUN, "updates 8\n")
            .script(&boundary.replace("    if (number + 1) % steps == 0:\n        ", "    "))
            .config(accumulating()),
        case("O33", TORCHRUN, "scheduler at 8\n").script(twice).config(without_optimizer(1)),
        case(none, TORCHRUN, "scheduler at 4\n")
            .script(&twice.replace("    scheduler.step()\n", ""))
            .config(without_optimizer(1)),
        case(
            "L19",
            "torchrun --standalone --nproc_per_node 1 t.py --deepspeed_config ds.json",
            "Not sure how to proceed",
        )
        .script(include_str!("scripts/two_configs.py"))
        .config(plain(1)),
        case("G23", TWO, "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism")
            .script(pipeline)
            .config(plain(2)),
        // Two ranks in two stages share their samples: 1 × 1 × 1.
        case(none, TWO, "done").script(pipeline).config(one_sample()),
        case("B01", TWO, "train_batch_size is not equal to").script(pipeline).config(two_samples()),
        case("H10", TWO, "hangs")
            .script(include_str!("scripts/one_rank_forward.py"))
            .config(plain(3)),
        case("O34", TORCHRUN, "KeyError: 0")
            .script(include_str!("scripts/optimizer_step.py"))
            .config(accumulating_in(2)),
        case("P22", TORCHRUN, "Loss scaling is required for this configuration")
            .script(unscaled)
            .config(in_fp16()),
        case(none, TORCHRUN, "done")
            .script(&unscaled.replace("loss.backward()", "engine.backward(loss)"))
            .config(in_fp16()),
        case("Z11", TORCHRUN, "Native DeepSpeed MoE is not supported with ZeRO Stage 3")
            .script(moe)
            .config(plain(3)),
        case(none, TORCHRUN, "done").script(moe).config(plain(2)),
        case("L20", TORCHRUN, "KeyError: 'CROSS_SIZE'")
            .script(include_str!("scripts/ten_steps.py"))
            .config(with_writer()),
        case("K29", TORCHRUN, "step 5\nAutotuning: done with running current ds config")
            .script(include_str!("scripts/ten_steps.py"))
            .config(autotuned()),
    ];
    for stage in [1, 2, 3] {
        let config = steps_by_gradient(stage);
        cases.push(case("O09", TORCHRUN, "seen 0.00 moved 1.00").script(clipping).config(config));
    }
    // The engine keeps the parameters of the model, and clips at 1.0 where nothing is set.
    let of_model =
        clipping.replace("engine.parameters(), max_norm", "model.parameters(), max_norm");
    let mut unset = steps_by_gradient(2);
    unset.as_object_mut().expect("an object").remove("gradient_clipping");
    cases.push(case("O09", TORCHRUN, "seen 0.00 moved 1.00").script(&of_model).config(unset));
    cases
}

/// What the HF Trainer's optimizer becomes under an offload.
fn offload_cases() -> Vec<Case> {
    let trained = include_str!("scripts/one_rank_trainer.py")
        .replace("if trainer.is_world_process_zero():\n    trainer.evaluate()\n", "");
    let offloaded = |key: &str, value: Value| {
        let mut config = filled(2, None);
        config.as_object_mut().expect("an object").remove("optimizer");
        config["zero_optimization"][key] = value;
        config
    };
    vec![
        case("O01", TORCHRUN, "You are using ZeRO-Offload with a client provided optimizer")
            .script(&trained)
            .config(offloaded("cpu_offload", json!(true)))
            .model(),
        case("", TORCHRUN, "done")
            .script(&trained)
            .config(offloaded("offload_optimizer", json!({"device": "cpu"})))
            .model(),
    ]
}

/// Ranks that do not call the same, and the same programs put right.
fn hang_cases() -> Vec<Case> {
    let save = include_str!("scripts/one_rank_save.py");
    let evaluation = include_str!("scripts/one_rank_evaluation.py");
    let barrier = include_str!("scripts/one_rank_barrier.py");
    let gather = include_str!("scripts/one_rank_gather.py");
    let skipped = include_str!("scripts/skipped_step.py");
    let agreed = skipped.replace(
        "    if torch.isnan(loss):\n",
        "    bad = torch.isnan(loss).float()\n    torch.distributed.all_reduce(bad)\n    if bad.item():\n",
    );
    let only_if = skipped.replace(
        "    if torch.isnan(loss):\n        continue\n    engine.backward(loss)\n    engine.step()\n",
        "    if torch.isfinite(loss):\n        engine.backward(loss)\n        engine.step()\n",
    );
    let uneven = include_str!("scripts/uneven_shards.py");
    let sometimes = include_str!("scripts/sometimes_layer.py");
    let always = sometimes.replace(
        "        if mask.any():\n            x = x + self.head(x)\n",
        "        x = x + self.head(x) * mask.any()\n",
    );
    let experts = include_str!("scripts/experts.py");
    let leaf = experts.replace(
        "engine, _, _, _ =",
        "deepspeed.utils.set_z3_leaf_modules(model, [Moe])\nengine, _, _, _ =",
    );
    let all_run =
        experts.replace("            if rows.numel() == 0:\n                continue\n", "");
    let none = "";
    vec![
        case("H08", TWO, "hangs").script(save).config(plain(1)),
        case(none, TWO, "done")
            .script(&save.replace(" and torch.distributed.get_rank() == 0", ""))
            .config(plain(1)),
        case("H10", TWO, "hangs").script(evaluation).config(plain(3)),
        case(none, TWO, "done").script(evaluation).config(plain(2)),
        case(none, TWO, "done")
            .script(&evaluation.replace("if is_main and number == 1", "if number == 1"))
            .config(plain(3)),
        case("H10", TWO, "hangs")
            .script(include_str!("scripts/one_rank_trainer.py"))
            .config(filled(2, None))
            .model(),
        case("H11", TWO, "hangs").script(barrier).config(plain(1)),
        case(none, TWO, "done")
            .script(&barrier.replace("    dist.barrier()", "dist.barrier()"))
            .config(plain(1)),
        case("H12", TWO, "hangs").script(gather).config(plain(3)),
        case(none, TWO, "done").script(gather).config(plain(2)),
        case(none, TWO, "done")
            .script(&gather.replace("if torch.distributed.get_rank() == 0:", "if True:"))
            .config(plain(3)),
        case("H13", TWO, "hangs").script(skipped).config(plain(0)),
        case("H13", TWO, "hangs").script(skipped).config(plain(2)),
        case("H13", TWO, "hangs").script(skipped).config(plain(3)),
        case("H13", TWO, "hangs").script(&only_if).config(plain(1)),
        case(none, TWO, "done").script(&agreed).config(plain(3)),
        case("H16", TWO, "hangs").script(uneven).config(plain(2)),
        case(none, TWO, "done").script(&uneven.replace("range(5)", "range(6)")).config(plain(2)),
        case("H14", TWO, "Signal 6 (SIGABRT)").script(sometimes).config(plain(1)),
        case("H14", TWO, "Signal 6 (SIGABRT)").script(sometimes).config(plain(2)),
        case("H14", TWO, "hangs").script(sometimes).config(plain(3)),
        case(none, TWO, "done").script(sometimes).config(plain(0)),
        case(none, TWO, "done").script(&always).config(plain(3)),
        // Weights of both experts make up what each rank computes with.
        case("H15", TWO, "instead of 0.5 and 1.0").script(experts).config(by_sum(3)),
        // 1.5, (1 + 2) / 2, for one or both.
        case("H15", TWO, "instead of 0.5 and 1.0").script(experts).config(by_sum(1)),
        case("H15", TWO, "instead of 0.5 and 1.0").script(experts).config(by_sum(2)),
        case(none, TWO, "experts moved by 0.5 and 1.0").script(experts).config(by_sum(0)),
        case(none, TWO, "experts moved by 0.5 and 1.0").script(&all_run).config(by_sum(2)),
        case(none, TWO, "experts moved by 0.5 and 1.0").script(&leaf).config(by_sum(3)),
    ]
}

/// Without clipping, and each weight moves by its gradient.
fn by_sum(stage: u8) -> Value {
    with(steps_by_gradient(stage), json!({"gradient_clipping": 0.0}))
}

/// Training code that runs and trains something else.
fn training_code_cases() -> Vec<Case> {
    let kept = include_str!("scripts/kept_graphs.py");
    let cleared = include_str!("scripts/cleared.py");
    let four = |stage| with(by_sum(stage), json!({"gradient_accumulation_steps": 4}));
    let unused = include_str!("scripts/unused_optimizer.py");
    let beside = include_str!("scripts/optimizer_beside.py");
    let mode = include_str!("scripts/evaluation_mode.py");
    let softmax = include_str!("scripts/softmax_twice.py");
    let scaled = include_str!("scripts/scaled_twice.py");
    let same = include_str!("scripts/same_samples.py");
    let loader = include_str!("scripts/loader_batch.py");
    let epoch = include_str!("scripts/sampler_epoch.py");
    let none = "";
    vec![
        case("T01", TORCHRUN, "graphs kept: 20\n").script(kept).config(plain(2)),
        case(none, TORCHRUN, "graphs kept: 0\n")
            .script(&kept.replace("append(loss)", "append(loss.item())"))
            .config(plain(2)),
        case("T01", TORCHRUN, "graphs kept: 20\n")
            .script(&kept.replace("    engine.backward(loss)\n    engine.step()\n", ""))
            .config(plain(2)),
        // Four gradients of 1 whose losses are divided by 4: the sum is 1, the last alone 0.25.
        case("T02", TORCHRUN, "moved by 0.25\n").script(cleared).config(four(1)),
        case("T02", TORCHRUN, "moved by 0.25\n").script(cleared).config(four(3)),
        case("T02", TORCHRUN, "moved by 0.25\n")
            .script(&cleared.replace("optimizer.zero_grad", "engine.zero_grad"))
            .config(four(0)),
        case(none, TORCHRUN, "moved by 1.00\n").script(cleared).config(four(2)),
        case(none, TORCHRUN, "moved by 1.00\n")
            .script(&cleared.replace("optimizer.zero_grad", "engine.zero_grad"))
            .config(four(3)),
        case(none, TORCHRUN, "moved by 1.00\n")
            .script(&cleared.replace("    optimizer.zero_grad()\n", ""))
            .config(four(1)),
        case("T03", TORCHRUN, "the engine's rate 0.001, the scheduler's 6.25e-05")
            .script(unused)
            .config(plain(2)),
        case(none, TORCHRUN, "the engine's rate 6.25e-05, the scheduler's 6.25e-05")
            .script(&unused.replace("model=model,", "model=model, optimizer=optimizer,"))
            .config(without_optimizer(2)),
        // The optimizer of the script has a rate of 100, that of the config a rate of 1.
        case("T09", TORCHRUN, "moved by 101.00\n").script(beside).config(by_sum(0)),
        case("T09", TORCHRUN, "moved by 1.00\n").script(beside).config(by_sum(1)),
        case("T09", TORCHRUN, "moved by 1.00\n").script(beside).config(by_sum(2)),
        case("T09", TORCHRUN, "moved by 1.00\n").script(beside).config(by_sum(3)),
        case(none, TORCHRUN, "moved by 1.00\n")
            .script(&beside.replace("optimizer.step()\n", ""))
            .config(by_sum(1)),
        case("T04", TORCHRUN, "epoch 1 dropped nothing").script(mode).config(plain(2)),
        case(none, TORCHRUN, "epoch 1 dropped some")
            .script(&mode.replace("    evaluate(engine)\n", "    evaluate(engine)\n    engine.train()\n"))
            .config(plain(2)),
        case("T05", TORCHRUN, "the loss ends at 0.3\n").script(softmax).config(by_sum(1)),
        case(none, TORCHRUN, "the loss ends at 0.0\n")
            .script(&softmax.replace("F.softmax(engine(x), dim=-1)", "engine(x)"))
            .config(by_sum(1)),
        case("T06", TORCHRUN, "moved by 65536\n").script(scaled).config(by_sum(1)),
        case(none, TORCHRUN, "moved by 1\n")
            .script(&scaled.replace("scaler.scale(engine(torch.ones(1, 4)).sum())", "engine(torch.ones(1, 4)).sum()"))
            .config(by_sum(1)),
        case("T07", TWO, "all saw the same\n").script(same).config(plain(1)),
        case(none, TWO, "all saw different samples\n")
            .script(&same.replace("shuffle=True", "sampler=torch.utils.data.DistributedSampler(data, 2, int(__import__('os').environ['RANK']))"))
            .config(plain(1)),
        case("B17", TORCHRUN, "trained on 16, counts 4\n").script(loader).config(plain(1)),
        case(none, TORCHRUN, "trained on 16, counts 16\n")
            .script(&loader.replace("batch_size=4", "batch_size=1"))
            .config(plain(1)),
        case("T08", TWO, "the order is the same\n").script(epoch).config(plain(1)),
        case(none, TWO, "the order is another one\n")
            .script(&epoch.replace("    orders.append([])\n", "    orders.append([])\n    sampler.set_epoch(epoch)\n"))
            .config(plain(1)),
    ]
}

/// Ranks that share sequences or layers, and tiles.
fn parallelism_cases() -> Vec<Case> {
    let ulysses = include_str!("scripts/ulysses.py");
    let without_positions = ulysses.replace(", position_ids=positions[:, mine]", "");
    let adapters = include_str!("scripts/tiled_adapters.py");
    let sharded = include_str!("scripts/sharded_load.py");
    let tensor = include_str!("scripts/tensor_parallel.py");
    let loss = include_str!("scripts/tiled_loss.py");
    let tied = include_str!("scripts/tied_tiles.py");
    let tied_sequence = tied.replace(
        "TiledFusedLogitsLoss.apply(compute, self, hidden, tokens, None, 2, weights, \"mean\")",
        "sequence_tiled_compute(compute, 8, 2, {\"x\": hidden, \"y\": tokens}, {\"self\": self}, \"x\", weights, 0, \"mean\")",
    );
    let none = "";
    vec![
        case("G21", TWO, "the norm is 2.00 times").script(ulysses).config(plain(2)),
        case("G21", TWO, "the norm is 2.00 times").script(ulysses).config(plain(1)),
        case(none, TWO, "the norm is 1.00 times").script(ulysses).config(plain(3)),
        case("P23", TWO, "stack expects a non-empty TensorList").script(ulysses).config(with(
            plain(1),
            json!({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}),
        )),
        case("G25", TWO, "the loss is another one").script(&without_positions).config(plain(3)),
        case(none, TWO, "the loss is equal").script(ulysses).config(plain(3)),
        case("L22", TWO, "eager attn_implementation isn't currently supported by Ulysses")
            .script(&ulysses.replace("\"sdpa\"", "\"eager\""))
            .config(plain(3)),
        case(
            "L22",
            "torchrun --standalone --nproc_per_node 3 t.py",
            "is not divisible by sequence_parallel_size 2",
        )
        .script(ulysses)
        .config(plain(3)),
        case("L22", TWO, "Data inconsistency within the TP group")
            .script(ulysses)
            .config(tensor_parallel()),
        case("L23", TWO, "Data inconsistency within the TP group")
            .script(tensor)
            .config(tensor_parallel()),
        // Two ranks compute one sample, and two are counted.
        case("B16", TWO, "a step counts 2\n")
            .script(&tensor.replace("Sampler(data)", "Sampler(data, num_replicas=1, rank=0)"))
            .config(with(tensor_parallel(), json!({"train_batch_size": 2}))),
        case("K34", TWO, "ranks that share a sequence: 1\n")
            .script(include_str!("scripts/key_alone.py"))
            .config(with(plain(1), json!({"sequence_parallel_size": 2}))),
        case("G26", TWO, "Gradient computed twice for this partition")
            .script(adapters)
            .config(plain(2)),
        case("Z12", TWO, "Error(s) in loading state_dict").script(sharded).config(plain(3)),
        case(none, TWO, "loaded 1.0")
            .script(&sharded.replace(
                "model.load_state_dict",
                "with deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0):\n    model.load_state_dict",
            ))
            .config(plain(3)),
        case("F20", TWO, "has no attribute 'norm_for_param_grads'")
            .script(include_str!("scripts/super_offload.py"))
            .config(with(
                plain(3),
                json!({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none", "super_offload": true}}}),
            )),
        case("G26", TWO, "AssertionError").script(adapters).config(plain(3)),
        case(none, TWO, "done").script(adapters).config(plain(1)),
        case(none, TWO, "done")
            .script(&adapters.replace("x, 2, weights", "x, 2, list(self.parameters())"))
            .config(plain(3)),
        case("G28", TWO, "Gradient computed twice for this partition").script(tied).config(plain(2)),
        case("G28", TWO, "AssertionError").script(tied).config(plain(3)),
        case("G28", TWO, "Gradient computed twice for this partition")
            .script(&tied_sequence)
            .config(plain(2)),
        case("G28", TWO, "AssertionError").script(&tied_sequence).config(plain(3)),
        case(none, TWO, "the norm is 1.00 times").script(tied).config(plain(1)),
        case(none, TWO, "the norm is 1.00 times").script(&tied_sequence).config(plain(1)),
        case("G22", TORCHRUN, "the norm is 2.93 times").script(loss).config(accumulating_in(3)),
        case(none, TORCHRUN, "the norm is 1.00 times").script(loss).config(plain(3)),
    ]
}

fn front_end_cases() -> Vec<Case> {
    let clipping = include_str!("scripts/accelerate_clipping.py");
    let evaluation = include_str!("scripts/evaluation.py");
    let inside = evaluation
        .replace("print(trainer.evaluate())\n", "")
        .replace("max_steps=2", "max_steps=2, eval_on_start=True");
    let resuming = include_str!("scripts/resuming.py");
    let whisper = include_str!("scripts/whisper.py");
    let gemma_3 = include_str!("scripts/gemma_3.py");
    let plugin = include_str!("scripts/plugin.py");
    let scheduler = json!({"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_num_steps": 1}});
    let state = r#"{"global_step": 2, "max_steps": 4, "log_history": [], "epoch": 0.5, "train_batch_size": 1}"#;
    vec![
        case("O09", ACCELERATE, "moved 1.00").script(clipping).config(without_optimizer(2)),
        case("O28", ACCELERATE, "do not support `clip_grad_value_`")
            .script(include_str!("scripts/clip_by_value.py"))
            .config(without_optimizer(2)),
        case("S09", ACCELERATE, "Cannot get 16bit model weights")
            .script(include_str!("scripts/state_dict.py"))
            .config(without_optimizer(3)),
        case("Z06", ACCELERATE, "elements 0\n")
            .script(include_str!("scripts/saved_by_accelerate.py"))
            .config(without_optimizer(3)),
        case("Z09", TORCHRUN, "sinusoids() missing 1 required positional argument: 'channels'")
            .script(whisper)
            .config(filled(3, None)),
        case("", TORCHRUN, "done").script(whisper).config(filled(2, None)),
        case("Z10", TORCHRUN, "Fan in and fan out can not be computed")
            .script(gemma_3)
            .config(filled(3, None)),
        case("", TORCHRUN, "done").script(gemma_3).config(filled(2, None)),
        case("V12", TORCHRUN, "got an unexpected keyword argument 'max_prompt_length'")
            .script("from trl import GRPOConfig\nGRPOConfig(output_dir='out', deepspeed='ds.json', max_prompt_length=8)\n")
            .config(filled(2, None)),
        case("V12", "torchrun --standalone --nproc_per_node 2 t.py --deepspeed ds.json --output_dir out --overwrite_output_dir True", "not used by the HfArgumentParser: ['--overwrite_output_dir', 'True']")
            .script("from transformers import HfArgumentParser, TrainingArguments\nargs, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n")
            .config(filled(2, None)),
        case("I13", TORCHRUN, "ZeRO inference only makes sense with ZeRO Stage 3")
            .script(evaluation)
            .config(filled(2, None))
            .model(),
        case("I13", TORCHRUN, "object has no attribute 'backward'")
            .script(evaluation)
            .config(filled(3, None))
            .model(),
        case("", TORCHRUN, "done").script(&inside).config(filled(2, None)).model(),
        case("A08", TORCHRUN, "ds gradient_accumulation_steps=4 vs hf gradient_accumulation_steps=1")
            .script(&inside)
            .config(with_accumulation(4))
            .model(),
        case("", TORCHRUN, "done").script(&inside).config(with_accumulation(1)).model(),
        case("A07", TORCHRUN, "ds scheduler.params.total_num_steps=0 vs hf num_training_steps")
            .script(evaluation)
            .config(filled(3, Some(scheduler)))
            .model(),
        case("S08", TORCHRUN, "Can't find a valid checkpoint at before")
            .script(resuming)
            .config(filled(2, None))
            .file("before/trainer_state.json", state)
            .model(),
        case("I12", TORCHRUN, "Using --fsdp xxx together with --deepspeed is not possible")
            .script(include_str!("scripts/fsdp.py"))
            .config(filled(2, None))
            .model(),
        case("I12", "accelerate launch --config_file acc.yaml --main_process_port PORT t.py", "trains with DistributedType.DEEPSPEED")
            .script(&format!("{}print('trains with', trainer.accelerator.distributed_type)\n", include_str!("scripts/fsdp.py").replace("fsdp=\"full_shard\", ", "")))
            .config(filled(2, None))
            .file("acc.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 1\nnum_machines: 1\nmixed_precision: 'no'\nfsdp_config:\n  fsdp_sync_module_states: false\n  fsdp_cpu_ram_efficient_loading: false\n")
            .model(),
        case("F04", "accelerate launch --use_deepspeed --num_processes 1 --num_machines 1 --mixed_precision no --main_process_port PORT --zero_stage 3 --offload_param_device nvme --offload_param_nvme_path /local_nvme t.py", "'nvme_path': 'none'")
            .script(plugin),
        case("L18", "accelerate launch --config_file acc.yaml --main_process_port PORT --deepspeed_config_file ds.json t.py", "no plugin")
            .script(plugin)
            .config(without_optimizer(2))
            .file("acc.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 1\nnum_machines: 1\nmixed_precision: 'no'\nuse_cpu: true\n"),
    ]
}

fn launcher_cases() -> Vec<Case> {
    let local_rank = include_str!("scripts/local_rank.py");
    let options = include_str!("scripts/options.py");
    let both = "accelerate launch --use_deepspeed --multi_gpu --num_processes 2 t.py";
    let hosts = "deepspeed --hostfile hosts --master_port PORT t.py";
    vec![
        case(
            "L11",
            "torchrun --standalone --nproc_per_node 2 t.py --deepspeed_config ds.json",
            "Mismatch in local rank setting, args.local_rank=0",
        )
        .script(local_rank)
        .config(plain(1)),
        case(
            "L15",
            "deepspeed --num_gpus 1 --master_port PORT t.py",
            "unrecognized arguments: --local_rank=0",
        )
        .script(options)
        .config(plain(1)),
        case("", "deepspeed --num_gpus 1 --no_local_rank --master_port PORT t.py", "done")
            .script(options)
            .config(plain(1)),
        case(
            "L16",
            "deepspeed --num_gpus 1 --include localhost:0 --master_port PORT t.py",
            "Cannot specify num_nodes/gpus with include/exclude",
        )
        .script(options),
        case(
            "L16",
            "deepspeed --include localhost:0 --exclude localhost:1 --master_port PORT t.py",
            "mutually exclusive",
        )
        .script(options),
        case("L18", both, "You can only use one of").script(options),
        case("L21", "accelerate launch --use_deepspeed --num_processes 1 --num_machines 1 --mixed_precision no --main_process_port PORT --deepspeed_config_file ds.json --parallelism_config_sp_size 2 t.py", "hands on None")
            .script(include_str!("scripts/parallelism_options.py"))
            .config(without_optimizer(3)),
        case("L21", "accelerate launch --use_deepspeed --use_parallelism_config --num_processes 1 --num_machines 1 --main_process_port PORT --deepspeed_config_file ds.json --parallelism_config_sp_size 2 t.py", "You cannot use `--use_parallelism_config` without `--use_fsdp`")
            .script(include_str!("scripts/parallelism_options.py"))
            .config(without_optimizer(3)),
        case("", "accelerate launch --config_file acc.yaml --main_process_port PORT t.py", "hands on 2")
            .script(include_str!("scripts/parallelism_options.py"))
            .config(without_optimizer(3))
            .file("acc.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\nnum_machines: 1\nmixed_precision: 'no'\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nparallelism_config:\n  parallelism_config_sp_size: 2\n"),
        case("L06", hosts, "Hostfile contains a bad entry: two:8")
            .script(options)
            .file("hosts", "one slots=8\ntwo:8\n"),
        case("L06", hosts, "Hostfile contains multiple entries for one")
            .script(options)
            .file("hosts", "one slots=8\none slots=8\n"),
        case("L06", hosts, "Hostfile is empty").script(options).file("hosts", "# one slots=8\n"),
    ]
}

/// What texts about keys, concepts and rules say of training itself. No rule has anything to say about most of it.
fn fact_cases() -> Vec<Case> {
    let scales = include_str!("scripts/loss_scale_floor.py");
    let kept = include_str!("scripts/type_kept.py");
    let in_fp16 = |stage| {
        let fp16 = json!({"fp16": {"enabled": true, "initial_scale_power": 2, "hysteresis": 3, "min_loss_scale": 1}});
        with(plain(stage), fp16)
    };
    let none = "";
    let mut cases = vec![
        // Without ZeRO, the first overflow halves the scale, and no step at the lowest scale ends the run.
        case("P24", TORCHRUN, "scales [2, 1, 1, 1, 1, 1], 6 steps skipped")
            .script(scales)
            .config(in_fp16(0)),
        case(none, TORCHRUN, "Current loss scale already at minimum")
            .script(scales)
            .config(in_fp16(1)),
    ];
    for stage in [0, 2, 3] {
        // Without `bf16` and `fp16`, the model keeps its type.
        let prints = "trains in torch.bfloat16, computes in torch.bfloat16";
        cases.push(case(none, TORCHRUN, prints).script(kept).config(plain(stage)));
    }
    // Stages 1 and 2 make new master weights from 16-bit ones, stage 3 restores the old ones.
    let resumed = include_str!("scripts/resumed_masters.py");
    for (stage, prints) in [(2, "False: rounded\n"), (3, "False: equal\n")] {
        let config = with(plain(stage), json!({"bf16": {"enabled": true}}));
        cases.push(case(none, TORCHRUN, prints).script(resumed).config(config));
    }
    // Only stage 3 is converted without the option, and no other stage loads what is converted.
    let universal = include_str!("scripts/universal.py");
    for (stage, prints) in [
        (1, "inject_missing_state False: Required universal_checkpoint_info state is missing"),
        (1, "inject_missing_state True: converted\n"),
        (1, "stage 3 fails with AssertionError\n"),
        (3, "inject_missing_state False: converted\n"),
        (3, "stage 1 fails with AssertionError\n"),
    ] {
        cases.push(case(none, TORCHRUN, prints).script(universal).config(plain(stage)));
    }
    cases
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a socket");
    listener.local_addr().expect("its address").port()
}

/// The codes of everything that ends a run or changes it.
fn codes(case: &Case, command: &str) -> BTreeSet<&'static str> {
    let find = |name: &str| {
        let file = case.files.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| text.clone())
    };
    let report = judge(command, &Outside::default(), &Settings::default(), &find);
    let found = report.files.iter().flat_map(|file| &file.report.diagnostics);
    let counts =
        |found: &&Diagnostic| found.severity != Severity::Note || found.rule.code == case.code;
    found.filter(counts).map(|found| found.rule.code).collect()
}

#[test]
fn jobs_end_as_the_rules_say() {
    let mut cases = engine_cases();
    cases.extend(offload_cases());
    cases.extend(parallelism_cases());
    cases.extend(front_end_cases());
    cases.extend(launcher_cases());
    judge_and_run(cases, 15);
}

#[test]
fn ranks_that_part_hang_as_the_rules_say() {
    judge_and_run(hang_cases(), 6);
}

#[test]
fn training_goes_as_the_texts_say() {
    judge_and_run(fact_cases(), 1);
}

#[test]
fn training_code_trains_something_else_as_the_rules_say() {
    judge_and_run(training_code_cases(), 8);
}

/// Makes each class with each argument that it had once.
const REMOVED_ARGUMENTS: &str = r#"
import json, transformers, trl
refused = accepted = 0
for row in json.load(open("removed.json")):
    known = [getattr(place, row["class"]) for place in (trl, transformers) if hasattr(place, row["class"])]
    for made in known[:1]:
        try:
            made(output_dir="out", use_cpu=True, bf16=False, **{row["argument"]: None})
        except TypeError as error:
            refused += f"unexpected keyword argument '{row['argument']}'" in str(error)
            continue
        accepted += 1
        print("ACCEPTED", row)
print("REFUSED", refused, "ACCEPTED", accepted)
"#;

#[test]
fn installed_classes_refuse_all_arguments_that_are_listed_as_removed() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let removed = include_str!("../../../knowledge/recipes/removed_arguments.json");
    let files = json!({"t.py": REMOVED_ARGUMENTS, "removed.json": removed});
    let question = json!({"command": "python t.py", "files": files});
    let answers = Oracle::start(&home, "script_server.py").answers(vec![question]);
    let output = answers[0]["output"].as_str().unwrap_or_default();
    let listed = serde_json::from_str::<Vec<Value>>(removed).expect("JSON").len();
    assert!(output.contains(&format!("REFUSED {listed} ACCEPTED 0")), "of {listed}:\n{output}");
}

/// Judges jobs that are about more than so many rules, and runs a part of them.
fn judge_and_run(cases: Vec<Case>, more_than: usize) {
    let Some(home) = zeropilot_oracle::home() else { return };
    let rules: BTreeSet<&str> = cases.iter().map(|case| case.code).collect();
    assert!(rules.len() > more_than, "only {rules:?}");
    // Starting an engine takes seconds.
    let cases = part_of(cases, 8);
    let mut questions = Vec::new();
    for case in &cases {
        let command = case.command(free_port());
        let found = codes(case, &command);
        if case.code.is_empty() {
            let new = found.iter().filter(|code| rules.contains(*code)).collect::<Vec<_>>();
            assert!(new.is_empty(), "{command}: {new:?}");
        } else {
            assert!(found.contains(case.code), "{} is not among {found:?}: {command}", case.code);
        }
        let files: Map<String, Value> =
            case.files.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
        questions.push(json!({"command": command, "files": files, "model": case.needs_model}));
    }
    let answers = Oracle::start(&home, "script_server.py").answers(questions);
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(answers) {
        let output = answer["output"].as_str().unwrap_or("");
        if !output.contains(case.prints) {
            wrong.push(format!("{} {}: {}\n{output}", case.code, case.command, answer["code"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
