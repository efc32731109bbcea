//! The bytes at rest of measured runs of the real engine, category by category.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::{cases, with_run};
use zeropilot_step::zero::{Category, Rest, RestStates};

fn name(category: Category) -> &'static str {
    match category {
        Category::Parameters => "param",
        Category::FrozenParameters => "param_frozen",
        Category::FrozenPartitions => "ds_tensor_frozen",
        Category::FlatParameters => "lp_flat",
        Category::HostParameters => "lp_host_flat",
        Category::PersistentParameters => "param_data_persist",
        Category::SecondaryPartitions => "ds_secondary",
        Category::Master => "master",
        Category::MasterGradients => "master_grad",
        Category::FirstMoment => "opt_exp_avg",
        Category::SecondMoment => "opt_exp_avg_sq",
        Category::StepCounters => "opt_step",
        Category::ParameterGradients => "param_grad",
        Category::AveragedGradients => "averaged_gradients",
        Category::FlatGradients => "avg_flat",
        Category::FullGradients => "fp32_grads_flat",
        Category::GradientPartitions => "grad_partitions",
        Category::LeftoverGradients => "grad_accum",
        Category::ReduceBucket => "ipg",
        Category::HostStaging => "lp_host_staging",
        Category::TemporaryGradientHost => "temp_grad_cpu",
        Category::TemporaryGradientDevice => "temp_grad_gpu",
        Category::HostAccumulation => "acc_grads_cpu",
        other => panic!("{other:?} is not at rest"),
    }
}

fn by_name(rest: &Rest) -> BTreeMap<String, u64> {
    let mut map = BTreeMap::new();
    for (category, _, bytes) in rest.iter() {
        *map.entry(name(category).to_owned()).or_default() += bytes.0;
    }
    map
}

fn states(case: &Value) -> RestStates {
    with_run(case, RestStates::of)
}

#[test]
fn rest_states_of_measured_runs_are_equal_to_the_byte() {
    let cases = cases();
    let mut wrong = BTreeMap::<String, Vec<String>>::new();
    let mut right = 0;
    for case in &cases {
        let states = states(case);
        let compared = [
            ("init", &states.after_init),
            ("after_backward", &states.after_backward),
            ("after_step", &states.after_step),
        ];
        let mut fine = true;
        for (moment, rest) in compared {
            let measured: BTreeMap<String, u64> =
                serde_json::from_value(case[moment].clone()).unwrap();
            let ours = by_name(rest);
            for key in measured.keys().chain(ours.keys()).collect::<std::collections::BTreeSet<_>>()
            {
                let (m, o) = (measured.get(key).unwrap_or(&0), ours.get(key).unwrap_or(&0));
                if m != o {
                    fine = false;
                    wrong
                        .entry(format!("{moment} {key}"))
                        .or_default()
                        .push(format!("{} measured {m} ours {o}", case["name"]));
                }
            }
        }
        right += usize::from(fine);
    }
    println!("{right} of {} rank-runs equal", cases.len());
    for (what, list) in &wrong {
        println!("{what}: {} wrong, e.g. {}", list.len(), list[..list.len().min(4)].join(" | "));
    }
    assert!(wrong.is_empty());
}
