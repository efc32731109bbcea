//! Why a question has no answer.

use zeropilot_ask::memory::Conflict;
use zeropilot_ask::{
    CreateProblem, JudgingProblem, MachinesProblem, MemoryProblem, OutOfRange, PlanProblem,
    SimulateProblem, TaskProblem,
};
use zeropilot_job::{Framework, Origin};
use zeropilot_text::{Language, Text, tr};

use crate::{
    FileResult, Format, Layout, creation, escaped, gpus, plan, provenance, simulate, talk,
};

/// Why nothing can be said about memory. What is refused is explained as `check` explains it.
pub fn memory(problem: &MemoryProblem, layout: &Layout) -> String {
    let language = layout.language;
    match problem {
        MemoryProblem::Machines(problem) => machines(problem, language),
        MemoryProblem::OutOfRange(problem) => out_of_range(problem, language),
        MemoryProblem::UnreadableConfig(problem) => {
            provenance::unreadable_config(problem, language)
        }
        MemoryProblem::Lower(error) => talk::lower_error(error, language),
        MemoryProblem::LayerRanks { ranks, world } => tr!(
            language,
            "error: {world} GPUs cannot form equal tensor-parallel groups of {ranks}: DeepSpeed raises an error\n  help: choose a tensor_parallel.autotp_size that divides {world}",
            "错误：{world} 张卡无法按每组 {ranks} 张平均分组做张量并行：DeepSpeed 创建进程组时会报错退出\n  建议：tensor_parallel.autotp_size 取 {world} 的约数"
        ),
        MemoryProblem::SequenceRanks { ranks, world } => tr!(
            language,
            "error: {world} GPUs cannot form equal sequence-parallel groups of {ranks}: DeepSpeed raises a RuntimeError\n  help: choose a --sequence-parallel that divides {world}",
            "错误：{world} 张卡无法按每组 {ranks} 张平均分组做序列并行：DeepSpeed 会抛出 RuntimeError\n  建议：--sequence-parallel 取 {world} 的约数"
        ),
        MemoryProblem::NoSuchRank { rank, world } => talk::no_such_rank(*rank, *world, language),
        MemoryProblem::BesideConfig { option } => tr!(
            language,
            "error: `{option}` cannot be used with a config, because the config already sets it\n  help: omit the option or the config",
            "错误：给出配置文件时不能再用 `{option}`，配置里已经写明\n  建议：去掉这个选项或配置文件"
        ),
        MemoryProblem::Task(problem) => task(problem, language),
        MemoryProblem::OpenLoss => tr!(
            language,
            "error: `--fused-loss=either` works only with `zeropilot plan`, which chooses between yes and no\n  help: use yes or no here",
            "错误：`--fused-loss=either` 只能用于 `zeropilot plan`，由它选择 yes 或 no\n  建议：这里请写 yes 或 no"
        ),
        MemoryProblem::Conflict { name, conflict } => contradiction(name, conflict, language),
        MemoryProblem::Refused { name, bytes, report } => {
            let layout = Layout { format: Format::Human, ..*layout };
            layout.file(&FileResult { name, bytes, report, is_named: true, headline: None })
        }
    }
}

