//! What to do with a config that was made: what the training program must be told, and what to run next.

use zeropilot_plan::{Job, Launcher, Machines, Precision, Target};
use zeropilot_text::{Language, Text};

use super::Created;

pub(super) fn words(created: &[Created<'_>], language: Language) -> String {
    told(created, language) + &next(created, language)
}

/// What the program that trains must be told beside the config.
fn told(created: &[Created<'_>], language: Language) -> String {
    let mut text = String::new();
    for config in created {
        let target = config.recipe.target;
        let arguments = config.recipe.arguments();
        if arguments.is_empty() {
            continue;
        }
        let given: Vec<String> = arguments
            .iter()
            .map(|argument| match target {
                Target::HfTrainer | Target::Swift => {
                    format!("--{} {}", argument.name, argument.value)
                }
                Target::Accelerate => {
                    format!("DataLoader(..., {}={})", argument.name, argument.value)
                }
                _ => format!("{}: {}", argument.name, argument.value),
            })
            .collect();
        let separator =
            if matches!(target, Target::HfTrainer | Target::Swift) { " " } else { "\n  " };
        let lead = match target {
            Target::LlamaFactory | Target::Axolotl => {
                Text::new("add to your YAML", "写进训练的 YAML").get(language)
            }
            Target::Accelerate => Text::new("in your script", "训练脚本里").get(language),
            _ => Text::new("train with", "训练参数").get(language),
        };
        let tier = config.tier.map(|tier| format!(" ({})", tier.name())).unwrap_or_default();
        let colon = Text::new(":", "：").get(language);
        text.push_str(&format!("\n{lead}{tier}{colon}\n  {}\n", given.join(separator)));
    }
    text
}

fn next(created: &[Created<'_>], language: Language) -> String {
    let mut commands: Vec<String> = created.iter().filter_map(check_command).collect();
    if let [one] = created {
        commands.extend(memory_command(one));
        commands.extend(launch_command(one));
    }
    if commands.is_empty() {
        return String::new();
    }
    let lead = Text::new("next:", "下一步：").get(language);
    format!("\n{lead}\n  {}\n", commands.join("\n  "))
}

/// The command that predicts the memory, with words in capitals for what is not known here. It can be told neither
/// the precision a Trainer will fill in, which it takes to be bf16, nor that accelerate reads the file.
fn memory_command(created: &Created<'_>) -> Option<String> {
    let is_understood = match created.recipe.target {
        Target::DeepSpeed => true,
        Target::Accelerate => false,
        _ => created.recipe.precision == Precision::Bf16,
    };
    if !is_understood {
        return None;
    }
    let batch = created.recipe.batch;
    let path = shlex::try_quote(created.path?).ok()?;
    let model = created.model.map_or(Ok("MODEL".into()), shlex::try_quote).ok()?;
    let gpus = batch.world.map_or("GPUS".to_owned(), |world| world.to_string());
    let mut command = format!("zeropilot memory --config {path} --model {model} --gpus {gpus}");
    if created.recipe.target.fills_placeholders() {
        command.push_str(&format!(" --micro-batch {}", batch.micro));
        command.push_str(&format!(" --grad-accum {}", batch.accumulation));
    }
    Some(command)
}

/// More ranks than this are seldom on one machine, and how many there are is not known here.
const MOST_ON_ONE_MACHINE: u64 = 8;

/// The command that starts the run on this machine.
fn launch_command(created: &Created<'_>) -> Option<String> {
    let recipe = created.recipe;
    let ranks_per_machine =
        recipe.batch.world.filter(|world| world.get() <= MOST_ON_ONE_MACHINE)?;
    let launcher = Launcher::of(recipe.target)?;
    let script = launcher.script();
    let told = if recipe.target.is_trainer() { recipe.arguments() } else { Vec::new() };
    let job = Job {
        machines: Machines::One,
        ranks_per_machine,
        script,
        config: created.path?,
        arguments: &told,
        rlhf_type: None,
    };
    job.command(launcher).shell().ok()
}

/// The command that checks a config as it will be read.
fn check_command(created: &Created<'_>) -> Option<String> {
    let recipe = created.recipe;
    let path = shlex::try_quote(created.path?).ok()?;
    let mut command = format!("zeropilot check {path}");
    if let Some(world) = recipe.batch.world {
        command.push_str(&format!(" --world-size {world}"));
    }
    let front_end = recipe.target.front_end();
    if recipe.target.fills_placeholders() {
        command.push_str(&format!(" --front-end {front_end}"));
        command.push_str(&format!(" --per-device-train-batch-size {}", recipe.batch.micro));
    }
    if recipe.target.is_trainer() {
        command.push_str(&format!(" --gradient-accumulation-steps {}", recipe.batch.accumulation));
        if !matches!(recipe.precision, Precision::Fp32) {
            command.push_str(&format!(" --{}", recipe.precision.name()));
        }
    }
    Some(command)
}
