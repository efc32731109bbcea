//! A machine as it was noted, with one thing changed at a time.

use std::path::PathBuf;

use zeropilot_cluster::discovery::FoundGpu;
use zeropilot_lint::{Settings, check};

use super::*;
use crate::machine::{ExtensionLock, Space, Tools};
use crate::packages::Package;

fn package(name: &str, version: &str) -> Package {
    Package { name: name.to_owned(), version: version.to_owned(), place: PathBuf::from("/env") }
}

fn gpu(name: &str) -> FoundGpu {
    let memory = Bytes(81559 << 20);
    FoundGpu { name: name.to_owned(), uuid: format!("GPU-{name}"), memory, free: memory }
}

/// A machine that lacks nothing.
fn machine() -> Machine {
    let packages = [
        ("accelerate", "1.15.0"),
        ("deepspeed", "0.19.8"),
        ("torch", "2.7.1"),
        ("transformers", "5.22.0"),
    ];
    Machine {
        python: Some(Python {
            path: PathBuf::from("/env/bin/python"),
            packages: packages.map(|(name, version)| package(name, version)).to_vec(),
        }),
        tools: Tools { cxx: true, nvcc: true, ninja: true, libaio: true },
        gpus: Ok(vec![gpu("NVIDIA H100 80GB HBM3"); 8]),
        visible_devices: None,
        ram: Some(Bytes(1 << 40)),
        memlock: Limit::Unlimited,
        open_files: Limit::AtMost(65536),
        shm: Some(Space { total: Bytes(16 << 30), free: Bytes(16 << 30) }),
        disks: Vec::new(),
        extension_locks: Vec::new(),
    }
}

fn names(machine: &Machine, circumstances: &Circumstances<'_>) -> Vec<&'static str> {
    examine(machine, circumstances, Language::English).iter().map(|finding| finding.name).collect()
}

fn needs_all() -> Circumstances<'static> {
    let needs = Needs {
        cpu_adam: true,
        async_io: true,
        fused_optimizer: Some("AdamW".to_owned()),
        nvme_paths: Vec::new(),
    };
    Circumstances { needs, ..Circumstances::default() }
}

#[test]
fn a_machine_that_has_everything_has_no_findings() {
    assert!(names(&machine(), &needs_all()).is_empty());
}

#[test]
fn packages_are_missed_by_those_who_need_them() {
    let mut bare = machine();
    bare.python.as_mut().expect("an interpreter").packages.clear();
    assert_eq!(names(&bare, &Circumstances::default()), ["no-package", "no-package"]);
    let report = check(
        b"{\"train_batch_size\": \"auto\", \"zero_optimization\": {\"stage\": 2}}",
        &Settings::default(),
    );
    let circumstances = Circumstances { report: Some(&report), ..Circumstances::default() };
    assert_eq!(names(&bare, &circumstances), ["no-package"; 4]);
    bare.python = None;
    assert_eq!(names(&bare, &circumstances), ["no-python"]);
}

#[test]
fn mixed_versions_and_builds_without_cuda_are_found() {
    let mut mixed = machine();
    let python = mixed.python.as_mut().expect("an interpreter");
    python.packages.push(package("deepspeed", "0.16.4"));
    python.packages.retain(|package| package.name != "torch");
    python.packages.push(package("torch", "2.7.1+cpu"));
    assert_eq!(names(&mixed, &Circumstances::default()), ["cpu-torch", "several-versions"]);
}

#[test]
fn the_installed_engine_judges_the_config() {
    let report = check(
        b"{\"train_batch_size\": 8, \"zero_optimization\": {\"stagee\": 2}}",
        &Settings::default(),
    );
    let circumstances = Circumstances { report: Some(&report), ..Circumstances::default() };
    let found = examine(&machine(), &circumstances, Language::Chinese);
    assert_eq!(found[0].name, "config-refused");
    assert!(
        found[0].message(Language::Chinese).contains("stagee"),
        "{}",
        found[0].message(Language::Chinese)
    );
    let mut older = machine();
    older.python.as_mut().expect("an interpreter").packages[1].version = "0.16.4".to_owned();
    assert_eq!(names(&older, &Circumstances::default()), ["known-defects", "nearest-engine"]);
}

