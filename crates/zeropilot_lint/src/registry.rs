//! All rules. A rule is registered by its line here.

use zeropilot_config::nearest::nearest;

use crate::rule::Rule;
use crate::rules::{
    auto, batch, checkpointing, gradients, integrations, keys, offload, optimizer, precision,
    saving, versions, zero3, zeropp,
};
#[cfg(feature = "job")]
use crate::rules::{frameworks, launch, training};

/// All rules, by group and code.
pub static RULES: &[&Rule] = &[
    &batch::product_mismatch::RULE,
    &batch::micro_batch_zero::RULE,
    &batch::no_batch_size::RULE,
    &batch::quoted_number::RULE,
    &batch::no_dataloader::RULE,
    &batch::not_positive::RULE,
    &batch::not_computable::RULE,
    &batch::fitting_ranks::RULE,
    &batch::uneven_split::RULE,
    &batch::elastic_training::RULE,
    &batch::accumulation_missing::RULE,
    &auto::top_level::RULE,
    &auto::dropped::RULE,
    &auto::optimizer_params::RULE,
    &auto::leftover::RULE,
    &auto::unfilled_by_accelerate::RULE,
    &auto::hidden_size::RULE,
    &auto::mismatch::RULE,
    &auto::warmup_zero::RULE,
    &auto::misspelt::RULE,
    &auto::genuine::RULE,
    &auto::kept_as_text::RULE,
    &auto::missing_is_not_auto::RULE,
    &keys::unknown_key::RULE,
    &keys::wrong_level::RULE,
    &keys::unknown_in_strict_section::RULE,
    &keys::legacy_precision_key::RULE,
    &keys::fractional_number::RULE,
    &keys::min_loss_scale::RULE,
    &keys::spelt_twice::RULE,
    &keys::deprecated_together::RULE,
    &keys::not_a_section::RULE,
    &keys::not_strict_json::RULE,
    &keys::duplicate_key::RULE,
    &keys::offload_device::RULE,
    &keys::comment_key::RULE,
    &keys::deprecated_key::RULE,
    &keys::wrong_value::RULE,
    &keys::out_of_bounds::RULE,
    &keys::unreadable::RULE,
    &keys::root_not_an_object::RULE,
    &keys::missing_key::RULE,
    &keys::not_utf8::RULE,
    &keys::breakdown_needs_booleans::RULE,
    &keys::schedule_ends_early::RULE,
    &keys::quoted_false::RULE,
    &keys::steps_per_print::RULE,
    &keys::quoted_clipping::RULE,
    &keys::steps_per_print_overwritten::RULE,
    &keys::timers_left_on::RULE,
    &keys::autotuning_left_on::RULE,
    &versions::removed_key::RULE,
    &versions::shared_parameters_too_high::RULE,
    &versions::removed_optimizer::RULE,
    &versions::warmup_steps::RULE,
    &versions::legacy_stage_1::RULE,
    &precision::both_precisions::RULE,
    &precision::master_weights::RULE,
    &precision::communication_type::RULE,
    &precision::dynamic_loss_scale::RULE,
    &precision::not_enabled::RULE,
    &precision::missing_at_load::RULE,
    &precision::accumulation_type::RULE,
    &precision::static_scale::RULE,
    &precision::master_weights_need_offload::RULE,
    &precision::parameter_type::RULE,
    &precision::autocast_and_quantized::RULE,
    &optimizer::in_config_and_code::RULE,
    &optimizer::summed_gradients::RULE,
    &optimizer::unknown_optimizer::RULE,
    &optimizer::no_type::RULE,
    &optimizer::adam_means_adamw::RULE,
    &optimizer::untested::RULE,
    &optimizer::max_grad_norm::RULE,
    &optimizer::unknown_parameter::RULE,
    &optimizer::predivide::RULE,
    &optimizer::unknown_scheduler::RULE,
    &optimizer::scheduler_parameters::RULE,
    &optimizer::rate_of_the_scheduler::RULE,
    &optimizer::warmup_too_long::RULE,
    &optimizer::warmup_type::RULE,
    &optimizer::logarithmic_warmup::RULE,
    &optimizer::scheduler_of_the_script::RULE,
    &optimizer::optimizer_of_the_script::RULE,
    &optimizer::scheduler_without_type::RULE,
    &optimizer::lamb_scale::RULE,
    &optimizer::muon_scatter::RULE,
    &optimizer::quoted_parameter::RULE,
    &offload::partial_needs_stage_3::RULE,
    &offload::gds_needs_cuda::RULE,
    &offload::param_needs_stage_3::RULE,
    &offload::nvme_needs_stage_3::RULE,
    &offload::nvme_without_path::RULE,
    &offload::optimizer_needs_zero::RULE,
    &offload::nvme_keys::RULE,
    &offload::aio_without_nvme::RULE,
    &offload::super_offload::RULE,
    &gradients::norm_off::RULE,
    &gradients::odd_allgather_bucket::RULE,
    &gradients::stage_3_keys::RULE,
    &gradients::stage_2_keys::RULE,
    &gradients::one_rank::RULE,
    &gradients::no_stage::RULE,
    &gradients::norm_off_with_clipping::RULE,
    &gradients::allgather_partitions::RULE,
    &gradients::unmanaged_accumulation::RULE,
    &zeropp::hpz_divides::RULE,
    &zeropp::needs_stage_3::RULE,
    &zeropp::quantized_gradients::RULE,
    &zeropp::hpz_too_large::RULE,
    &saving::no_consolidated_weights::RULE,
    &checkpointing::not_read_by_models::RULE,
    &checkpointing::contiguous_needs_partition::RULE,
    &integrations::accelerate_fields::RULE,
    &integrations::no_zero_section::RULE,
    &integrations::auto_find_batch_size::RULE,
    &integrations::conflicting_arguments::RULE,
    &integrations::unusable_argument::RULE,
    &integrations::dummy_objects::RULE,
    &integrations::save_only_model::RULE,
    &saving::other_ranks::RULE,
    &saving::other_stage::RULE,
    &saving::other_precision::RULE,
    &saving::not_universal::RULE,
    &zero3::output_tied::RULE,
    &optimizer::client_optimizer::RULE,
    &optimizer::client_optimizer_offloaded::RULE,
    #[cfg(feature = "job")]
    &launch::divided_loss::RULE,
    #[cfg(feature = "job")]
    &launch::model_first::RULE,
    #[cfg(feature = "job")]
    &launch::device_map::RULE,
    #[cfg(feature = "job")]
    &launch::one_rank_saves::RULE,
    #[cfg(feature = "job")]
    &launch::no_launcher::RULE,
    #[cfg(feature = "job")]
    &launch::visible_devices::RULE,
    #[cfg(feature = "job")]
    &launch::config_not_found::RULE,
    #[cfg(feature = "job")]
    &launch::environment::RULE,
    #[cfg(feature = "job")]
    &launch::renamed_variable::RULE,
    #[cfg(feature = "job")]
    &training::steps_filled_by_evaluation::RULE,
    #[cfg(feature = "job")]
    &training::init_before_group::RULE,
    #[cfg(feature = "job")]
    &launch::nvme_path_dropped::RULE,
    #[cfg(feature = "job")]
    &training::unsynced_generation::RULE,
    #[cfg(feature = "job")]
    &training::no_sync::RULE,
    #[cfg(feature = "job")]
    &frameworks::llamafactory_stage_3::RULE,
    #[cfg(feature = "job")]
    &frameworks::swift_hpz::RULE,
    #[cfg(feature = "job")]
    &frameworks::llamafactory_optimizers::RULE,
    #[cfg(feature = "job")]
    &launch::fsdp::RULE,
    #[cfg(feature = "job")]
    &training::evaluation_before_training::RULE,
    #[cfg(feature = "job")]
    &frameworks::swift_gathering::RULE,
    #[cfg(feature = "job")]
    &launch::variables_left_behind::RULE,
    #[cfg(feature = "job")]
    &launch::hostfile::RULE,
    #[cfg(feature = "job")]
    &training::local_rank_default::RULE,
    #[cfg(feature = "job")]
    &training::local_rank_not_taken::RULE,
    #[cfg(feature = "job")]
    &launch::two_filters::RULE,
    #[cfg(feature = "job")]
    &launch::fewer_devices::RULE,
    #[cfg(feature = "job")]
    &launch::accelerate_without_deepspeed::RULE,
    #[cfg(feature = "job")]
    &training::clipping_call::RULE,
    #[cfg(feature = "job")]
    &training::clip_by_value::RULE,
    #[cfg(feature = "job")]
    &launch::no_engine_state::RULE,
    #[cfg(feature = "job")]
    &frameworks::llamafactory_quantization::RULE,
    #[cfg(feature = "job")]
    &training::saved_empty::RULE,
];

