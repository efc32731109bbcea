//! What stands before a language model: towers that see or hear, and what they are given.

/// The tower of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Tower {
    /// None: the model reads tokens only.
    #[default]
    None,
    /// One that sees.
    Vision(Box<Vision>),
    /// The encoder of a speech model.
    Speech(Speech),
}

/// How a vision tower is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VisionKind {
    /// Qwen2-VL: images of any size, packed.
    Qwen2,
    /// Qwen2.5-VL: packed, most blocks attend within windows.
    Qwen25,
    /// Qwen3-VL: packed, some blocks feed the first layers of the language model.
    Qwen3,
    /// SigLIP with Gemma 3's pooling projector.
    Gemma3,
    /// `InternViT` with a pixel shuffle and a projector.
    Intern,
    /// A plain tower with two layers behind it, as in LLaVA; a stand-in for towers of that form.
    Projected,
}

impl VisionKind {
    /// Whether images keep their size and are packed into one sequence of patches.
    #[must_use]
    pub fn is_packed(self) -> bool {
        matches!(self, Self::Qwen2 | Self::Qwen25 | Self::Qwen3)
    }

    /// Whether every image has a grid of its own.
    fn keeps_size(self) -> bool {
        self.is_packed() || self == Self::Projected
    }

    /// Whether the class names an input layer, whose output checkpointing makes to need a gradient.
    #[must_use]
    pub(crate) fn names_input_layer(self) -> bool {
        self != Self::Qwen3
    }
}

/// A vision tower and the images of a micro batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vision {
    /// How it is built.
    pub kind: VisionKind,
    /// Width.
    pub hidden: u64,
    /// Inner width of its feed-forward part.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Pixels of a side of a patch.
    pub patch: u64,
    /// Patches of a side that are merged into one token.
    pub merge: u64,
    /// Frames of a patch.
    pub frames: u64,
    /// Pixels of a side of an image (towers with images of one size).
    pub image_size: u64,
    /// Pixels of a side of an attention window (Qwen2.5-VL).
    pub window: u64,
    /// Blocks that attend to the whole image (Qwen2.5-VL).
    pub full_attention: Vec<u64>,
    /// Blocks that feed the language model (Qwen3-VL).
    pub deepstack: Vec<u64>,
    /// Rows of a learned position table.
    pub positions: u64,
    /// Tokens an image becomes (Gemma 3).
    pub image_tokens: u64,
    /// Query, key and value have a bias (`InternViT`).
    pub has_attention_bias: bool,
    /// Query and key are normalised (`InternViT`).
    pub has_head_norms: bool,
    /// Norms are RMS norms (`InternViT`).
    pub has_rms_norms: bool,
    /// The tower has a pooling head that nobody calls (SigLIP).
    pub has_pooling_head: bool,
    /// The images of a micro batch; of towers with images of one size, one for every tile.
    pub images: Vec<Grid>,
}

/// An image or a video in patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Frames, in patches.
    pub frames: u64,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
}

impl Grid {
    /// Patches of all frames.
    #[must_use]
    pub fn patches(self) -> u64 {
        self.frames * self.rows * self.columns
    }
}

impl Vision {
    /// Patches of all images.
    #[must_use]
    pub fn patches(&self) -> u64 {
        if self.kind.keeps_size() {
            return self.images.iter().map(|grid| grid.patches()).sum();
        }
        self.images.len() as u64 * self.patches_of_an_image()
    }

    /// Patches of an image of the size of the tower.
    pub(crate) fn patches_of_an_image(&self) -> u64 {
        let side = self.image_size / self.patch.max(1);
        side * side
    }

    /// Patches of each image.
    pub(crate) fn length_of_an_image(&self) -> u64 {
        match self.images.len() as u64 {
            count if count > 0 && self.kind.keeps_size() => self.patches() / count,
            _ => self.patches_of_an_image(),
        }
    }

