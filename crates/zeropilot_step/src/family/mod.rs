//! Model families as programs.
//!
//! A family is built once from a [`Setup`] (its modules and parameters, in the order the model
//! registers them) and can then be run on any number of tapes. The order of the calls in a program is
//! the order of the real model, and its variables live as long as the model's do.

mod attention;
mod bert;
mod bloom;
mod build;
mod causal;
mod decoder;
mod falcon;
mod feed_forward;
mod gpt2;
mod gpt_neox;
mod layer;
mod opt;
mod part;
mod policy_and_value;
mod split_vocabulary;
mod t5;
mod ulysses;
mod vision;
mod vision_language;
mod whisper;

pub(crate) use self::policy_and_value::build_with_value;
use crate::head::LossHead;
use crate::model::Model;
use crate::shape::{Batch, LongContext, Shape, Switches, TensorParallel, Tower, Training};
use crate::tape::{Mark, Options, Rerun, Tape, Tensor, Trace};

/// The families with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Llama.
    Llama,
    /// Mistral.
    Mistral,
    /// Qwen2 and Qwen2.5.
    Qwen2,
    /// Qwen3.
    Qwen3,
    /// Gemma 2.
    Gemma2,
    /// Gemma 3, text only.
    Gemma3,
    /// Phi-3.
    Phi3,
    /// GPT-2.
    Gpt2,
    /// GPT-NeoX.
    GptNeoX,
    /// OPT.
    Opt,
    /// BLOOM.
    Bloom,
    /// Falcon, multi-query and parallel.
    Falcon,
    /// T5.
    T5,
    /// BERT with a masked-language-model head.
    Bert,
    /// BERT with a sequence classifier.
    BertClassifier,
    /// Mixtral.
    Mixtral,
    /// Qwen2 mixture of experts.
    Qwen2Moe,
    /// Qwen3 mixture of experts.
    Qwen3Moe,
    /// DeepSeek-V3.
    DeepseekV3,
    /// Whisper.
    Whisper,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Llama,
        Self::Mistral,
        Self::Qwen2,
        Self::Qwen3,
        Self::Gemma2,
        Self::Gemma3,
        Self::Phi3,
        Self::Gpt2,
        Self::GptNeoX,
        Self::Opt,
        Self::Bloom,
        Self::Falcon,
        Self::T5,
        Self::Bert,
        Self::BertClassifier,
        Self::Mixtral,
        Self::Qwen2Moe,
        Self::Qwen3Moe,
        Self::DeepseekV3,
        Self::Whisper,
    ];

    /// The model type, as configurations spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma2 => "gemma2",
            Self::Gemma3 => "gemma3",
            Self::Phi3 => "phi3",
            Self::Gpt2 => "gpt2",
            Self::GptNeoX => "gpt_neox",
            Self::Opt => "opt",
            Self::Bloom => "bloom",
            Self::Falcon => "falcon",
            Self::T5 => "t5",
            Self::Bert => "bert",
            Self::BertClassifier => "bertcls",
            Self::Mixtral => "mixtral",
            Self::Qwen2Moe => "qwen2_moe",
            Self::Qwen3Moe => "qwen3_moe",
            Self::DeepseekV3 => "deepseek_v3",
            Self::Whisper => "whisper",
        }
    }
}

/// Everything that decides a family's program.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Which family.
    pub family: Family,
    /// Its dimensions; of a model that sees, those of its language model. Heads and feed-forward parts are those of this
    /// rank where ranks share layers.
    pub shape: Shape,
    /// What stands before the language model.
    pub tower: Tower,
    /// Switches of its configuration.
    pub switches: Switches,
    /// What is trained.
    pub training: Training,
    /// What one micro step is fed on this rank.
    pub batch: Batch,
    /// How the loss is computed.
    pub head: LossHead,
    /// Tokens at the end of a sequence that have labels; `None` for all.
    pub completion: Option<u64>,
    /// What makes room for long sequences.
    pub long_context: LongContext,
    /// How ranks share layers.
    pub tensor: TensorParallel,
    /// Whether keys and values of all layers are kept until the output goes (`use_cache`).
    pub keeps_cache: bool,
    /// Whether the hidden states before every layer are kept until the output goes (`output_hidden_states`).
    pub keeps_hidden: bool,
}

impl Setup {
    /// Whether a rank has only a part of each sequence.
    pub(crate) fn shares_sequence(&self) -> bool {
        self.long_context.sequence_ranks > 1
    }
}

