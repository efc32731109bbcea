//! Any text as a description of GPUs: it is read, or the error points into it; what is read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_cluster::{Cluster, Gpus};

fuzz_target!(|text: &str| {
    match text.parse::<Gpus>() {
        Ok(gpus) => {
            let again: Gpus = gpus.to_string().parse().expect("what is shown can be read");
            assert_eq!(again.world_size(), gpus.world_size());
            assert!(gpus.world_size() > 0);
            let _ = Cluster::new(gpus).capacity();
        }
        Err(error) => assert!(text.get(error.span).is_some()),
    }
});