#[test]
fn builds_need_their_tools_only_where_something_is_built() {
    let mut bare = machine();
    bare.tools = Tools::default();
    assert!(names(&bare, &Circumstances::default()).is_empty());
    assert_eq!(names(&bare, &needs_all()), ["no-compiler", "no-ninja", "no-libaio", "no-nvcc"]);
}

#[test]
fn ranks_on_cpus_need_nothing_of_gpus() {
    let mut bare = machine();
    bare.tools.nvcc = false;
    bare.gpus = Err(NoDriver::NoLibrary);
    let on_cpu = Circumstances { on_cpu: true, ..needs_all() };
    assert_eq!(names(&bare, &needs_all()), ["no-nvcc", "no-driver"]);
    assert_eq!(names(&bare, &on_cpu), [""; 0]);
}

#[test]
fn gpus_are_counted_as_a_run_would_see_them() {
    let mut hidden = machine();
    hidden.visible_devices = Some("0,1".to_owned());
    assert_eq!(names(&hidden, &Circumstances::default()), ["hidden-gpus"]);
    hidden.visible_devices = Some("0,9,1".to_owned());
    assert_eq!(names(&hidden, &Circumstances::default()), ["unknown-gpu"]);
    hidden.visible_devices = None;
    hidden.gpus = Ok(vec![gpu("NVIDIA A40"), gpu("NVIDIA L40S")]);
    assert_eq!(names(&hidden, &Circumstances::default()), ["different-gpus"]);
    hidden.gpus = Err(NoDriver::NoLibrary);
    assert_eq!(names(&hidden, &Circumstances::default()), ["no-driver"]);
}

#[test]
fn limits_of_the_host_are_held_against_what_the_run_needs() {
    let mut small = machine();
    small.memlock = Limit::AtMost(8 << 20);
    small.shm = Some(Space { total: Bytes(64 << 20), free: Bytes(64 << 20) });
    small.open_files = Limit::AtMost(1024);
    let mut circumstances = needs_all();
    circumstances.host_memory = Some((Bytes(2 << 40), 8));
    assert_eq!(names(&small, &circumstances), ["little-ram", "memlock", "small-shm", "few-files"]);
}

#[test]
fn disks_must_be_there_local_and_roomy() {
    let disk = |place| Disk { path: "/nvme".to_owned(), place };
    let ready = |kind: &str, gib: u64| Place::Ready {
        space: Some(Space { total: Bytes(1 << 40), free: Bytes(gib << 30) }),
        kind: Some(kind.to_owned()),
    };
    for (place, expected) in [
        (Place::Missing, vec!["no-path"]),
        (Place::NotWritable, vec!["no-path"]),
        (ready("ext4", 500), vec![]),
        (ready("tmpfs", 500), vec!["slow-disk"]),
        (ready("nfs4", 5), vec!["slow-disk", "full-disk"]),
    ] {
        let machine = Machine { disks: vec![disk(place)], ..machine() };
        assert_eq!(names(&machine, &Circumstances::default()), expected);
    }
}

/// No placeholder is left open, in either language.
#[test]
fn sentences_are_complete() {
    let mut poor = machine();
    poor.tools = Tools::default();
    poor.visible_devices = Some("0,9".to_owned());
    poor.memlock = Limit::AtMost(1);
    poor.open_files = Limit::AtMost(1);
    poor.shm = Some(Space { total: Bytes(1), free: Bytes(1) });
    poor.disks = vec![Disk { path: "/x".to_owned(), place: Place::Missing }];
    for language in [Language::English, Language::Chinese] {
        for finding in examine(&poor, &needs_all(), language) {
            for sentence in
                [finding.message(language), finding.why(language), finding.help(language)]
            {
                assert!(!sentence.is_empty() && !sentence.contains(['{', '}']), "{sentence}");
            }
        }
    }
}

#[test]
fn a_lock_that_a_killed_build_left_is_found_and_one_that_is_held_is_not() {
    let lock =
        |path: &str, is_held| ExtensionLock { path: path.to_owned(), is_held, age: Some(7300) };
    let extension_locks = vec![lock("/c/cpu_adam/lock", false), lock("/c/utils/lock", true)];
    let machine = Machine { extension_locks, ..machine() };
    let found = examine(&machine, &Circumstances::default(), Language::English);
    let found: Vec<&Finding> =
        found.iter().filter(|finding| finding.name == "stale-lock").collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].message(Language::English).contains("121 minutes"));
    assert!(found[0].help(Language::Chinese).contains("rm /c/cpu_adam/lock"));
}
