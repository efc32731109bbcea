//! The families: from a config to the module tree of the class transformers builds.
//!
//! One file per way of building; [`Family`] says which family takes which. What a family's config
//! leaves out, and what its classes are called, is in the extracted facts.

mod bert;
mod blueprint;
mod composite;
mod decoder;
mod deepseek;
mod delta;
mod gpt;
mod idefics;
mod llama;
mod llama_vision;
mod llava;
mod mixture;
mod modernbert;
mod older;
pub(crate) mod parts;
mod qwen_vl;
mod state_space;
mod t5;
mod ungated;
mod vision;
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
    /// Apertus.
    Apertus = "apertus" by ungated::apertus,
    /// AFM of Arcee.
    Arcee = "arcee" by ungated::arcee,
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
    /// dots.llm1.
    Dots1 = "dots1" by mixture::dots1,
    /// ERNIE 4.5.
    Ernie45 = "ernie4_5" by llama::ernie4_5,
    /// ERNIE 4.5, mixture of experts.
    Ernie45Moe = "ernie4_5_moe" by mixture::ernie4_5_moe,
    /// EXAONE 4.
    Exaone4 = "exaone4" by llama::exaone4,
    /// Falcon.
    Falcon = "falcon" by older::falcon,
    /// Falcon-H1.
    FalconH1 = "falcon_h1" by state_space::falcon_h1,
    /// Gemma.
    Gemma = "gemma" by llama::gemma,
    /// Gemma 2.
    Gemma2 = "gemma2" by llama::gemma2,
    /// Gemma 3 with its tower.
    Gemma3 = "gemma3" by llava::gemma3,
    /// The text model of Gemma 3.
    Gemma3Text = "gemma3_text" by llama::gemma3,
    /// GLM-4 9B as first released.
    Glm = "glm" by llama::glm,
    /// GLM-4-0414.
    Glm4 = "glm4" by llama::glm4,
    /// GLM-4.5.
    Glm4Moe = "glm4_moe" by mixture::glm4_moe,
    /// GLM-4.1V.
    Glm4v = "glm4v" by qwen_vl::glm4v,
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
    /// Granite 4.
    GraniteMoeHybrid = "granitemoehybrid" by state_space::granitemoehybrid,
    /// Helium.
    Helium = "helium" by llama::helium,
    /// Hunyuan, dense.
    HunyuanV1Dense = "hunyuan_v1_dense" by llama::hunyuan_v1_dense,
    /// Idefics 3 and the first SmolVLM.
    Idefics3 = "idefics3" by idefics::idefics3,
    /// InternVL 2.5 and later.
    InternVl = "internvl" by llava::internvl,
    /// LFM2.
    Lfm2 = "lfm2" by state_space::lfm2,
    /// Llama 1 to 3.
    Llama = "llama" by llama::llama,
    /// Llama 4 with its tower.
    Llama4 = "llama4" by llama_vision::llama4,
    /// The text model of Llama 4.
    Llama4Text = "llama4_text" by mixture::llama4,
    /// LLaVA 1.5 and models of its form, such as Pixtral.
    Llava = "llava" by llava::llava,
    /// LLaVA 1.6.
    LlavaNext = "llava_next" by llava::llava_next,
    /// LLaVA-OneVision.
    LlavaOnevision = "llava_onevision" by llava::llava_onevision,
    /// Mamba 2.
    Mamba2 = "mamba2" by state_space::mamba2,
    /// MiniMax-M2.
    MinimaxM2 = "minimax_m2" by mixture::minimax_m2,
    /// The text model of Ministral 3.
    Ministral3 = "ministral3" by llama::ministral3,
    /// Mistral.
    Mistral = "mistral" by llama::mistral,
    /// Mistral Small 3.1 and later, Ministral 3.
    Mistral3 = "mistral3" by llava::mistral3,
    /// Mixtral.
    Mixtral = "mixtral" by mixture::mixtral,
    /// Llama 3.2 Vision.
    Mllama = "mllama" by llama_vision::mllama,
    /// ModernBERT.
    ModernBert = "modernbert" by modernbert::modernbert,
    /// mT5.
    Mt5 = "mt5" by t5::mt5,
    /// Nemotron and Minitron.
    Nemotron = "nemotron" by ungated::nemotron,
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
    /// PaliGemma 1 and 2.
    PaliGemma = "paligemma" by llava::paligemma,
    /// Phi-1, Phi-1.5 and Phi-2.
    Phi = "phi" by older::phi,
    /// Phi-3 and Phi-4.
    Phi3 = "phi3" by llama::phi3,
    /// Phi-3.5-MoE.
    Phimoe = "phimoe" by mixture::phimoe,
    /// Qwen 2 and 2.5.
    Qwen2 = "qwen2" by llama::qwen2,
    /// Qwen2.5-VL.
    Qwen2_5Vl = "qwen2_5_vl" by qwen_vl::qwen2_5_vl,
    /// Qwen2-Audio.
    Qwen2Audio = "qwen2_audio" by whisper::qwen2_audio,
    /// Qwen 1.5 and 2, mixture of experts.
    Qwen2Moe = "qwen2_moe" by mixture::qwen2_moe,
    /// Qwen2-VL.
    Qwen2Vl = "qwen2_vl" by qwen_vl::qwen2_vl,
    /// Qwen 3.
    Qwen3 = "qwen3" by llama::qwen3,
    /// Qwen 3, mixture of experts.
    Qwen3Moe = "qwen3_moe" by mixture::qwen3_moe,
    /// Qwen3-VL.
    Qwen3Vl = "qwen3_vl" by qwen_vl::qwen3_vl,
    /// Qwen3-VL, mixture of experts.
    Qwen3VlMoe = "qwen3_vl_moe" by qwen_vl::qwen3_vl_moe,
    /// The text model of Qwen 3.5 and 3.6.
    Qwen35Text = "qwen3_5_text" by delta::qwen3_5,
    /// The text model of Qwen 3.5 and 3.6, mixture of experts.
    Qwen35MoeText = "qwen3_5_moe_text" by delta::qwen3_5_moe,
    /// Qwen3-Next.
    Qwen3Next = "qwen3_next" by delta::qwen3_next,
    /// RoBERTa.
    Roberta = "roberta" by bert::roberta,
    /// Seed-OSS.
    SeedOss = "seed_oss" by llama::seed_oss,
    /// SmolLM 3.
    SmolLm3 = "smollm3" by llama::smollm3,
    /// SmolVLM 2.
    SmolVlm = "smolvlm" by idefics::smolvlm,
    /// StableLM.
    StableLm = "stablelm" by llama::stablelm,
    /// StarCoder 2.
    Starcoder2 = "starcoder2" by llama::starcoder2,
    /// T5.
    T5 = "t5" by t5::t5,
    /// Whisper.
    Whisper = "whisper" by whisper::whisper,
    /// XLM-RoBERTa: most multilingual embedding models and rerankers.
    XlmRoberta = "xlm-roberta" by bert::xlm_roberta,
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
