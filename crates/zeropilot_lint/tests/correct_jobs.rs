//! Jobs that train, in shapes that invite a false alarm: nothing worse than a note may be found in them.

#![cfg(feature = "job")]

use zeropilot_job::Outside;
use zeropilot_lint::job::{JobReport, judge};
use zeropilot_lint::{Settings, Severity};

const SMALL: &str = r#"{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;
const PLAIN: &str = "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())\n";

fn judged(command: &str, files: &[(&str, &str)]) -> JobReport {
    let find = |name: &str| {
        let file = files.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| (*text).to_owned())
    };
    judge(command, &Outside::default(), &Settings::default(), &find)
}

/// Everything above a note.
fn alarms(report: &JobReport) -> Vec<&'static str> {
    let found = report.files.iter().flat_map(|file| &file.report.diagnostics);
    found.filter(|found| found.severity != Severity::Note).map(|found| found.rule.code).collect()
}

fn codes(report: &JobReport) -> Vec<&'static str> {
    let found = report.files.iter().flat_map(|file| &file.report.diagnostics);
    found.map(|found| found.rule.code).collect()
}

fn batch(train: u32, micro: u32, steps: u32) -> String {
    format!(
        r#"{{"train_batch_size": {train}, "train_micro_batch_size_per_gpu": {micro}, "gradient_accumulation_steps": {steps}, "bf16": {{"enabled": true}}, "zero_optimization": {{"stage": 1}}, "optimizer": {{"type": "AdamW", "params": {{"lr": 1e-4}}}}}}"#
    )
}

/// Four ranks in two stages are two data-parallel groups: 4 × 4 × 2 = 32.
#[test]
fn stages_of_a_pipeline_share_samples() {
    let script = "net = PipelineModule(layers=layers, loss_fn=loss, num_stages=2)\nengine, _, _, _ = deepspeed.initialize(args=args, model=net)\nengine.train_batch()\n";
    let command = "deepspeed --num_gpus 4 train.py --deepspeed_config ds.json";
    let right = judged(command, &[("train.py", script), ("ds.json", &batch(32, 4, 4))]);
    assert!(alarms(&right).is_empty(), "{:?}", codes(&right));
    // 4 × 4 × 4: right for ranks that share nothing.
    let wrong = judged(command, &[("train.py", script), ("ds.json", &batch(64, 4, 4))]);
    assert_eq!(alarms(&wrong), ["B01"]);
    let option = script.replace("num_stages=2", "num_stages=args.stages");
    let told = format!("{command} --stages 2");
    let right = judged(&told, &[("train.py", &option), ("ds.json", &batch(32, 4, 4))]);
    assert!(alarms(&right).is_empty(), "{:?}", codes(&right));
}

/// What a unit groups only the run knows: the batch must fit some number of groups.
#[test]
fn a_model_parallel_unit_decides_the_groups() {
    let script = "engine, _, _, _ = deepspeed.initialize(args=args, model=model, mpu=mpu)\n";
    let command = "deepspeed --num_gpus 8 train.py --deepspeed --deepspeed_config ds.json";
    for (train, is_right) in
        [(32, true), (16, true), (8, true), (4, true), (12, false), (64, false)]
    {
        let report = judged(command, &[("train.py", script), ("ds.json", &batch(train, 4, 1))]);
        let alarms = alarms(&report);
        assert_eq!(alarms.is_empty(), is_right, "{train}: {alarms:?}");
    }
    let none = script.replace("mpu=mpu", "mpu=None");
    let alone = judged(command, &[("train.py", &none), ("ds.json", &batch(8, 4, 1))]);
    assert_eq!(alarms(&alone), ["B01"]);
    // Programs that make their engine in a library are told by options.
    let megatron =
        "from megatron.training import pretrain\npretrain(model_provider, forward_step)\n";
    let options = format!("{command} --tensor-model-parallel-size 4");
    let report = judged(&options, &[("train.py", megatron), ("ds.json", &batch(8, 4, 1))]);
    assert!(alarms(&report).is_empty(), "{:?}", codes(&report));
}

#[test]
fn ulysses_says_how_many_ranks_share_a_sequence() {
    let script = "mpu = UlyssesSPAttentionHF.register_with_transformers(model_name_or_path='gpt2', core_attn_implementation='sdpa', sequence_parallel_size=4, micro_batch_size=1)\nengine, _, _, _ = deepspeed.initialize(config='ds.json', model=model, mpu=mpu)\n";
    let command = "torchrun --nproc_per_node 8 train.py";
    let stage_3 = |train| batch(train, 1, 1).replace("\"stage\": 1", "\"stage\": 3");
    let right = judged(command, &[("train.py", script), ("ds.json", &stage_3(2))]);
    assert!(alarms(&right).is_empty(), "{:?}", codes(&right));
    let wrong = judged(command, &[("train.py", script), ("ds.json", &stage_3(8))]);
    assert_eq!(alarms(&wrong), ["B01"]);
}