/// The rule with this code, in upper or lower case.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

/// The code a person most likely meant: by its letters, or by the name of its rule.
pub fn nearest_code(word: &str) -> Option<&'static str> {
    let by_name = RULES.iter().find(|rule| rule.name.eq_ignore_ascii_case(word));
    if let Some(rule) = by_name {
        return Some(rule.code);
    }
    let name = nearest(&word.to_lowercase().replace('_', "-"), RULES.iter().map(|rule| rule.name));
    if let Some(rule) = name.and_then(|name| RULES.iter().find(|rule| rule.name == name)) {
        return Some(rule.code);
    }
    let upper = word.to_uppercase();
    let distance = |code: &str| {
        let same = code.chars().zip(upper.chars()).filter(|(a, b)| a == b).count();
        code.len().max(upper.len()) - same
    };
    let digits = |code: &str| code.get(1..).and_then(|digits| digits.parse::<i32>().ok());
    let gap = |code: &str| match (digits(code), digits(&upper)) {
        (Some(one), Some(other)) => one.abs_diff(other),
        _ => u32::MAX,
    };
    // A code has a letter and two digits; what shares none of them is something else.
    RULES
        .iter()
        .map(|rule| rule.code)
        .min_by_key(|code| (!upper.starts_with(&code[..1]), gap(code), distance(code)))
        .filter(|code| distance(code) < 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_does_not_exist_has_a_neighbour() {
        assert_eq!(nearest_code("B06"), Some("B05"));
        assert_eq!(nearest_code("k99").map(|code| &code[..1]), Some("K"));
        assert_eq!(nearest_code("unknown_key"), Some("K01"));
        assert_eq!(nearest_code("unkown-key"), Some("K01"));
        assert_eq!(nearest_code("nothing like it at all"), None);
    }
}