fn task(problem: &TaskProblem, language: Language) -> String {
    match problem {
        TaskProblem::NoTeacher { task } => {
            let task = task.name();
            tr!(
                language,
                "error: `--task {task}` needs a teacher model\n  help: name the teacher with `--teacher`, such as `--teacher qwen3-32b`",
                "错误：`--task {task}` 需要教师模型\n  建议：用 `--teacher` 指定，如 `--teacher qwen3-32b`"
            )
        }
        TaskProblem::Unused { task, option } => {
            let (task, option) = (task.name(), option.replace('_', "-"));
            tr!(
                language,
                "error: `--{option}` has no effect with `--task {task}`\n  help: omit the option, or choose another --task",
                "错误：`--{option}` 对 `--task {task}` 不生效\n  建议：去掉这个选项，或换一个 --task"
            )
        }
        TaskProblem::NoVllm { option } => {
            let option = option.replace('_', "-");
            tr!(
                language,
                "error: `--{option}` has no effect without vLLM on the training GPUs\n  help: add `--rollout vllm`, or omit the option",
                "错误：训练用的 GPU 上没有 vLLM 时，`--{option}` 不生效\n  建议：加 `--rollout vllm`，或去掉这个选项"
            )
        }
        TaskProblem::NotFound { option } => {
            let option = option.replace('_', "-");
            tr!(
                language,
                "error: zeropilot does not find the model that `--{option}` names\n  help: name a built-in model or a local config.json",
                "错误：找不到 `--{option}` 指定的模型\n  建议：使用内置的模型名，或本地的 config.json"
            )
        }
        TaskProblem::Zero { option } => {
            let option = option.replace('_', "-");
            tr!(
                language,
                "error: `--{option}` is 0\n  help: give 1 or more, or omit the option",
                "错误：`--{option}` 是 0\n  建议：至少写 1，或去掉这个选项"
            )
        }
        TaskProblem::NoReference => tr!(
            language,
            "error: `--task ppo` needs a reference model on the GPUs to compute the KL penalty\n  help: use `--reference copy`, or `--reference adapters-off` with LoRA",
            "错误：`--task ppo` 需要在 GPU 上放参考模型：奖励要减去策略模型与参考模型的 KL 散度\n  建议：用 `--reference copy`，LoRA 时用 `--reference adapters-off`"
        ),
        TaskProblem::ValueHead => tr!(
            language,
            "error: zeropilot does not model LLaMA-Factory's PPO, which has a value head on the policy\n  help: use `--trainer trl` or `--trainer swift`, which have a value model",
            "错误：LLaMA-Factory 的 PPO 在策略模型上加价值头，没有单独的价值模型，尚未建模\n  建议：用 `--trainer trl` 或 `--trainer swift`，它们有单独的价值模型"
        ),
        TaskProblem::NoAdapters => tr!(
            language,
            "error: `--reference adapters-off` needs adapters, but this run trains all parameters\n  help: use `--method lora`, or `--reference copy`",
            "错误：`--reference adapters-off` 需要 LoRA，而这里训练全部参数\n  建议：加 `--method lora`，或改用 `--reference copy`"
        ),
        TaskProblem::Vocabularies { student, teacher } => tr!(
            language,
            "error: the student's vocabulary has {student} tokens, but the teacher's has {teacher}: computing the loss raises an error\n  help: choose a teacher with the same vocab_size, or pad the smaller vocabulary",
            "错误：学生模型的词表大小是 {student}，教师模型是 {teacher}：两者的 logits 无法比较，计算 loss 时会报错\n  建议：换一个 vocab_size 相同的教师模型，或把较小的词表补齐"
        ),
        TaskProblem::CompletionTooLong { tokens, length } => tr!(
            language,
            "error: `--completion-len` {tokens} is more than the {length} tokens of prompt and completion together\n  help: raise --seq-len, or lower --completion-len",
            "错误：`--completion-len` {tokens} 超过一条序列的 {length} 个 token，而序列要同时放下提示和补全\n  建议：增大 --seq-len，或减小 --completion-len"
        ),
        TaskProblem::Share { share } => tr!(
            language,
            "error: vLLM cannot use a fraction of {share} of the GPU memory\n  help: set `--vllm-gpu-memory-utilization` to a fraction between 0 and 1, such as 0.3",
            "错误：vLLM 占用显存的比例不能是 {share}\n  建议：把 `--vllm-gpu-memory-utilization` 设为 0 到 1 之间的比例，如 0.3"
        ),
        TaskProblem::Split { ranks, split } => tr!(
            language,
            "error: {ranks} GPUs cannot form equal groups of {split} that share vLLM's weights: the trainer exits with an error\n  help: choose a `--vllm-tensor-parallel-size` that divides {ranks}",
            "错误：{ranks} 张卡无法按每组 {split} 张平均分组共用 vLLM 权重，训练器会报错退出\n  建议：`--vllm-tensor-parallel-size` 取 {ranks} 的约数"
        ),
        TaskProblem::ShareTooSmall { weights, share } => tr!(
            language,
            "error: vLLM cannot start: it may use {share} of GPU memory on each GPU, but its weights alone need {weights}\n  help: raise `--vllm-gpu-memory-utilization`, split the weights with `--vllm-tensor-parallel-size`, or use `--rollout server`. Activations, CUDA graphs (about 2 GiB) and the KV cache also need GPU memory",
            "错误：vLLM 无法启动：每张卡只允许它占用 {share}，而仅权重就要 {weights}，还没算激活值、CUDA graph（约 2 GiB）和 KV cache\n  建议：调大 `--vllm-gpu-memory-utilization`，用 `--vllm-tensor-parallel-size` 切分权重，或改用 `--rollout server`"
        ),
        TaskProblem::NoRewardHead => tr!(
            language,
            "error: this model has no output projection that a reward head could replace\n  help: name the config.json of a …ForSequenceClassification model",
            "错误：这个模型没有可以换成奖励头的输出层\n  建议：给出 …ForSequenceClassification 模型的 config.json"
        ),
    }
}