#[test]
fn scripts_change_directories() {
    let files = [("src/conf/ds.json", SMALL), ("src/train.py", PLAIN)];
    let launch = "deepspeed --num_gpus 2 train.py --deepspeed_config conf/ds.json";
    for script in [
        format!("cd src && {launch}"),
        format!("cd src\n{launch}"),
        format!("cd ./src/ || exit 1\n{launch}"),
        format!("pushd src\n{launch}\npopd"),
        format!("(cd src; {launch})"),
        format!("(cd elsewhere; ls)\ncd src\n{launch}"),
        format!("cd src/conf\ncd ..\n{launch}"),
        format!("if [ -d src ]; then cd src; {launch}; fi"),
    ] {
        let report = judged(&script, &files);
        assert!(codes(&report).is_empty(), "{script}: {:?}", codes(&report));
        assert!(report.files.iter().any(|file| file.is_config), "{script}");
    }
    // Where the directory is only known when the script runs, nothing is certain.
    for script in [
        format!("cd $WORK\n{launch}"),
        format!("cd \"$(dirname \"$0\")/src\"\n{launch}"),
        format!("if [ -d src ]; then cd src; fi\n{launch}"),
        format!("enter() {{ cd src; }}\nenter\n{launch}"),
        format!("source setup.sh\n{launch}"),
    ] {
        let report = judged(&script, &files);
        assert_eq!((alarms(&report).len(), codes(&report)), (0, vec!["L12"]), "{script}");
    }
    let wrong = judged(&format!("cd elsewhere\n{launch}"), &files);
    assert_eq!(alarms(&wrong), ["L12"]);
}

#[test]
fn scripts_find_their_own_directory() {
    let files = [("/jobs/src/conf/ds.json", SMALL), ("/jobs/src/train.py", PLAIN)];
    let find = |name: &str| {
        let file = files.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| (*text).to_owned())
    };
    let outside = Outside::from([("0".to_owned(), Some("/jobs/run.sh".to_owned()))]);
    for asked in [
        "$(dirname \"$0\")",
        "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)",
        "$( cd -- \"$( dirname -- \"${BASH_SOURCE[0]}\" )\" &> /dev/null && pwd )",
    ] {
        let script = format!(
            "cd \"{asked}/src\"\ndeepspeed --num_gpus 2 train.py --deepspeed_config conf/ds.json"
        );
        let report = judge(&script, &outside, &Settings::default(), &find);
        assert!(codes(&report).is_empty(), "{script}: {:?}", codes(&report));
    }
}

#[test]
fn scripts_write_their_configs() {
    let launch = "deepspeed --num_gpus 2 train.py --deepspeed_config ds.json";
    let files = [("train.py", PLAIN), ("template.json", SMALL)];
    for made in [
        "python make_config.py > ds.json",
        "sed s/LR/1e-4/ template.json > ds.json",
        "jq '.fp16.enabled = true' template.json > ds.json",
        "cp template.json ds.json",
        "wget -q -O ds.json https://example.org/ds.json",
        "python - <<END\nimport json\njson.dump({}, open('ds.json', 'w'))\nEND",
        "cat > ds.json <<END\n{\"train_micro_batch_size_per_gpu\": $MICRO}\nEND",
        "CONFIG=ds.json\necho '{}' > $CONFIG",
        "git clone https://example.org/job && cd job",
        "python prepare.py",
    ] {
        let report = judged(&format!("{made}\n{launch}"), &files);
        assert_eq!((alarms(&report).len(), codes(&report)), (0, vec!["L12"]), "{made}");
    }
    // What is there in full is checked as the file will be.
    let written = |text: &str| format!("cat <<'END' > ds.json\n{text}\nEND\n{launch}");
    let report = judged(&written(SMALL), &files);
    assert!(codes(&report).is_empty() && report.files.iter().any(|file| file.is_config));
    let report = judged(&written(&SMALL.replace("zero_opt", "zero_0pt")), &files);
    assert_eq!(alarms(&report), ["K01"]);
    // What only prepares the machine writes no config.
    let idle = "set -e\nmodule load cuda\nconda activate train\nsource venv/bin/activate\nmkdir -p out\nexport A=1\necho start";
    let report = judged(&format!("{idle}\n{launch}"), &files);
    assert_eq!(alarms(&report), ["L12"]);
}

