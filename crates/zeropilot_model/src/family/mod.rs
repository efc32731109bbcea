//! The families: from a config to the module tree of the class transformers builds.
//!
//! One file per way of building; [`Family`] says which family takes which. What a family's config
//! leaves out, and what its classes are called, is in the extracted facts.

mod bert;
mod blueprint;
mod decoder;
mod deepseek;
mod gpt;
mod llama;
mod mixture;
mod modernbert;
mod older;
pub(crate) mod parts;
mod t5;
mod whisper;

use blueprint::Builder;
pub(crate) use blueprint::{Blueprint, Context, Head};

macro_rules! families {
    ($($(#[doc = $doc:literal])* $name:ident = $model_type:literal by $build:path,)*) => {
        /// A family of models: what `model_type` says in a config.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Family {
            $($(#[doc = $doc])* $name,)*
        }

        impl Family {
            /// Every family.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its `model_type`.
            pub fn model_type(self) -> &'static str {
                match self {
                    $(Self::$name => $model_type,)*
                }
            }

            fn builder(self) -> Builder {
                match self {
                    $(Self::$name => $build,)*
                }
            }
        }
    };
}

families! {
    /// BERT.
    Bert = "bert" by bert::bert,
    /// BLOOM.
    Bloom = "bloom" by older::bloom,
    /// Command-R.
    Cohere = "cohere" by llama::cohere,
    /// Command-R7B and its successors.
    Cohere2 = "cohere2" by llama::cohere2,
    /// DeepSeek-V2.
    DeepseekV2 = "deepseek_v2" by deepseek::deepseek_v2,
    /// DeepSeek-V3 and R1.
    DeepseekV3 = "deepseek_v3" by deepseek::deepseek_v3,
    /// Falcon.
    Falcon = "falcon" by older::falcon,
    /// Gemma.
    Gemma = "gemma" by llama::gemma,
    /// Gemma 2.
    Gemma2 = "gemma2" by llama::gemma2,
    /// The text model of Gemma 3.
    Gemma3Text = "gemma3_text" by llama::gemma3,
    /// GLM-4 9B as first released.
    Glm = "glm" by llama::glm,
    /// GLM-4-0414.
    Glm4 = "glm4" by llama::glm4,
    /// GLM-4.5.
    Glm4Moe = "glm4_moe" by mixture::glm4_moe,
    /// GPT-2.
    Gpt2 = "gpt2" by gpt::gpt2,
    /// SantaCoder and StarCoder.
    GptBigCode = "gpt_bigcode" by gpt::gpt_bigcode,
    /// GPT-Neo.
    GptNeo = "gpt_neo" by gpt::gpt_neo,
    /// GPT-NeoX and Pythia.
    GptNeoX = "gpt_neox" by older::gpt_neox,
    /// gpt-oss.
    GptOss = "gpt_oss" by mixture::gpt_oss,
    /// GPT-J.
    GptJ = "gptj" by gpt::gptj,
    /// Granite.
    Granite = "granite" by llama::granite,
    /// Granite, mixture of experts.
    GraniteMoe = "granitemoe" by mixture::granitemoe,
    /// Llama 1 to 3.
    Llama = "llama" by llama::llama,
    /// The text model of Llama 4.
    Llama4Text = "llama4_text" by mixture::llama4,
    /// Ministral 3.
    Ministral3 = "ministral3" by llama::ministral3,
    /// Mistral.
    Mistral = "mistral" by llama::mistral,
    /// Mixtral.
    Mixtral = "mixtral" by mixture::mixtral,
    /// ModernBERT.
    ModernBert = "modernbert" by modernbert::modernbert,
    /// mT5.
    Mt5 = "mt5" by t5::mt5,
    /// OLMo.
    Olmo = "olmo" by llama::olmo,
    /// OLMo 2.
    Olmo2 = "olmo2" by llama::olmo2,
    /// OLMo 3.
    Olmo3 = "olmo3" by llama::olmo3,
    /// OLMoE.
    Olmoe = "olmoe" by mixture::olmoe,
    /// OPT.
    Opt = "opt" by older::opt,
    /// Phi-1, Phi-1.5 and Phi-2.
    Phi = "phi" by older::phi,
    /// Phi-3 and Phi-4.
    Phi3 = "phi3" by llama::phi3,
    /// Phi-3.5-MoE.
    Phimoe = "phimoe" by mixture::phimoe,
    /// Qwen 2 and 2.5.
    Qwen2 = "qwen2" by llama::qwen2,
    /// Qwen 1.5 and 2, mixture of experts.
    Qwen2Moe = "qwen2_moe" by mixture::qwen2_moe,
    /// Qwen 3.
    Qwen3 = "qwen3" by llama::qwen3,
    /// Qwen 3, mixture of experts.
    Qwen3Moe = "qwen3_moe" by mixture::qwen3_moe,
    /// RoBERTa.
    Roberta = "roberta" by bert::roberta,
    /// SmolLM 3.
    SmolLm3 = "smollm3" by llama::smollm3,
    /// StableLM.
    StableLm = "stablelm" by llama::stablelm,
    /// StarCoder 2.
    Starcoder2 = "starcoder2" by llama::starcoder2,
    /// T5.
    T5 = "t5" by t5::t5,
    /// Whisper.
    Whisper = "whisper" by whisper::whisper,
}

impl Family {
    /// The family of a `model_type`.
    pub fn from_model_type(model_type: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|family| family.model_type() == model_type)
    }

    /// The tree of a config.
    pub(crate) fn build(self, context: &Context<'_>) -> Result<Blueprint, crate::ConfigError> {
        self.builder()(context)
    }
}