/// That the value of an option cannot be read; `name` is the option's, as programs write it.
pub fn value(name: &str, why: &str, language: Language) -> String {
    let (option, why) = (name.replace('_', "-"), escaped(why));
    let example = match name {
        "host_ram" => {
            tr!(language, "\n  help: write a size, such as 512GiB", "\n  建议：写容量，例如 512GiB")
        }
        _ => String::new(),
    };
    tr!(
        language,
        "error: --{option} cannot be parsed: {why}{example}",
        "错误：无法解析 --{option}：{why}{example}"
    )
}

fn contradiction(name: &str, conflict: &Conflict, language: Language) -> String {
    let Conflict { key, written, option, given, origin, config, framework } = conflict;
    let (name, field, option) = (escaped(name), *option, option.replace('_', "-"));
    let place = match config {
        Origin::File { name: file, .. } if *file != name => {
            let place = provenance::origin(config, language);
            tr!(language, "{name} ({place})", "{name}（{place}）")
        }
        _ => name.into_owned(),
    };
    if *origin != Origin::Option {
        let (what, said) =
            (provenance::words(field, language), provenance::origin(origin, language));
        let help = match framework {
            None | Some(Framework::DeepSpeed | Framework::Accelerate) => Text::new("", ""),
            Some(_) => Text::new(
                ", because the HF Trainer exits with an error if they differ",
                "，两者不同时 HF Trainer 会报错退出",
            ),
        };
        let help = help.get(language);
        return tr!(
            language,
            "error: {what} {given} ({said}) contradicts {place}, where {key} is {written}\n  help: write the same value in both places{help}. To predict the value in the config, add --{option} {written}",
            "错误：{what} {given}（{said}）与 {place} 矛盾：其中 {key} 是 {written}\n  建议：两处写相同的值{help}。要按配置里的值预测，请加上 --{option} {written}"
        );
    }
    tr!(
        language,
        "error: --{option} {given} contradicts {place}, where {key} is {written}\n  help: omit --{option}, or change the file",
        "错误：--{option} {given} 与 {place} 矛盾：文件里 {key} 是 {written}\n  建议：去掉 --{option}，或修改文件"
    )
}

/// Why nothing can be judged.
pub fn judging(problem: &JudgingProblem, language: Language) -> String {
    match problem {
        JudgingProblem::TwoPrecisions => tr!(
            language,
            "error: `--bf16` and `--fp16` cannot both be on\n  help: keep the one that your script uses",
            "错误：`--bf16` 和 `--fp16` 不能同时开启\n  建议：只保留脚本使用的选项"
        ),
        JudgingProblem::UnknownRule { code, nearest } => {
            talk::unknown_rule(code, *nearest, language)
        }
    }
}

/// Why no step can be timed.
pub fn simulating(problem: &SimulateProblem, layout: &Layout) -> String {
    match problem {
        SimulateProblem::Question(problem) => memory(problem, layout),
        SimulateProblem::NoSpeed => simulate::no_speed(layout.language),
        SimulateProblem::NoBf16 { card } => tr!(
            layout.language,
            "error: {}\n  help: use fp16, or name GPUs that support bf16 (NVIDIA: Ampere and later)",
            "错误：{}\n  建议：改用 fp16，或换用支持 bf16 的 GPU（NVIDIA：Ampere 及以后）",
            provenance::no_bf16(card, layout.language)
        ),
    }
}

