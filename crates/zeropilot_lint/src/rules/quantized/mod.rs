//! What becomes of a model that a training script loads with bitsandbytes.
//!
//! Letters are those of precision: what is kept in how many bits.

pub(crate) mod experts;
pub(crate) mod skip_list;
pub(crate) mod wide_remainder;

use crate::job_view::Training;
use crate::rules::launch::model_first::STAGE_2;
use zeropilot_job::{Call, PythonScript, Value};

/// A model that is loaded with bitsandbytes, and the call that says how.
struct Quantized<'a> {
    load: &'a Call,
    config: &'a Call,
}

impl Quantized<'_> {
    /// The last part of the class that loads the model.
    fn class(&self) -> &str {
        let class = self.load.object();
        class.rsplit('.').next().unwrap_or(class)
    }
}

/// What a script loads with its `BitsAndBytesConfig`, if it makes one only.
fn quantized_models(script: &PythonScript) -> impl Iterator<Item = Quantized<'_>> {
    let mut configs = script.calls.iter().filter(|call| call.name() == "BitsAndBytesConfig");
    let config = configs.next().filter(|_| configs.next().is_none());
    config.into_iter().flat_map(|config| {
        let loads = script.calls.iter().filter(|call| is_loaded_with_bitsandbytes(call));
        loads.map(move |load| Quantized { load, config })
    })
}

fn is_loaded_with_bitsandbytes(call: &Call) -> bool {
    let is_bitsandbytes = |class: &str| class.rsplit('.').next() == Some("BitsAndBytesConfig");
    call.name() == "from_pretrained"
        && matches!(call.keyword("quantization_config"), Some((Value::Call(class), _)) if is_bitsandbytes(class))
}

/// The name of the checkpoint that a call loads: written out, or an option that the launch or its default settles.
fn checkpoint<'a>(training: &Training<'a>, load: &'a Call) -> Option<&'a str> {
    match load.argument(0, "pretrained_model_name_or_path")?.0 {
        Value::Argument(option) => {
            let default = || literal(training.script.option_default(option)?.0);
            training.launch.given.value(option).or_else(default)
        }
        name => literal(name),
    }
}

fn literal(value: &Value) -> Option<&str> {
    match value {
        Value::Literal(text) => Some(text),
        _ => None,
    }
}

fn is_on(call: &Call, name: &str) -> bool {
    call.keyword(name).and_then(|(value, _)| literal(value)) == Some("True")
}
