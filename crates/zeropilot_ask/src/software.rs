//! The software of a run: which DeepSpeed and which transformers, and what older ones do differently.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_job::{Direction, LibraryVersion, NotModelled, Origin};
use zeropilot_model::Model;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::Recipe;
use zeropilot_step::zero::{NotFollowed, casts_adapters, not_followed};

/// The software of a run; what is not said is the newest that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct Software {
    /// Set the DeepSpeed version of the run; if omitted, the installed version, or the newest known version
    #[serde(deserialize_with = "parsed")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "VERSION"))]
    pub deepspeed_version: Option<EngineVersion>,
    /// Set the transformers version of the run; if omitted, the newest measured version (5.22)
    #[serde(deserialize_with = "parsed")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "VERSION"))]
    pub transformers_version: Option<LibraryVersion>,
    /// Set the TRL version of the run; if omitted, the newest measured version (1.16)
    #[serde(deserialize_with = "parsed")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "VERSION"))]
    pub trl_version: Option<LibraryVersion>,
    /// The DeepSpeed that is installed, and where; it counts where no version is given.
    #[serde(skip)]
    #[cfg_attr(feature = "clap", arg(skip))]
    pub installed: Option<(EngineVersion, String)>,
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}

impl Software {
    /// The engine that runs.
    pub fn engine(&self) -> EngineVersion {
        let installed = || self.installed.as_ref().map(|(engine, _)| *engine);
        self.deepspeed_version.or_else(installed).unwrap_or(EngineVersion::NEWEST)
    }

    /// A recipe as this software runs it.
    pub(crate) fn recipe(&self, recipe: Recipe) -> Recipe {
        // Until February 2025 models returned 32-bit logits and shifted a copy.
        let is_old = self.is_transformers_before(4, 49);
        let loss = if is_old && recipe.loss == LossHead::Model {
            LossHead::ShiftedCopy
        } else {
            recipe.loss
        };
        let adapters_in_fp32 = recipe.adapters_in_fp32 && !casts_adapters(self.engine());
        Recipe { loss, adapters_in_fp32, ..recipe }
    }

    fn is_transformers_before(&self, major: u32, minor: u32) -> bool {
        self.transformers_version.is_some_and(|version| version < LibraryVersion::new(major, minor))
    }

    /// Whether this TRL computes the loss without whole logits: by default since 1.7.
    pub(crate) fn has_trl_head(&self) -> bool {
        self.trl_version.is_none_or(|version| version >= LibraryVersion::new(1, 7))
    }

    /// Whether this TRL prepares frozen models with the config's `optimizer` section.
    pub(crate) fn leaves_optimizer_to_frozen(&self) -> bool {
        self.trl_version.is_some_and(LibraryVersion::leaves_optimizer_to_frozen)
    }

    /// What this TRL does that no prediction follows.
    pub(crate) fn of_trl(&self) -> Option<NotModelled> {
        let version = self.trl_version?;
        let chunked = LibraryVersion::new(1, 7)..LibraryVersion::new(1, 15);
        let (en, zh) = (
            "this version's chunked loss; zeropilot uses the loss of TRL 1.16",
            "该版本的分块 loss；按 TRL 1.16 的 loss 计算",
        );
        let written = format!("trl {version}");
        chunked
            .contains(&version)
            .then(|| left_out(en, zh, &written, Direction::Either, Origin::Option))
    }

    /// What this engine does with a config that no prediction follows.
    pub(crate) fn of_engine(&self, resolved: &ResolvedConfig) -> Vec<NotModelled> {
        let engine = format!("DeepSpeed {}", self.engine());
        let all = not_followed(resolved).into_iter().map(|one| {
            let (direction, en, zh) = match one {
                NotFollowed::Fp32Gradients => (
                    Direction::Either,
                    "this version's fp32 gradient accumulation in stage 1",
                    "该版本在 stage 1 下以 fp32 累积梯度的方式",
                ),
                NotFollowed::FewLive => (
                    Direction::Either,
                    "the order in which this version gathers weights if `stage3_max_live_parameters` is low",
                    "`stage3_max_live_parameters` 较小时该版本聚合权重的顺序",
                ),
            };
            left_out(en, zh, &engine, direction, self.engine_origin())
        });
        all.collect()
    }