/// Why there is no plan.
pub fn planning(problem: &PlanProblem, language: Language) -> String {
    match problem {
        PlanProblem::Machines(problem) => machines(problem, language),
        PlanProblem::OutOfRange(problem) => out_of_range(problem, language),
        PlanProblem::Task(problem) => task(problem, language),
        PlanProblem::Bill(bad) => simulate::bad_cost(bad, language),
        PlanProblem::Plan(error) => plan::problem(error, language),
        PlanProblem::LongestOfTask(task) => {
            let task = task.name();
            tr!(
                language,
                "error: zeropilot finds the longest sequence only for supervised fine-tuning, not for {task}\n  help: try lengths with --seq-len",
                "错误：zeropilot 只能求监督微调的最长序列，不支持 {task}\n  建议：用 --seq-len 逐个尝试长度"
            )
        }
    }
}

/// Why there is no config; `name` is where it would have gone.
pub fn creating(problem: &CreateProblem, name: &str, layout: &Layout) -> String {
    let language = layout.language;
    match problem {
        CreateProblem::Refused(refusals) => creation::refusals(refusals, language),
        CreateProblem::Findings { text, report } => {
            let layout = Layout { format: Format::Human, ..*layout };
            let bytes = text.as_bytes();
            let file = FileResult { name, bytes, report, is_named: true, headline: None };
            format!("{}{}", layout.file(&file), creation::not_written(language))
        }
    }
}

/// Why machines cannot be read.
pub fn machines(problem: &MachinesProblem, language: Language) -> String {
    match problem {
        MachinesProblem::NoGpus => tr!(
            language,
            "error: no GPUs are given\n  help: name the GPUs, such as 8xA100-80G",
            "错误：没有给出 GPU\n  建议：写明 GPU，例如 8xA100-80G"
        ),
        MachinesProblem::Gpus { text, error } => gpus::gpus_error(text, error, language),
        MachinesProblem::Network { text, error } => simulate::bad_network(text, error, language),
        MachinesProblem::HostRam(bytes) => tr!(
            language,
            "error: --host-ram is only {bytes}\n  help: include the unit, as in --host-ram 512GiB",
            "错误：--host-ram 只有 {bytes}\n  建议：写上单位，例如 --host-ram 512GiB"
        ),
        MachinesProblem::Nvme { text } => simulate::bad_nvme(text, language),
        MachinesProblem::OtherDevice { measured, asked } => tr!(
            language,
            ("error: the machine profile describes {measured}, but --gpus names {asked}\n  help: omit --gpus, or run \
              `zeropilot calibrate` on a node with the GPUs that --gpus names"),
            ("错误：机器实测文件测的是 {measured}，而 --gpus 写的是 {asked}\n  建议：去掉 --gpus，或在有这些 GPU \
              的节点上运行 `zeropilot calibrate`")
        ),
        MachinesProblem::OtherRanks { asked, measured } => {
            let measured = measured.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            tr!(
                language,
                ("error: the machine profile was measured with {measured} ranks, but this run has \
                  {asked}\n  help: run `zeropilot calibrate --ranks {asked}`, because ranks share the CPUs"),
                ("错误：机器实测文件测的是 {measured} 个 rank，而这里要预测 {asked} 个：各 rank 共用处理器，速度随 rank 数变化\n  \
                  建议：运行 `zeropilot calibrate --ranks {asked}`")
            )
        }
        MachinesProblem::NoGpuMeasured => tr!(
            language,
            ("error: the machine profile was measured on CPUs and does not describe GPU memory\n  help: use the \
              profile with `zeropilot simulate`; for memory and plans, omit --machine and name the GPUs"),
            ("错误：机器实测文件是在处理器（CPU）上测的，不包含 GPU 显存的信息\n  \
              建议：`zeropilot simulate` 可以使用它；估算显存和制定方案时请去掉 --machine 并写明 GPU")
        ),
    }
}

fn out_of_range(problem: &OutOfRange, language: Language) -> String {
    let OutOfRange { name, value, least, most } = problem;
    tr!(
        language,
        "error: `{name}` is {value}, but must be between {least} and {most}",
        "错误：`{name}` 是 {value}，应在 {least} 到 {most} 之间"
    )
}
