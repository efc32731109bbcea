//! From a model and the images of its sequences to the tower of a program.
//!
//! Which keys of a vision config decide a tower, and how each processor turns pixels into patches, is known here.

use zeropilot_model::image::{ImageSize, PixelBounds};
use zeropilot_model::{Family, Model, Settings};

use super::{Images, LowerError, Recipe};
use crate::shape::{Grid, Speech, Tower, Vision, VisionKind};

/// Frames of a video that Qwen's towers take at once; an image is repeated to fill them.
const FRAMES_OF_A_PATCH: u64 = 2;
/// Tiles `InternVL`'s processor cuts an image into at most.
const MOST_TILES: u64 = 12;
/// Pixels of the longest side that Pixtral's processor leaves.
const PIXTRAL_LONGEST: u64 = 1540;

/// The tower of a model for a micro batch of `sequences`, each with these images.
///
/// # Errors
///
/// If a processor refuses the image.
pub(super) fn tower(
    model: &Model,
    images: Option<&Images>,
    sequences: u64,
) -> Result<Tower, LowerError> {
    let Some(settings) = model.settings() else { return Ok(Tower::None) };
    if model.family() == Some(Family::Whisper) {
        return Ok(Tower::Speech(speech(settings)));
    }
    let section = settings.section("vision_config");
    let Some((kind, section)) = kind(model).zip(section) else { return Ok(Tower::None) };
    let mut vision = vision(kind, settings, &section);
    vision.images = match images {
        None => Vec::new(),
        Some(Images::Patches(grids)) => grids.clone(),
        Some(Images::PerSequence { count, size, max_pixels }) => {
            let image = grids(model, &vision, *size, *max_pixels)?;
            let count = usize::try_from(sequences.saturating_mul(*count)).unwrap_or(usize::MAX);
            if image.len().saturating_mul(count) > MOST_IMAGES {
                return Err(LowerError::TooManyImages { most: MOST_IMAGES as u64 });
            }
            std::iter::repeat_n(image, count).flatten().collect()
        }
    };
    Ok(Tower::Vision(Box::new(vision)))
}

/// No micro batch has more images or tiles.
const MOST_IMAGES: usize = 1 << 16;

/// How the tower of a model is built, or the nearest that is.
pub(super) fn kind(model: &Model) -> Option<VisionKind> {
    Some(match model.family()? {
        Family::Qwen2Vl => VisionKind::Qwen2,
        Family::Qwen2_5Vl | Family::Glm4v => VisionKind::Qwen25,
        Family::Qwen3Vl | Family::Qwen3VlMoe => VisionKind::Qwen3,
        Family::Gemma3 => VisionKind::Gemma3,
        Family::InternVl => VisionKind::Intern,
        Family::Llava | Family::PaliGemma | Family::Mistral3 => VisionKind::Projected,
        _ => return None,
    })
}

/// Whether a model that sees or hears has a tower of its own in its program.
pub(super) fn is_own(model: &Model) -> bool {
    let is_one_part = model.parts().len() == 1;
    let is_proved = matches!(
        model.family(),
        Some(
            Family::Whisper
                | Family::Qwen2Vl
                | Family::Qwen2_5Vl
                | Family::Qwen3Vl
                | Family::Gemma3
                | Family::InternVl
        )
    );
    is_one_part || is_proved
}

/// Whether the tower of a model, or one like it, is part of its program.
pub fn sees(model: &Model) -> bool {
    kind(model).is_some()
}

/// Whether gradient checkpointing makes the tower of a model run backward even if it is frozen: transformers sets a
/// gradient on the output of the input layer that the tower's class names.
pub fn differentiates_frozen_tower(model: &Model) -> bool {
    kind(model).is_some_and(VisionKind::names_input_layer)
}

/// Tokens that the images of a sequence become; `None` for a model that sees nothing.
pub fn image_tokens(model: &Model, recipe: &Recipe) -> Option<u64> {
    match tower(model, recipe.images.as_ref(), 1) {
        Ok(Tower::Vision(vision)) if !vision.images.is_empty() => Some(vision.tokens()),
        _ => None,
    }
}

