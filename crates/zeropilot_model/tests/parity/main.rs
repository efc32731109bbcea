//! The same models as transformers builds and PEFT adapts, on random configs.

mod any_type;
mod composite;
mod generator;
mod inventory;
mod lora;
mod oracle;
