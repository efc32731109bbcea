//! Launches in the shapes people write: which config they name, who reads it, and which way a script takes.

#![cfg(feature = "scripts")]

use std::collections::HashMap;

use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::{Launch, Outside, read};

/// What a script of this name starts, with these files beside it.
fn launches(name: &str, text: &str, files: &[(&str, &str)]) -> Vec<Launch> {
    let outside: Outside = HashMap::from([("0".to_owned(), Some(name.to_owned()))]);
    let find = |name: &str| {
        files.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    };
    read(text, &outside, &find).launches
}

fn only(text: &str, files: &[(&str, &str)]) -> Launch {
    let mut launches = launches("run.sh", text, files);
    assert_eq!(launches.len(), 1, "{text}");
    launches.remove(0)
}

/// The config that a launch names: `None` without one, `Some(None)` if only the run knows its name.
fn config(launch: &Launch) -> Option<Option<&str>> {
    launch.given.config.as_ref().map(|config| config.text.as_deref())
}

const LINE: &str =
    "deepspeed --num_gpus 2 t.py settings.json --deepspeed --deepspeed_config ds.json";

#[test]
fn arguments_of_a_fixed_file_win_over_the_command_line() {
    let program = "p = HfArgumentParser((ModelArguments, TrainingArguments))\nm, args = p.parse_json_file(json_file=\"fixed.json\")\ntrainer = Trainer(model, args)\n";
    let settings = "{\n  \"learning_rate\": 0.5,\n  \"warmup_steps\": 7\n}\n";
    let launch = only(LINE, &[("t.py", program), ("fixed.json", settings)]);
    assert_eq!(config(&launch), None);
    assert_eq!(launch.given.front_end, Some(FrontEnd::HfTrainer));
    assert_eq!(launch.given.value("warmup_steps"), Some("7"));
    let place = &launch.given.said("learning_rate").expect("the rate").place;
    assert_eq!(place.file.as_deref(), Some("fixed.json"));
    assert_eq!(place.span.of(settings), Some("0.5"));

    let with = "{\"deepspeed\": \"own.json\", \"learning_rate\": 0.5}";
    let launch = only(LINE, &[("t.py", program), ("fixed.json", with)]);
    assert_eq!(config(&launch), Some(Some("own.json")));
    // The directory of the launch is that of the file, too.
    let launch =
        only(&format!("cd src\n{LINE}"), &[("src/t.py", program), ("src/fixed.json", with)]);
    assert_eq!(config(&launch), Some(Some("src/own.json")));
    // A file that is not here says nothing.
    let launch = only(LINE, &[("t.py", program)]);
    assert_eq!(config(&launch), Some(None));

    let dictionary =
        "args = HfArgumentParser(TrainingArguments).parse_dict({'warmup_steps': 3})[0]\n";
    let launch = only(LINE, &[("t.py", dictionary)]);
    assert_eq!((config(&launch), launch.given.value("warmup_steps")), (None, Some("3")));
    let later = format!("{program}args.deepspeed = find()\n");
    let launch = only(LINE, &[("t.py", &later), ("fixed.json", settings)]);
    assert_eq!(config(&launch), Some(None));
}

#[test]
fn a_file_that_the_command_line_names_leaves_it_in_charge() {
    let program = "import sys\np = HfArgumentParser(TrainingArguments)\nif sys.argv[1].endswith('.json'):\n    args, = p.parse_json_file(sys.argv[1])\nelse:\n    args, = p.parse_args_into_dataclasses()\n";
    let line = "deepspeed --num_gpus 2 t.py --deepspeed ds.json --warmup_steps 5";
    let launch = only(line, &[("t.py", program)]);
    assert_eq!(config(&launch), Some(Some("ds.json")));
    assert_eq!(launch.given.value("warmup_steps"), Some("5"));
}

#[test]
fn a_program_that_parses_nothing_takes_no_config() {
    let program = "args = GRPOConfig(output_dir='out', learning_rate=1e-4)\ntrainer = GRPOTrainer(model, args=args)\n";
    let line = "deepspeed --num_gpus 2 t.py --deepspeed ds.json";
    assert_eq!(config(&only(line, &[("t.py", program)])), None);
    // With torchrun, nothing asks for DeepSpeed.
    let torchrun = "torchrun --nproc_per_node 2 t.py --deepspeed ds.json";
    assert!(launches("run.sh", torchrun, &[("t.py", program)]).is_empty());
    for reads in [
        "import argparse\nargs = GRPOConfig(output_dir='out')\n",
        "args = GRPOConfig(output_dir='out', **more)\n",
        "args = GRPOConfig(output_dir='out')\nargs.deepspeed = 'ds.json'\n",
        "args = GRPOConfig(output_dir='out', deepspeed='ds.json')\n",
        "plugin = DeepSpeedPlugin(hf_ds_config='ds.json')\nargs = GRPOConfig(output_dir='out')\n",
    ] {
        assert!(config(&only(line, &[("t.py", reads)])).is_some(), "{reads}");
    }
    let accelerate = "accelerate launch --use_deepspeed --deepspeed_config_file ds.json t.py";
    assert_eq!(config(&only(accelerate, &[("t.py", program)])), Some(Some("ds.json")));
}

#[test]
fn a_trainer_without_an_engine_is_not_read_by_deepspeed_alone() {
    let line = "deepspeed --num_gpus 2 t.py --deepspeed --deepspeed_config ds.json";
    let launch =
        only(line, &[("t.py", "from setup import args\ntrainer = Trainer(model, args)\n")]);
    assert_eq!(launch.given.front_end, None);
    let launch = only(line, &[("t.py", "from setup import args\nrun(args)\n")]);
    assert_eq!(launch.given.front_end, Some(FrontEnd::DeepSpeed));
}

