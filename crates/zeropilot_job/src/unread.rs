//! Training programs whose arguments zeropilot does not read, and what their answers therefore assume. The facts are
//! `knowledge/recipes/unread.json`.

use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::LineIndex;

use crate::launch::Launch;
use crate::launcher::{flags, is_python};
use crate::origin::Origin;
use crate::recipe::ARGUMENTS;
use crate::script::Files;
use crate::shell::Word;
use crate::training_job::{ConfigContent, Direction, JobConfig, NotModelled, TrainingJob};

/// The longest text of a script that a note repeats.
const LONGEST: usize = 60;

/// A framework that zeropilot names and does not read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unread {
    name: String,
    /// Its Python packages.
    #[serde(default)]
    modules: Vec<String>,
    /// Its commands, some with their first argument.
    #[serde(default)]
    commands: Vec<String>,
    /// Options that only its programs have.
    #[serde(default)]
    options: Vec<String>,
}

static UNREAD: LazyLock<Vec<Unread>> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("recipes/unread.json") };
    serde_json::from_str(text).expect("knowledge/recipes/unread.json is read by a test")
});

/// The framework that a command starts, if it is one of those that are not read.
pub(crate) fn framework(words: &[Word], files: Files<'_>) -> Option<&'static str> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_deref().unwrap_or("")).collect();
    // Others only look at files or copy them.
    let is_started = texts.iter().any(|text| is_starter(text.rsplit('/').next().unwrap_or(text)));
    if !is_started && !UNREAD.iter().any(|unread| unread.has_command(&texts)) {
        return None;
    }
    let names = flags(words);
    let names_config = |name: &str| matches!(name, "--config_file" | "--accelerate_config");
    let accelerate =
        texts.windows(2).any(|pair| names_config(pair[0]) && is_of_fsdp(pair[1], files));
    let own = UNREAD.iter().find(|unread| {
        let of_option = |(name, _): &(String, Word)| unread.options.contains(name);
        unread.is_started_by(&texts) || names.iter().any(of_option)
    });
    let named = own.map(|unread| unread.name.as_str()).or(accelerate.then_some("FSDP"));
    named.or_else(|| imported(&texts, files))
}

/// Whether accelerate's YAML, or one of TRL's by its name, starts FSDP.
fn is_of_fsdp(name: &str, files: Files<'_>) -> bool {
    let says = |text: String| text.contains("distributed_type: FSDP");
    files(name).map_or_else(|| matches!(name, "fsdp1" | "fsdp2"), says)
}