#[test]
fn training_scripts_write_their_configs() {
    let script = "import json\njson.dump(config, open('made.json', 'w'))\nengine, _, _, _ = deepspeed.initialize(model=model, config='made.json')\n";
    let report = judged("deepspeed --num_gpus 2 train.py", &[("train.py", script)]);
    assert_eq!((alarms(&report).len(), codes(&report)), (0, vec!["L12"]));
    let none = "engine, _, _, _ = deepspeed.initialize(model=model, config='made.json')\n";
    let report = judged("deepspeed --num_gpus 2 train.py", &[("train.py", none)]);
    assert_eq!(alarms(&report), ["L12"]);
}

#[test]
fn a_script_may_set_its_own_rank() {
    let config = ("ds.json", SMALL);
    let script = "os.environ['MASTER_ADDR'] = 'localhost'\nos.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = '1'\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n";
    let report = judged("python train.py", &[("train.py", script), config]);
    assert!(codes(&report).is_empty(), "{:?}", codes(&report));
    let default = script.replace("os.environ['RANK'] = '0'", "os.environ.setdefault('RANK', '0')");
    let report = judged("python train.py", &[("train.py", &default), config]);
    assert!(codes(&report).is_empty(), "{:?}", codes(&report));
    let without = script.replace("os.environ['RANK'] = '0'\n", "");
    let report = judged("python train.py", &[("train.py", &without), config]);
    assert_eq!(alarms(&report), ["L01"]);
}

#[test]
fn a_script_that_opens_the_config_need_not_start_deepspeed() {
    let parse = "(options,) = HfArgumentParser((Options,)).parse_args_into_dataclasses()\n";
    let of = |body: &str| {
        let script = format!("{parse}{body}\n");
        let files = [("chat.py", script.as_str()), ("ds.json", SMALL)];
        codes(&judged("python chat.py --deepspeed ds.json", &files))
    };
    assert!(of("Trainer(model, options).train()").contains(&"L01"));
    let served = of("with open(options.deepspeed) as f:\n    serve(json.load(f))");
    assert!(!served.contains(&"L01"), "{served:?}");
}

#[test]
fn a_config_that_a_script_edits_is_not_read_by_the_trainer() {
    let script = "(args,) = HfArgumentParser((Arguments,)).parse_args_into_dataclasses()\nwith open(args.deepspeed) as f:\n    config = json.load(f)\nconfig['train_batch_size'] = 8\nengine = deepspeed.initialize(model=model, config_params=config)[0]\n";
    let config =
        r#"{"train_batch_size": "auto", "steps_per_print": 10, "zero_optimization": {"stage": 3}}"#;
    let of = |script: &str| {
        let files = [("serve.py", script), ("ds.json", config)];
        codes(&judged("deepspeed --num_gpus 8 serve.py --deepspeed ds.json", &files))
    };
    let found = of(script);
    assert!(!["K26", "S01", "A01"].iter().any(|code| found.contains(code)), "{found:?}");
    let trained = format!("{script}Trainer(model, args).train()\n");
    assert!(of(&trained).contains(&"K26"));
}

#[test]
fn a_file_of_accelerate_does_not_show_who_saves() {
    let config = r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}"#;
    let yaml = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nnum_processes: 2\n";
    let of = |program: &str| {
        let files = [("a.yaml", yaml), ("ds.json", config), ("train.py", program)];
        codes(&judged("accelerate launch --config_file a.yaml train.py", &files))
    };
    let made = "args = TrainingArguments(output_dir='out', per_device_train_batch_size=1)\ntrainer = Trainer(model=model, args=args)\n";
    assert!(of(&format!("{made}trainer.train()\n")).contains(&"S01"));
    for silent in ["main()\n".to_owned(), format!("{made}trainer.predict(data)\n")] {
        assert!(!of(&silent).contains(&"S01"), "{silent}");
    }
}

#[test]
fn an_optimizer_whose_name_is_bound_again_is_still_that_of_the_script() {
    let script = "def main(args):\n    optimizer = torch.optim.SGD(model.parameters(), 0.1)\n    model, optimizer, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer, config='ds.json')\n";
    let config = SMALL.replace("AdamW", "Adam").replace("1e-4", "1e-4, \"weight_decay\": 0.1");
    let of = |script: &str| {
        let files = [("train.py", script), ("ds.json", config.as_str())];
        codes(&judged("deepspeed --num_gpus 2 train.py", &files))
    };
    let found = of(script);
    assert!(found.contains(&"O27") && !found.contains(&"O05"), "{found:?}");
    let chosen =
        script.replace("    optimizer = torch", "    if args.own:\n      optimizer = torch");
    assert!(!of(&chosen).contains(&"O27"));
    assert!(of(&script.replace(", optimizer=optimizer", "")).contains(&"O05"));
}

const STAGE_3: &str = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#;