#[test]
fn an_option_that_is_not_given_is_its_default() {
    let program = "parser.add_argument('--deepspeed', default=None)\nparser.add_argument('--lr')\nargs = parser.parse_args()\nt = TrainingArguments(output_dir='o', deepspeed=args.deepspeed)\n";
    let files = [("t.py", program)];
    assert!(launches("run.sh", "python t.py --lr 1e-4", &files).is_empty());
    assert_eq!(config(&only("deepspeed --num_gpus 2 t.py --lr 1e-4", &files)), None);
    let given = only("deepspeed --num_gpus 2 t.py --lr 1e-4 --deepspeed ds.json", &files);
    assert_eq!(config(&given), Some(Some("ds.json")));
    // What only the run knows may have it.
    for open in ["python t.py --lr 1e-4 $MORE", "python t.py"] {
        assert_eq!(config(&only(open, &files)), Some(None), "{open}");
    }
    let other = program.replace("default=None", "default='own.json'");
    let launch = only("python t.py --lr 1e-4", &[("t.py", &other)]);
    assert_eq!(config(&launch), Some(Some("own.json")));
}

#[test]
fn a_branch_that_the_script_itself_settles_is_taken() {
    let of = |text: &str| {
        let all = launches("run.sh", text, &[]);
        let names: Vec<_> = all.iter().map(|it| config(it).flatten().map(str::to_owned)).collect();
        names
    };
    let known = |name: &str| Some(name.to_owned());
    let run = "deepspeed t.py --deepspeed $C";
    let branch = |condition: &str| {
        format!("A=yes\nN=2\nif {condition}; then\n  C=a.json\nelse\n  C=b.json\nfi\n{run}\n")
    };
    for (condition, expected) in [
        ("[ $A = yes ]", Some("a.json")),
        ("[ \"$A\" == \"no\" ]", Some("b.json")),
        ("[[ $A != yes ]]", Some("b.json")),
        ("[ $N -gt 1 ]", Some("a.json")),
        ("[ -z \"$A\" ]", Some("b.json")),
        ("[ -n \"$A\" ] && [ $N -eq 3 ]", Some("b.json")),
        ("[ \"$A\" = no ] || [ $N -le 2 ]", Some("a.json")),
        ("[[ $A == yes && $N -lt 2 ]]", Some("b.json")),
        ("! [ $A = yes ]", Some("b.json")),
        ("[ $OUTSIDE = yes ]", None),
        ("[ -f ds.json ]", None),
        ("grep -q x y", None),
        ("[[ $A == y* ]]", None),
    ] {
        assert_eq!(of(&branch(condition)), [expected.map(str::to_owned)], "{condition}");
    }
    let chain = format!(
        "A=2\nif [ $A = 1 ]; then\n C=a.json\nelif [ $A = 2 ]; then\n C=b.json\nelse\n C=c.json\nfi\n{run}"
    );
    assert_eq!(of(&chain), [known("b.json")]);
    // Launches on another way are still read, in their order.
    let both = "A=1\nif [ $A = 2 ]; then\n deepspeed t.py --deepspeed a.json\nelse\n deepspeed t.py --deepspeed b.json\nfi\ndeepspeed t.py --deepspeed c.json";
    assert_eq!(of(both), [known("a.json"), known("b.json"), known("c.json")]);
    // In a loop, another pass may find another value.
    let looped =
        format!("A=1\nfor x in 1 2; do\n if [ $A = 1 ]; then\n  C=a.json\n fi\n A=2\ndone\n{run}");
    assert_eq!(of(&looped), [None]);
}

#[test]
fn what_stands_behind_a_redirection_belongs_to_the_command() {
    let launch = only("deepspeed t.py > log.txt --deepspeed ds.json", &[]);
    assert_eq!(config(&launch), Some(Some("ds.json")));
    let launch = only("deepspeed t.py --model ./m/<name>.pth --deepspeed ds.json --x 1", &[]);
    assert_eq!(config(&launch), Some(Some("ds.json")));
    assert_eq!(launch.given.value("x"), Some("1"));
}

#[test]
fn a_directory_above_the_script_is_found() {
    for root in [
        "$( cd \"$( dirname \"${BASH_SOURCE[0]}\" )/..\" && pwd )",
        "$(cd $(dirname $0)/.. ; pwd)",
        "$(cd \"$(dirname \"$0\")/../\" && pwd)",
    ] {
        let text = format!("ROOT=\"{root}\"\ndeepspeed t.py --deepspeed $ROOT/conf/ds.json");
        let all = launches("/repo/scripts/run.sh", &text, &[]);
        assert_eq!(config(&all[0]), Some(Some("/repo/conf/ds.json")), "{root}");
    }
    let text = "ROOT=$(cd $(dirname $0)/$X && pwd)\ndeepspeed t.py --deepspeed $ROOT/ds.json";
    assert_eq!(config(&launches("/repo/run.sh", text, &[])[0]), Some(None));
}

#[test]
fn an_option_whose_value_only_the_run_knows_is_there_all_the_same() {
    let launch = only("deepspeed --num_gpus=$N t.py --deepspeed=$CONFIG", &[]);
    assert_eq!((config(&launch), launch.world), (Some(None), None));
    assert_eq!((launch.program.as_deref(), launch.open_words()), (Some("t.py"), 0));
    // The file's own number of ranks does not count then.
    let yaml =
        "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 1\n";
    let of = |options: &str| {
        only(&format!("accelerate launch --config_file a.yaml {options} t.py"), &[("a.yaml", yaml)])
    };
    assert_eq!((of("").world, of("--num_processes=$N").world), (Some(8), None));
}
