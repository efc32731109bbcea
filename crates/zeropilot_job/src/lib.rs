//! A training job: what is trained, how and on how many ranks, as launch scripts, training scripts, YAML and DeepSpeed
//! configs say it.
//!
//! [`TrainingJob`] is the question that every verb takes; each of its values knows its [`Origin`]. [`local::open`] makes
//! one from a file (feature `scripts`, which links C grammars). Below that, [`read`] takes the text of a shell script and gives its [`Launch`]es: who starts how many ranks,
//! which config they read and which training arguments they get, from the command line, from YAML and
//! from the training script. What the texts do not settle, such as a variable from outside, stays
//! unknown and is listed; nothing is guessed. Files are asked for through a function, since this crate opens none.

#[cfg(feature = "scripts")]
mod arguments;
#[cfg(feature = "scripts")]
mod dictionary;
#[cfg(feature = "scripts")]
mod directory;
mod framework;
#[cfg(feature = "scripts")]
mod hostfile;
#[cfg(feature = "yaml")]
mod inline_config;
#[cfg(feature = "yaml")]
mod kind;
#[cfg(feature = "scripts")]
mod launch;
#[cfg(feature = "scripts")]
mod launcher;
mod library_version;
#[cfg(feature = "scripts")]
pub mod line_edit;
#[cfg(feature = "scripts")]
pub mod local;
#[cfg(feature = "scripts")]
mod made;
mod name;
mod origin;
#[cfg(feature = "yaml")]
mod pasted;
#[cfg(feature = "scripts")]
mod place;
#[cfg(feature = "scripts")]
mod python;
#[cfg(feature = "scripts")]
mod python_flow;
#[cfg(feature = "scripts")]
mod python_reader;
#[cfg(feature = "scripts")]
mod ranks;
#[cfg(feature = "scripts")]
mod reader;
#[cfg(feature = "scripts")]
mod recipe;
#[cfg(feature = "scripts")]
mod requirement;
#[cfg(feature = "scripts")]
mod script;
#[cfg(feature = "scripts")]
mod shell;
#[cfg(feature = "scripts")]
mod shell_array;
#[cfg(feature = "scripts")]
mod shell_test;
#[cfg(feature = "scripts")]
mod slurm;
mod task;
#[cfg(feature = "scripts")]
mod told;
#[cfg(feature = "scripts")]
mod training;
mod training_job;
#[cfg(feature = "scripts")]
mod trl;
#[cfg(feature = "scripts")]
mod unread;
#[cfg(feature = "yaml")]
mod yaml;

#[cfg(feature = "scripts")]
pub use arguments::{ACCELERATE_SECTION, CLIENT_OPTIMIZER, Given};
#[cfg(feature = "scripts")]
pub use dictionary::as_json;
pub use framework::Framework;
#[cfg(feature = "scripts")]
pub use hostfile::entries as hostfile_entries;
#[cfg(feature = "yaml")]
pub use kind::FileKind;
#[cfg(feature = "scripts")]
pub use launch::Launch;
#[cfg(feature = "scripts")]
pub use launcher::Launcher;
pub use library_version::{LibraryVersion, NotAVersion};
#[cfg(feature = "scripts")]
pub use made::Made;
pub use name::{
    Attention, MethodName, NumberFormat, Optimizer, Quantization, ReferenceName, RolloutName,
    TaskName, TrainerName,
};
pub use origin::{Origin, Sourced};
#[cfg(feature = "yaml")]
pub use pasted::{Change, Pasted, PastedKind};
#[cfg(feature = "scripts")]
pub use place::{Named, Place, Said};
#[cfg(feature = "scripts")]
pub use python::{
    Assigned, Call, Division, Exit, Function, Guard, Leaving, Loop, PythonScript, SetMember, Value,
};
#[cfg(feature = "scripts")]
pub use script::{Files, LaunchScript, read};
#[cfg(feature = "scripts")]
pub use shell::{Assignment, Outside, Word};
pub use task::{JobReuse, JobTask, JobVllm};
#[cfg(feature = "scripts")]
pub use training::is_training_arguments;
pub use training_job::{
    ConfigContent, Direction, FrozenParts, JobConfig, NotModelled, TiledLoss, TrainingJob,
};