    /// What this transformers does with a model that no prediction follows.
    pub(crate) fn of_transformers(&self, model: &Model) -> Vec<NotModelled> {
        let mut all = Vec::new();
        let Some(version) = self.transformers_version else { return all };
        if self.is_transformers_before(5, 0) {
            let written = format!("transformers {version}");
            let mut of_models = |en, zh| {
                all.push(left_out(en, zh, &written, Direction::Either, Origin::Option));
            };
            of_models(
                "this version's activations; zeropilot uses the activations of transformers 5.22",
                "该版本的激活值；按 transformers 5.22 的激活值计算",
            );
            if model.dimensions().is_some_and(|sizes| sizes.experts.is_some()) {
                of_models(
                    "one module per expert; zeropilot assumes stacked experts, as in transformers 5",
                    "每个专家一个模块；按 transformers 5 的合并专家计算",
                );
            }
        }
        all
    }

    /// Who says which engine it is.
    pub(crate) fn engine_origin(&self) -> Origin {
        match (&self.deepspeed_version, &self.installed) {
            (Some(_), _) => Origin::Option,
            (None, Some((_, place))) => Origin::Installed { place: place.clone() },
            (None, None) => Origin::Assumed,
        }
    }
}

fn left_out(
    en: &str,
    zh: &str,
    written: &str,
    direction: Direction,
    origin: Origin,
) -> NotModelled {
    NotModelled {
        en: en.to_owned(),
        zh: zh.to_owned(),
        written: written.to_owned(),
        direction,
        origin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn software(json: &str) -> Software {
        serde_json::from_str(json).expect("software")
    }

    #[test]
    fn what_is_given_counts_before_what_is_installed() {
        let mut given = software(r#"{"deepspeed_version": "0.16.4"}"#);
        assert_eq!(given.engine().name(), "0.16.9");
        given.installed = Some((EngineVersion::NEWEST, "/env".to_owned()));
        assert_eq!((given.engine().name(), given.engine_origin()), ("0.16.9", Origin::Option));
        given.deepspeed_version = None;
        assert_eq!(given.engine(), EngineVersion::NEWEST);
        assert!(serde_json::from_str::<Software>(r#"{"deepspeed_version": "latest"}"#).is_err());
    }

    #[test]
    fn a_job_of_trl_has_its_head_from_1_7_on_and_1_7_to_1_14_are_named() {
        let of = |version: Option<&str>| {
            let json = match version {
                Some(version) => format!(r#"{{"trl_version": "{version}"}}"#),
                None => "{}".to_owned(),
            };
            let software = software(&json);
            (software.has_trl_head(), software.of_trl().is_some())
        };
        assert_eq!(of(None), (true, false));
        assert_eq!(of(Some("0.24.0")), (false, false));
        assert_eq!(of(Some("1.6")), (false, false));
        assert_eq!(of(Some("1.7.1")), (true, true));
        assert_eq!(of(Some("1.14")), (true, true));
        assert_eq!(of(Some("1.15.0")), (true, false));
    }

    #[test]
    fn old_transformers_shift_a_copy_of_the_logits() {
        let loss = |version: &str| {
            let software = software(&format!(r#"{{"transformers_version": "{version}"}}"#));
            software.recipe(Recipe::full(16)).loss
        };
        assert_eq!(loss("4.44.2"), LossHead::ShiftedCopy);
        assert_eq!(loss("4.49"), LossHead::Model);
        assert_eq!(loss("5.22.2"), LossHead::Model);
    }
}