    /// Tokens of all images in the language model.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        match self.kind {
            VisionKind::Gemma3 => self.images.len() as u64 * self.image_tokens,
            _ => self.patches() / (self.merge * self.merge).max(1),
        }
    }

    /// Colour values of all images.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        if self.kind.keeps_size() {
            return self.patches() * self.patch_values();
        }
        self.images.len() as u64 * 3 * self.image_size * self.image_size
    }

    /// Colour values of a patch.
    pub(crate) fn patch_values(&self) -> u64 {
        3 * self.frames.max(1) * self.patch * self.patch
    }

    /// Patches of each frame: what attends to each other in a whole image.
    pub(crate) fn frame_segments(&self) -> Segments {
        let frames = self.images.iter().flat_map(|grid| {
            std::iter::repeat_n(grid.rows * grid.columns, usize::try_from(grid.frames).unwrap_or(0))
        });
        Segments::of(frames)
    }

    /// Patches of each window. The class pads a multiple of the window too; empty windows vanish.
    pub(crate) fn window_segments(&self) -> Segments {
        let unit = (self.window / self.merge.max(1) / self.patch.max(1)).max(1);
        let mut sizes = Vec::new();
        for grid in &self.images {
            let (rows, columns) = (grid.rows / self.merge, grid.columns / self.merge);
            let lengths = |length: u64| {
                let whole = std::iter::repeat_n(unit, usize::try_from(length / unit).unwrap_or(0));
                whole.chain(Some(length % unit).filter(|&rest| rest > 0))
            };
            for _ in 0..grid.frames {
                for row in lengths(rows) {
                    sizes.extend(
                        lengths(columns).map(|column| row * column * self.merge * self.merge),
                    );
                }
            }
        }
        Segments::of(sizes)
    }
}

/// Stretches of a packed sequence, each of which attends only to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segments {
    /// How many.
    pub count: u64,
    /// Positions of all.
    pub length: u64,
    /// Pairs of positions that see each other.
    pub pairs: u64,
}

impl Segments {
    fn of(sizes: impl IntoIterator<Item = u64>) -> Self {
        sizes.into_iter().fold(Self::default(), |all, size| Self {
            count: all.count + 1,
            length: all.length + size,
            pairs: all.pairs + size * size,
        })
    }
}

/// The encoder of a speech model, whose decoder the [`Shape`](super::Shape) describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speech {
    /// Layers of the encoder.
    pub layers: u64,
    /// Heads of the encoder.
    pub heads: u64,
    /// Inner width of the encoder's feed-forward parts.
    pub intermediate: u64,
    /// Frequencies of a frame.
    pub mel_bins: u64,
    /// Positions of the encoder: half as many as frames.
    pub positions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vision(rows: u64, columns: u64) -> Vision {
        Vision {
            kind: VisionKind::Qwen25,
            hidden: 1280,
            intermediate: 3420,
            layers: 32,
            heads: 16,
            patch: 14,
            merge: 2,
            frames: 2,
            image_size: 0,
            window: 112,
            full_attention: vec![7, 15, 23, 31],
            deepstack: Vec::new(),
            positions: 0,
            image_tokens: 0,
            has_attention_bias: true,
            has_head_norms: false,
            has_rms_norms: true,
            has_pooling_head: false,
            images: vec![Grid { frames: 1, rows, columns }],
        }
    }

    /// 1036 × 1036 pixels are 74 × 74 patches and 37 × 37 tokens; windows are 4 × 4 tokens of 4 patches.
    #[test]
    fn an_image_is_cut_into_windows() {
        let vision = vision(74, 74);
        assert_eq!((vision.patches(), vision.tokens()), (5476, 1369));
        assert_eq!(
            vision.frame_segments(),
            Segments { count: 1, length: 5476, pairs: 5476 * 5476 }
        );
        // 9 × 9 whole windows, 9 + 9 of a single row or column, and one corner.
        let pairs = 81 * 64 * 64 + 18 * 16 * 16 + 4 * 4;
        assert_eq!(vision.window_segments(), Segments { count: 100, length: 5476, pairs });
    }
}
