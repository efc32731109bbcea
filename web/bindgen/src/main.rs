//! `bindgen IN.wasm DIRECTORY`: the module as browsers load it, with the JavaScript that calls it.

use std::env::args_os;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<_> = args_os().skip(1).collect();
    let [input, directory] = arguments.as_slice() else {
        eprintln!("usage: bindgen IN.wasm DIRECTORY");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let written = bindgen.input_path(input).web(true).and_then(|bindgen| {
        bindgen
            .typescript(true)
            .remove_name_section(true)
            .remove_producers_section(true)
            .generate(directory)
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindgen: {error:?}");
            ExitCode::FAILURE
        }
    }
}
