//! All rules, and what calls each of them. A rule is registered by its line here.

use zeropilot_config::nearest::nearest;

use crate::diagnostic::Diagnostic;
#[cfg(feature = "job")]
use crate::job_view::{Findings, JobView};
use crate::report::ResolvedValues;
use crate::rule::Rule;
use crate::rules;
use crate::subject::Subject;

/// What makes a rule speak.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// It looks at every config that can be read.
    Config(fn(&Subject<'_>, &mut Vec<Diagnostic>)),
    /// It looks at every job.
    #[cfg(feature = "job")]
    Job(fn(&JobView<'_>, &mut Findings)),
    /// It looks at what the values of an accepted config became.
    Resolved(fn(&Subject<'_>, &ResolvedValues, &mut Vec<Diagnostic>)),
    /// A reader, a front end or the engine refuses, and `refusal` has the rule word it.
    Refusal,
    /// Another rule looks, and reports this one where it fits better.
    Via(&'static Rule),
}

macro_rules! rules {
    (
        config: [$($config:ident :: $config_rule:ident,)*],
        resolved: [$($resolved:ident :: $resolved_rule:ident,)*],
        job: [$($job:ident :: $job_rule:ident,)*],
        refusal: [$($refusal:ident :: $refusal_rule:ident,)*],
        via: [$($via:ident :: $via_rule:ident => $by:ident :: $by_rule:ident,)*],
    ) => {
        /// All rules, by group and code.
        pub static RULES: &[&Rule] = &sorted([
            $(&rules::$config::$config_rule::RULE,)*
            $(&rules::$resolved::$resolved_rule::RULE,)*
            $(#[cfg(feature = "job")] &rules::$job::$job_rule::RULE,)*
            $(&rules::$refusal::$refusal_rule::RULE,)*
            $(&rules::$via::$via_rule::RULE,)*
        ]);

        /// What calls each rule, in the order in which they are called.
        pub(crate) static CHECKS: &[(&Rule, Check)] = &[
            $((&rules::$config::$config_rule::RULE, Check::Config(rules::$config::$config_rule::check)),)*
            $((&rules::$resolved::$resolved_rule::RULE, Check::Resolved(rules::$resolved::$resolved_rule::check)),)*
            $(
                #[cfg(feature = "job")]
                (&rules::$job::$job_rule::RULE, Check::Job(rules::$job::$job_rule::check)),
            )*
            $((&rules::$refusal::$refusal_rule::RULE, Check::Refusal),)*
            $((&rules::$via::$via_rule::RULE, Check::Via(&rules::$by::$by_rule::RULE)),)*
        ];
    };
}

rules! {
    config: [
        batch::fitting_ranks,
        batch::accumulation_missing,
        auto::top_level,
        auto::dropped,
        auto::optimizer_params,
        auto::kept_as_text,
        auto::missing_is_not_auto,
        keys::unknown_key,
        keys::deprecated_key,
        keys::quoted_false,
        keys::steps_per_print,
        keys::quoted_clipping,
        keys::steps_per_print_overwritten,
        keys::timers_left_on,
        keys::autotuning_left_on,
        keys::deepcompile_alone,
        keys::layer_drop,
        keys::tensor_parallel_sizes,
        keys::random_ltd_keys,
        versions::removed_optimizer,
        versions::warmup_steps,
        versions::legacy_stage_1,
        precision::not_enabled,
        precision::missing_at_load,
        precision::accumulation_type,
        precision::static_scale,
        precision::hysteresis,
        precision::master_weights_need_offload,
        precision::parameter_type,
        precision::autocast_and_quantized,
        precision::autocast_and_16_bit,
        precision::amp,
        precision::autocast_modules,
        precision::buffer_type,
        precision::quantization_needs_fp16,
        optimizer::unknown_optimizer,
        optimizer::no_type,
        optimizer::adam_means_adamw,
        optimizer::untested,
        optimizer::max_grad_norm,
        optimizer::unknown_parameter,
        optimizer::predivide,
        optimizer::unknown_scheduler,
        optimizer::scheduler_parameters,
        optimizer::rate_of_the_scheduler,
        optimizer::warmup_too_long,
        optimizer::warmup_type,
        optimizer::logarithmic_warmup,
        optimizer::scheduler_of_the_script,
        optimizer::optimizer_of_the_script,
        optimizer::scheduler_without_type,
        optimizer::lamb_scale,
        optimizer::muon_scatter,
        optimizer::quoted_parameter,
        optimizer::parameter_value,
        optimizer::compressed_with_zero,
        optimizer::torch_scheduler,
        offload::param_needs_stage_3,
        offload::nvme_needs_stage_3,
        offload::nvme_without_path,
        offload::optimizer_needs_zero,
        offload::nvme_keys,
        offload::aio_without_nvme,
        offload::super_offload,
        offload::super_offload_device,
        offload::zenflow,
        gradients::odd_allgather_bucket,
        gradients::stage_3_keys,
        gradients::stage_2_keys,
        gradients::sequence_communication,
        gradients::one_rank,
        gradients::no_stage,
        gradients::norm_off_with_clipping,
        gradients::allgather_partitions,
        gradients::unmanaged_accumulation,
        zeropp::hpz_divides,
        zeropp::needs_stage_3,
        zeropp::quantized_gradients,
        zeropp::one_node,
        zeropp::hpz_too_large,
        saving::no_consolidated_weights,
        checkpointing::not_read_by_models,
        checkpointing::contiguous_needs_partition,
        integrations::save_only_model,
        saving::other_ranks,
        saving::other_stage,
        saving::other_precision,
        saving::not_universal,
        zero3::output_tied,
        optimizer::client_optimizer,
        optimizer::client_optimizer_offloaded,
        parallelism::sequence_key_alone,
        parallelism::tensor_parallel_batch,
    ],
    resolved: [
        versions::advisory,
        offload::super_offload_clips,
    ],
    job: [
        launch::no_launcher,
        launch::visible_devices,
        launch::config_not_found,
        launch::environment,
        launch::divided_loss,
        launch::model_first,
        launch::device_map,
        launch::one_rank_saves,
        launch::renamed_variable,
        launch::accelerate_without_deepspeed,
        launch::fewer_devices,
        launch::fsdp,
        launch::gemma_3_from_config,
        launch::hostfile,
        launch::no_engine_state,
        launch::nvme_path_dropped,
        launch::two_filters,
        launch::variables_left_behind,
        launch::whisper_stage_3,
        training::forward_on_one_rank,
        training::loss_backward_fp16,
        training::moe_stage_3,
        training::optimizer_stepped_by_script,
        training::pipeline_stage,
        training::scheduler_stepped_twice,
        training::state_dict_not_gathered,
        training::step_at_boundary,
        training::two_configs,
        training::writer_needs_launcher,
        training::clip_by_value,
        training::clipping_call,
        training::evaluation_before_training,
        training::images_on_some_ranks,
        training::frozen_model_whole,
        training::auto_for_frozen_model,
        training::frozen_model_optimizer,
        training::generation_gathers_model,
        training::lora_reference_pass,
        training::vllm_sync_gathers_model,
        training::vllm_stays_awake,
        training::sequence_parallel_gradients,
        training::tiled_loss_sum,
        training::tiled_loss_tied,
        training::state_dict_into_shards,
        training::init_before_group,
        training::local_rank_default,
        training::local_rank_not_taken,
        training::no_sync,
        training::saved_empty,
        training::steps_filled_by_evaluation,
        training::unsynced_generation,
        training::collective_on_one_rank,
        training::gathered_on_one_rank,
        training::ranks_skip_steps,
        training::module_on_some_ranks,
        training::experts_on_some_ranks,
        training::graph_kept,
        training::gradients_cleared,
        training::scheduler_without_engine,
        training::evaluation_mode_kept,
        training::softmax_twice,
        training::loss_scaled_twice,
        training::same_samples,
        training::loader_batch,
        training::sampler_epoch,
        training::optimizer_beside_engine,
        training::uneven_shards,
        quantized::skip_list,
        quantized::wide_remainder,
        quantized::experts,
        frameworks::llamafactory_optimizers,
        frameworks::llamafactory_quantization,
        frameworks::llamafactory_stage_3,
        frameworks::swift_gathering,
        frameworks::swift_hpz,
        versions::removed_argument,
        parallelism::adapters_in_tiles,
        parallelism::launcher_options,
        parallelism::optimizer_of_bf16,
        parallelism::packed_documents,
        parallelism::positions_dropped,
        parallelism::refused,
        parallelism::tensor_parallel_data,
    ],
    refusal: [
        batch::product_mismatch,
        batch::micro_batch_zero,
        batch::no_batch_size,
        batch::quoted_number,
        batch::no_dataloader,
        batch::not_computable,
        batch::uneven_split,
        batch::elastic_training,
        auto::leftover,
        auto::hidden_size,
        auto::mismatch,
        keys::unknown_in_strict_section,
        keys::legacy_precision_key,
        keys::fractional_number,
        keys::min_loss_scale,
        keys::spelt_twice,
        keys::deprecated_together,
        keys::not_a_section,
        keys::not_strict_json,
        keys::duplicate_key,
        keys::offload_device,
        keys::wrong_value,
        keys::out_of_bounds,
        keys::unreadable,
        keys::root_not_an_object,
        keys::missing_key,
        keys::not_utf8,
        keys::breakdown_needs_booleans,
        keys::schedule_ends_early,
        versions::removed_key,
        versions::shared_parameters_too_high,
        precision::both_precisions,
        precision::master_weights,
        precision::communication_type,
        precision::dynamic_loss_scale,
        optimizer::in_config_and_code,
        optimizer::summed_gradients,
        offload::partial_needs_stage_3,
        offload::gds_needs_cuda,
        gradients::norm_off,
        integrations::accelerate_fields,
        integrations::no_zero_section,
        integrations::auto_find_batch_size,
        integrations::conflicting_arguments,
        integrations::unusable_argument,
        integrations::dummy_objects,
    ],
    via: [
        batch::not_positive => batch::micro_batch_zero,
        auto::unfilled_by_accelerate => auto::leftover,
        auto::warmup_zero => auto::mismatch,
        auto::misspelt => auto::dropped,
        auto::genuine => auto::leftover,
        keys::wrong_level => keys::unknown_key,
        keys::comment_key => keys::unknown_key,
    ],
}

/// By group, then by code.
const fn sorted<const N: usize>(mut rules: [&Rule; N]) -> [&Rule; N] {
    let mut end = 1;
    while end < N {
        let mut at = end;
        while at > 0 && rules[at].position() < rules[at - 1].position() {
            rules.swap(at, at - 1);
            at -= 1;
        }
        end += 1;
    }
    rules
}

impl Rule {
    fn check(&self) -> Option<Check> {
        CHECKS.iter().find(|(rule, _)| *rule == self).map(|(_, check)| *check)
    }

    /// Whether it looks at configs by itself, beyond what the engine and its front ends refuse.
    pub fn looks_at_configs(&self) -> bool {
        matches!(self.check(), Some(Check::Config(_) | Check::Resolved(_)))
    }

    /// The rule that looks and reports this one, if it does not look by itself.
    pub fn reported_by(&self) -> Option<&'static Rule> {
        match self.check() {
            Some(Check::Via(rule)) => Some(rule),
            _ => None,
        }
    }
}

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
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;

    use super::*;

    fn sources(directory: &str) -> Vec<PathBuf> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(directory);
        let entries = fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a source")
    }

    /// The files of the rules, with their text.
    static FILES: LazyLock<Vec<(PathBuf, String)>> = LazyLock::new(|| {
        let groups = sources("rules").into_iter().filter(|path| path.is_dir());
        let files = groups.flat_map(|group| sources(group.to_str().expect("UTF-8")));
        let files = files.map(|path| (path.clone(), text(&path)));
        files.filter(|(_, text)| text.contains("static RULE: Rule")).collect()
    });

    fn file(rule: &Rule) -> &'static (PathBuf, String) {
        let code = format!("    code: \"{}\",\n", rule.code);
        let its = FILES.iter().find(|(_, text)| text.contains(&code));
        its.unwrap_or_else(|| panic!("{} has no file", rule.code))
    }

    /// What other modules call a rule's functions by.
    fn prefix(rule: &Rule) -> String {
        let (path, _) = file(rule);
        format!("{}::", path.file_stem().and_then(|name| name.to_str()).expect("a name"))
    }

    #[test]
    #[cfg(feature = "job")]
    fn every_file_of_a_rule_is_registered_once() {
        let mut registered: Vec<_> = RULES.iter().map(|rule| &file(rule).0).collect();
        let mut written: Vec<_> = FILES.iter().map(|(path, _)| path).collect();
        registered.sort();
        written.sort();
        assert_eq!(registered, written);
    }

    #[test]
    fn every_rule_is_called() {
        let refusals: String = sources("refusal").iter().map(|path| text(path)).collect();
        for (rule, check) in CHECKS {
            let caller = match check {
                Check::Refusal => &refusals,
                Check::Via(other) => &file(other).1,
                _ => continue,
            };
            assert!(caller.contains(&prefix(rule)), "{} is called by nothing", rule.code);
        }
    }

    #[test]
    fn rules_are_sorted_by_group_and_code() {
        assert!(RULES.is_sorted_by_key(|rule| (rule.group, rule.code)));
        assert_eq!(RULES.len(), CHECKS.len());
    }

    #[test]
    fn a_code_that_does_not_exist_has_a_neighbour() {
        assert_eq!(nearest_code("B06"), Some("B05"));
        assert_eq!(nearest_code("k99").map(|code| &code[..1]), Some("K"));
        assert_eq!(nearest_code("unknown_key"), Some("K01"));
        assert_eq!(nearest_code("unkown-key"), Some("K01"));
        assert_eq!(nearest_code("nothing like it at all"), None);
    }
}