/// The framework that the program of a command imports.
fn imported(texts: &[&str], files: Files<'_>) -> Option<&'static str> {
    let program = texts.iter().find(|text| text.ends_with(".py"))?;
    let text = files(program)?;
    let roots: Vec<&str> = text.lines().filter_map(imported_root).collect();
    let unread = UNREAD.iter().find(|unread| unread.has_module(&roots))?;
    Some(&unread.name)
}

/// Whether a program starts training programs.
fn is_starter(name: &str) -> bool {
    is_python(name) || matches!(name, "torchrun" | "accelerate" | "deepspeed" | "trl")
}

fn imported_root(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
    rest.trim_start().split(['.', ' ', ',']).next()
}

impl Unread {
    fn has_module(&self, roots: &[&str]) -> bool {
        self.modules.iter().any(|module| roots.contains(&module.as_str()))
    }

    /// Whether its module, its file or its command is what the words start.
    fn is_started_by(&self, texts: &[&str]) -> bool {
        let is_file = |text: &&&str| text.ends_with(".py") && !text.starts_with('-');
        let path = texts.iter().find(is_file);
        let path: Vec<&str> = path.into_iter().flat_map(|path| path.split('/')).collect();
        let module = texts.windows(2).find(|pair| matches!(pair[0], "-m" | "--module"));
        let root: Vec<&str> =
            module.and_then(|pair| pair[1].split('.').next()).into_iter().collect();
        self.has_module(&root) || self.has_module(&path) || self.has_command(texts)
    }

    fn has_command(&self, texts: &[&str]) -> bool {
        self.commands.iter().any(|command| {
            let mut parts = command.split(' ');
            let (name, argument) = (parts.next().unwrap_or_default(), parts.next());
            texts.first().is_some_and(|first| first.rsplit('/').next() == Some(name))
                && argument.is_none_or(|argument| texts.get(1) == Some(&argument))
        })
    }
}

/// Adds what an answer about a launch assumes because its arguments are not read. `text` is the script.
pub(crate) fn note(job: &mut TrainingJob, launch: &Launch, (name, text): (&str, &str)) {
    let origin = Origin::File {
        name: name.to_owned(),
        line: LineIndex::new(text).line_column(launch.span().start).line,
    };
    let unknown = unknown_arguments(job, launch);
    let mut say = |en: String, zh: String, written: String| {
        let (direction, origin) = (Direction::Either, origin.clone());
        job.not_modelled.push(NotModelled { en, zh, written, direction, origin });
    };
    if let Some(open) = open_arguments(launch, text) {
        let en = "arguments known only at run time; zeropilot predicts the job without them";
        let zh = "运行时才知道的参数；预测没有计入它们";
        say(en.to_owned(), zh.to_owned(), open);
    }
    if let Some(framework) = launch.unread {
        let en = format!(
            "zeropilot does not support {framework} and does not read its arguments: stage, batch size and length are assumptions unless you set --stage, --micro-batch and --seq-len"
        );
        let zh = format!(
            "zeropilot 不支持 {framework}，不读取它的参数：stage、batch 和长度都是假设值，请用 --stage、--micro-batch 和 --seq-len 指定"
        );
        say(en, zh, framework.to_owned());
    } else if let Some(written) = unknown {
        let en = "arguments that zeropilot does not know; if they set stage, batch size or length, repeat them with --stage, --micro-batch and --seq-len";
        let zh = "zeropilot 不认识的参数；如果它们决定 stage、batch 或长度，请用 --stage、--micro-batch 和 --seq-len 指定";
        say(en.to_owned(), zh.to_owned(), written);
    }
}

/// What a note repeats of some words, if there are any.
fn repeated(written: &[impl AsRef<str>]) -> Option<String> {
    let written: Vec<&str> = written.iter().map(AsRef::as_ref).collect();
    (!written.is_empty()).then(|| written.join(" ").chars().take(LONGEST).collect())
}

/// Words of the program that only the run knows, as the script writes them; its own arguments are usually none.
fn open_arguments(launch: &Launch, text: &str) -> Option<String> {
    let open = Launch::open_words_of(launch.program_words()?);
    let written = open.filter_map(|word| text.get(word.span.start..word.span.end));
    let is_own = |written: &&str| written.trim_matches(['"', '$', '{', '}']).trim() != "@";
    repeated(&written.filter(is_own).collect::<Vec<_>>())
}

/// Options that look like a stage, a batch size or a length where the job has none, of a program that reads its own.
fn unknown_arguments(job: &TrainingJob, launch: &Launch) -> Option<String> {
    let reads_own = matches!(launch.given.front_end, None | Some(FrontEnd::DeepSpeed));
    if !reads_own || launch.launcher.has_own_arguments() {
        return None;
    }
    let states_batch = |config: &JobConfig| match &config.content {
        ConfigContent::Text(text) => text.contains("train_"),
        _ => false,
    };
    let has_batch = job.micro_batch.is_some() || job.config.as_ref().is_some_and(states_batch);
    let looks_open = |name: &str| {
        let parts: Vec<&str> = name.split('_').collect();
        let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
        let is_other = has(&["eval", "test", "val", "valid", "prompt", "num", "warmup", "save"]);
        let is_stage = matches!(name, "zero_stage" | "stage" | "zero") && job.config.is_none();
        !is_other
            && (is_stage
                || job.seq_len.is_none() && has(&["len", "length", "seqlen"])
                || !has_batch && has(&["batch", "bsz", "bs"]))
    };
    let names = |field| ARGUMENTS.names(field);
    let is_known = |name: &str| {
        ["micro_batch", "grad_accum", "seq_len", "completion_len"]
            .into_iter()
            .flat_map(names)
            .any(|it| it == name)
    };
    let said = launch.line.iter().filter(|said| looks_open(&said.name) && !is_known(&said.name));
    let written: Vec<String> =
        said.map(|said| format!("--{} {}", said.name, said.value).trim().to_owned()).collect();
    repeated(&written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&'static str> {
        let files = |name: &str| match name {
            "l.py" => Some("import torch\nfrom lightning.pytorch import Trainer\n".to_owned()),
            "t.py" => Some("from transformers import Trainer\n".to_owned()),
            "f.yaml" => Some("distributed_type: FSDP\n".to_owned()),
            _ => None,
        };
        let script = crate::read(text, &Default::default(), &files);
        let own = script.launches.iter().filter_map(|launch| launch.unread);
        own.chain(script.unread.iter().copied()).collect()
    }

    #[test]
    fn programs_that_are_not_read_are_known_by_their_names() {
        for (text, name) in [
            ("deepspeed --module openrlhf.cli.train_sft --zero_stage 2", "OpenRLHF"),
            ("ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --zero_stage 3", "OpenRLHF"),
            ("python3 -m verl.trainer.main_ppo trainer.nnodes=1", "verl"),
            ("tune run --nproc_per_node 8 full_finetune_distributed", "torchtune"),
            ("accelerate launch --use_fsdp train.py --bf16", "FSDP"),
            ("accelerate launch --config_file f.yaml t.py", "FSDP"),
            ("trl sft --accelerate_config fsdp2 --model_name_or_path m", "FSDP"),
            ("python l.py", "Lightning"),
            ("deepspeed pretrain_gpt.py --tensor-model-parallel-size 2", "Megatron"),
        ] {
            assert_eq!(of(text), [name], "{text}");
        }
        for text in
            ["python t.py", "deepspeed t.py --deepspeed ds.json", "cat verl/a.py", "cd nemo"]
        {
            assert!(of(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn an_answer_names_the_arguments_that_it_does_without() {
        let written = |text: &str| {
            let script = crate::read(text, &Default::default(), &|_| None);
            let mut job = TrainingJob::default();
            note(&mut job, &script.launches[0], ("a.sh", text));
            job.not_modelled.into_iter().map(|one| one.written).collect::<Vec<_>>()
        };
        let own = "deepspeed t.py --zero_stage 2 --max_len 4096 --train_bs 2 --eval_len 8 --lr 1";
        assert_eq!(written(own), ["--zero_stage 2 --max_len 4096 --train_bs 2"]);
        assert_eq!(written("deepspeed -m openrlhf.cli.train_sft --zero_stage 2"), ["OpenRLHF"]);
        let open =
            "A=(--a 1)\nif $L; then A+=(--use_peft); fi\ndeepspeed t.py \"${A[@]}\" $B \"$@\"";
        assert_eq!(written(open), ["A+=(--use_peft) $B"]);
        assert!(written("deepspeed t.py --deepspeed ds.json --max_seq_len 8 \"$@\"").is_empty());
    }
}
