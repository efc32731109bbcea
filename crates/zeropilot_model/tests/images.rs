//! Images are cut as the image processors of transformers cut them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use serde_json::{Value, json};
use zeropilot_model::image::{ImageSize, PixelBounds};
use zeropilot_oracle::{Oracle, Random, home, seed};

/// Sizes that are put to the processors.
const SIZES: usize = 1500;

#[test]
fn images_are_cut_as_the_processors_cut_them() {
    let Some(home) = home() else { return };
    let mut random = Random::new(seed());
    let requests: Vec<Value> = (0..SIZES)
        .map(|_| {
            let most = *random.pick(&[40, 600, 3000, 9000]);
            let (width, height) = (random.between(1, most), random.between(1, most));
            let factor = *random.pick(&[28, 32]);
            let max = *random.pick(&[1_003_520, 12_845_056, 200_704]);
            json!({
                "width": width, "height": height, "factor": factor, "min": 3136, "max": max, "tile": 448,
                "most": random.between(1, 12),
            })
        })
        .collect();
    let answers = Oracle::start(&home, "image_sizes.py").answers(requests.clone());
    let mut refused = 0;
    for (request, answer) in requests.iter().zip(&answers) {
        let number = |key: &str| request[key].as_u64().unwrap();
        let size = ImageSize { width: number("width"), height: number("height") };
        let bounds = PixelBounds { min: number("min"), max: number("max") };
        let ours = size.resized(number("factor"), bounds);
        let ours = ours.map_or(Value::Null, |size| json!([size.width, size.height]));
        refused += usize::from(ours.is_null());
        assert_eq!(ours, answer["resized"], "{request}");
        assert_eq!(size.tiles(number("tile"), number("most")), answer["tiles"], "{request}");
    }
    println!("{SIZES} sizes, {refused} refused");
}