/// What a model returns: the loss, and tensors that live until the caller drops the output.
#[derive(Debug)]
pub struct Output<'t> {
    /// The loss.
    pub loss: Tensor<'t>,
    /// Logits and other parts of the output.
    pub rest: Vec<Tensor<'t>>,
}

/// A family built for one setup.
pub trait Program: Rerun + std::fmt::Debug + Send + Sync {
    /// Its modules and parameters.
    fn model(&self) -> &Model;
    /// Run the model and its loss.
    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t>;
    /// Run the model for something else than its own loss; `None` if it cannot return that.
    fn call<'t>(&self, tape: &'t Tape, returns: Returns) -> Option<Vec<Tensor<'t>>> {
        let _ = (tape, returns);
        None
    }
    /// Run a policy and its value model: logits of all positions, and a number for each; `None` if it is one model.
    fn call_both<'t>(&self, tape: &'t Tape) -> Option<[Tensor<'t>; 2]> {
        let _ = tape;
        None
    }
    /// Run the value model of a policy: a number for each position; `None` if it has none.
    fn call_value<'t>(&self, tape: &'t Tape) -> Option<Tensor<'t>> {
        let _ = tape;
        None
    }
}

/// What a model is called for, if not for its own loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// Logits of all positions.
    Logits,
    /// Logits of so many last positions of each sequence.
    LastLogits(u64),
    /// Logits of all positions, and its own loss after them.
    LogitsAndLoss,
    /// Log-probabilities of labels, tile by tile (TRL's `fused_lm_head`), and what else is computed on the way.
    LogProbabilities(FusedOutputs),
    /// One number for each sequence.
    Score,
}

/// What TRL's head computes beside log-probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FusedOutputs {
    /// The entropy of each position.
    pub entropy: bool,
    /// The mean logit of each position.
    pub mean: bool,
    /// Whether the label is the most likely token.
    pub top1: bool,
}

/// Build the program of `setup`.
#[must_use]
pub fn build(setup: &Setup) -> Box<dyn Program> {
    match setup.family {
        Family::Bert | Family::BertClassifier => Box::new(bert::Bert::new(setup)),
        Family::T5 => Box::new(t5::T5::new(setup)),
        Family::Whisper => Box::new(whisper::Whisper::new(setup)),
        _ => {
            let mut model = Model::default();
            let part = part::build(&mut model, setup);
            Box::new(part::Alone::new(model, part))
        }
    }
}

/// Forward, drop the output, backward: one micro step of `program` with its own loss.
#[must_use]
pub fn micro_step(program: &dyn Program, options: Options) -> Trace {
    let tape = Tape::new(options);
    {
        let loss = own_loss(program, &tape);
        tape.mark(Mark::Saved);
        tape.backward(&loss, &AsRerun(program));
    }
    tape.drop_kept();
    tape.into_trace()
}

/// Forward, and the output dropped: the loss that the model computes itself.
pub(crate) fn own_loss<'t>(program: &dyn Program, tape: &'t Tape) -> Tensor<'t> {
    let Output { loss, rest } = program.forward(tape);
    let rest = tape.returned(rest);
    tape.mark(Mark::ForwardDone);
    drop(rest);
    loss
}

/// Leave the modules above the model; each wraps the loss and the rest of the output.
fn leave_tops<'t>(tape: &'t Tape, tops: &[crate::model::Module], output: Output<'t>) -> Output<'t> {
    let Output { mut loss, mut rest } = output;
    for &top in tops.iter().rev() {
        tape.leave_silently(top);
        loss = tape.wrap_output(top, &loss);
        rest = rest.iter().map(|tensor| tape.wrap_output(top, tensor)).collect();
    }
    Output { loss, rest }
}

/// As [`leave_tops`], for a model that returns only logits.
fn leave_tops_with<'t>(
    tape: &'t Tape,
    tops: &[crate::model::Module],
    logits: Tensor<'t>,
) -> Tensor<'t> {
    let mut logits = logits;
    for &top in tops.iter().rev() {
        tape.leave_silently(top);
        logits = tape.wrap_output(top, &logits);
    }
    logits
}

/// A program seen only as something that can be re-run.
pub(crate) struct AsRerun<'p>(pub(crate) &'p dyn Program);

impl Rerun for AsRerun<'_> {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        self.0.rerun(key, arguments)
    }
}