fn speech(settings: &Settings) -> Speech {
    let number = |key: &str| settings.number(key).unwrap_or(0);
    Speech {
        layers: number("encoder_layers"),
        heads: number("encoder_attention_heads").max(1),
        intermediate: number("encoder_ffn_dim"),
        mel_bins: number("num_mel_bins"),
        positions: number("max_source_positions"),
    }
}

fn vision(kind: VisionKind, whole: &Settings, section: &Settings) -> Vision {
    let number = |keys: &[&str]| keys.iter().find_map(|key| section.number(key)).unwrap_or(0);
    // Lists of two, such as [448, 448], are those of squares.
    let side = |key: &str| {
        section.number(key).or_else(|| section.numbers(key).first().copied()).unwrap_or(0)
    };
    // Qwen2-VL names the width of the language model `hidden_size`.
    let hidden = number(&["embed_dim", "hidden_size"]);
    let ratio = section.number("mlp_ratio").unwrap_or(4);
    let merge = match kind {
        VisionKind::Intern => 2,
        VisionKind::Projected => whole.number("spatial_merge_size").unwrap_or(1),
        VisionKind::Gemma3 => 1,
        _ => section.number("spatial_merge_size").unwrap_or(2),
    };
    Vision {
        kind,
        hidden,
        intermediate: section.number("intermediate_size").unwrap_or(hidden * ratio),
        layers: number(&["depth", "num_hidden_layers"]),
        heads: number(&["num_heads", "num_attention_heads"]).max(1),
        patch: side("patch_size").max(1),
        merge,
        frames: if kind.is_packed() { FRAMES_OF_A_PATCH } else { 1 },
        image_size: side("image_size"),
        window: number(&["window_size"]),
        full_attention: section.numbers("fullatt_block_indexes"),
        deepstack: section.numbers("deepstack_visual_indexes"),
        positions: number(&["num_position_embeddings"]),
        image_tokens: whole.number("mm_tokens_per_image").unwrap_or(0),
        has_attention_bias: section.flag("attention_bias"),
        has_head_norms: section.flag("use_qk_norm"),
        has_rms_norms: section.word("norm_type") == Some("rms_norm"),
        has_pooling_head: !section.has("vision_use_head") || section.flag("vision_use_head"),
        images: Vec::new(),
    }
}

/// One image as its processor cuts it.
fn grids(
    model: &Model,
    vision: &Vision,
    size: ImageSize,
    max_pixels: Option<u64>,
) -> Result<Vec<Grid>, LowerError> {
    let grid = |size: ImageSize| Grid {
        frames: 1,
        rows: size.height / vision.patch,
        columns: size.width / vision.patch,
    };
    let whole = Grid { frames: 1, rows: 0, columns: 0 };
    match vision.kind {
        kind if kind.is_packed() => {
            let factor = vision.patch * vision.merge;
            // The class's own least; the most is what the user says, since checkpoints differ widely in it.
            let bounds =
                PixelBounds { min: 4 * factor * factor, max: max_pixels.unwrap_or(1 << 40) };
            let resized = size.resized(factor, bounds);
            resized.map(|size| vec![grid(size)]).ok_or(LowerError::OddImage { size })
        }
        VisionKind::Intern => {
            let tiles = size.tiles(vision.image_size.max(1), MOST_TILES);
            Ok(vec![whole; usize::try_from(tiles).unwrap_or(1)])
        }
        VisionKind::Projected if model.family() == Some(Family::Mistral3) => {
            Ok(vec![grid(pixtral(size, vision))])
        }
        VisionKind::Projected => {
            let side = ImageSize { width: vision.image_size, height: vision.image_size };
            Ok(vec![grid(side)])
        }
        _ => Ok(vec![whole]),
    }
}

/// The longest side reduced to what the processor allows, both sides filled up to whole tokens.
fn pixtral(size: ImageSize, vision: &Vision) -> ImageSize {
    let longest = size.width.max(size.height);
    let reduced = |side: u64| {
        if longest > PIXTRAL_LONGEST { (side * PIXTRAL_LONGEST / longest).max(1) } else { side }
    };
    let unit = vision.patch * vision.merge.max(1);
    let filled = |side: u64| reduced(side).div_ceil(unit) * unit;
    ImageSize { width: filled(size.width), height: filled(size.height) }
}