/// Loops that train on all ranks alike, in the shapes that people write them in.
#[test]
fn loops_whose_ranks_stay_together_are_left_alone() {
    let command = "deepspeed --num_gpus 2 train.py --deepspeed_config ds.json";
    for body in [
        // One rank prints, logs and writes what all have computed.
        "for step, batch in enumerate(loader):\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    if rank == 0:\n        print(loss.item())\n        wandb.log({'loss': loss.item()})\n",
        "if rank == 0:\n    os.makedirs('out', exist_ok=True)\ntorch.distributed.barrier()\nengine.save_checkpoint('out')\n",
        "engine.save_16bit_model('out')\nif rank == 0:\n    tokenizer.save_pretrained('out')\n",
        "if rank != 0:\n    logging.disable()\nengine.save_checkpoint('out')\n",
        "with deepspeed.zero.GatheredParameters(engine.module.parameters(), modifier_rank=0):\n    if torch.distributed.get_rank() == 0:\n        torch.save(engine.module.state_dict(), 'w.pt')\n",
        // What all ranks know alike decides.
        "for step, batch in enumerate(loader):\n    if step < start:\n        continue\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    if engine.global_steps >= args.max_steps:\n        break\n",
        "for batch in loader:\n    loss = engine(batch)\n    torch.distributed.all_reduce(loss, op=torch.distributed.ReduceOp.AVG)\n    if loss.item() < 0.1:\n        break\n    engine.backward(loss)\n    engine.step()\n",
        "for batch in loader:\n    loss = engine(batch)\n    if not torch.isfinite(loss):\n        loss = torch.nan_to_num(loss) * 0\n    engine.backward(loss)\n    engine.step()\n",
        "for batch in loader:\n    if isinstance(batch, dict):\n        batch = batch['input_ids']\n    engine.backward(engine(batch))\n    engine.step()\n",
        "for batch in loader:\n    if batch.size(0) != args.batch:\n        continue\n    engine.backward(engine(batch))\n    engine.step()\n",
        "for batch in loader:\n    loss = engine(batch)\n    if bad_on_any_rank(loss):\n        continue\n    engine.backward(loss)\n    engine.step()\n",
        "progress = tqdm(enumerate(loader), total=len(loader))\nfor batch_cnt, batch in progress:\n    if batch_cnt < start:\n        continue\n    engine.backward(engine(batch))\n    engine.step()\n",
        // The average over the last steps.
        "recent = collections.deque(maxlen=100)\nfor batch in loader:\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    recent.append(loss)\n",
        "losses = []\nfor batch in loader:\n    loss = engine(batch)\n    engine.backward(loss)\n    engine.step()\n    loss = loss.detach().float()\n    losses.append(loss)\n",
        "for batch in loader:\n    parts = []\n    for part in batch:\n        loss = engine(part)\n        parts.append(loss)\n    loss = torch.stack(parts).mean()\n    engine.backward(loss)\n    engine.step()\n",
        "for batch in loader:\n    parts = []\n    for part in batch:\n        loss = engine(part)\n        parts.append(loss)\n    engine.backward(sum(parts))\n    engine.step()\n",
        "def losses(engine, batch):\n    total = 0\n    for part in batch:\n        loss = engine(part)\n        total += loss\n    return total\nfor batch in loader:\n    engine.backward(losses(engine, batch))\n    engine.step()\n",
        // Evaluation and back.
        "for epoch in range(3):\n    engine.train()\n    for batch in loader:\n        engine.backward(engine(batch))\n        engine.step()\n    engine.eval()\n    with torch.no_grad():\n        total = 0\n        for batch in test_loader:\n            loss = engine(batch)\n            total += loss\n",
        "logits = engine(x)\nprobabilities = torch.softmax(logits, dim=-1)\nprobabilities = logits\nloss = F.cross_entropy(probabilities, y)\nengine.backward(loss)\n",
    ] {
        let script = format!(
            "import deepspeed\nrank = torch.distributed.get_rank()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())\n{body}"
        );
        let report = judged(command, &[("train.py", &script), ("ds.json", STAGE_3)]);
        assert!(codes(&report).is_empty(), "{body}: {:?}", codes(&report));
    }
    // Below stage 3 a forward pass needs nobody else.
    let script = "import deepspeed\ndef evaluate(model):\n    model.eval()\n    loss = model(test)\n    model.train()\n    return loss\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\nif torch.distributed.get_rank() == 0:\n    print(evaluate(engine))\n    torch.save(engine.module.state_dict(), 'w.pt')\n";
    let report = judged(command, &[("train.py", script), ("ds.json", SMALL)]);
    assert!(codes(&report).is_empty(), "{:?}", codes(&report));
}
