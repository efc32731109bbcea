//! Images as the image processors of transformers cut them.

use std::fmt;
use std::str::FromStr;

/// An image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSize {
    /// Its width.
    pub width: u64,
    /// Its height.
    pub height: u64,
}

/// No image is wider or higher; all arithmetic fits 64 bits.
const MOST_SIDE: u64 = 1 << 16;

/// A processor refuses images that are longer than this many times their width.
const MOST_RATIO: u64 = 200;

/// What is no size of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an image size: write width and height in pixels, such as 1024x768")]
pub struct BadImageSize(pub String);

impl FromStr for ImageSize {
    type Err = BadImageSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadImageSize(text.to_owned());
        let side = |text: &str| {
            text.trim().parse().ok().filter(|side| (1..=MOST_SIDE).contains(side)).ok_or_else(bad)
        };
        let (width, height) = text.split_once(['x', 'X', '×', '*']).ok_or_else(bad)?;
        Ok(Self { width: side(width)?, height: side(height)? })
    }
}

impl fmt::Display for ImageSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.width, self.height)
    }
}

/// The fewest and most pixels an image may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelBounds {
    /// Smaller images are enlarged.
    pub min: u64,
    /// Larger images are reduced.
    pub max: u64,
}

impl ImageSize {
    /// The size Qwen's processors give an image: both sides a multiple of `factor`, the pixels within bounds, the ratio
    /// of the sides kept as nearly as possible. `None` where they refuse the image.
    // Sides are below 2^16 and bounds below 2^53: their products and roots are exact enough to round as Python does.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn resized(self, factor: u64, bounds: PixelBounds) -> Option<Self> {
        let (long, short) = (self.width.max(self.height), self.width.min(self.height));
        if long > MOST_RATIO * short || factor == 0 {
            return None;
        }
        let (width, height, unit) = (self.width as f64, self.height as f64, factor as f64);
        let nearest = |side: f64| (side / unit).round_ties_even() as u64 * factor;
        let size = Self { width: nearest(width), height: nearest(height) };
        let pixels = size.width * size.height;
        let sides = |side: &dyn Fn(f64) -> f64| {
            let whole = |length: f64| (side(length) as u64).max(1) * factor;
            Some(Self { width: whole(width), height: whole(height) })
        };
        if pixels > bounds.max {
            let by = (width * height / bounds.max as f64).sqrt();
            return sides(&|length| (length / by / unit).floor());
        }
        if pixels < bounds.min {
            let by = (bounds.min as f64 / (width * height)).sqrt();
            return sides(&|length| (length * by / unit).ceil());
        }
        Some(size)
    }

    /// The tiles `InternVL`'s processor cuts an image into: the grid of at most `most` tiles whose ratio is nearest, and
    /// a small copy of the whole image where there is more than one.
    #[allow(clippy::cast_precision_loss)]
    pub fn tiles(self, tile: u64, most: u64) -> u64 {
        let ratio = self.width as f64 / self.height as f64;
        let area = (self.width * self.height) as f64;
        let mut grids: Vec<(u64, u64)> = (1..=most)
            .flat_map(|width| (1..=most / width).map(move |height| (width, height)))
            .collect();
        grids.sort_by_key(|(width, height)| width * height);
        let (mut best, mut distance) = ((1, 1), f64::INFINITY);
        for (width, height) in grids {
            let found = (ratio - width as f64 / height as f64).abs();
            let fills = area > 0.5 * (tile * tile * width * height) as f64;
            // The processor compares the distances exactly.
            #[allow(clippy::float_cmp)]
            if found < distance || (found == distance && fills) {
                (best, distance) = ((width, height), found);
            }
        }
        match best.0 * best.1 {
            1 => 1,
            tiles => tiles + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QWEN: PixelBounds = PixelBounds { min: 56 * 56, max: 14 * 14 * 4 * 1280 };

    fn size(text: &str) -> ImageSize {
        text.parse().expect("a size")
    }

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!(size("1024x768").to_string(), "1024x768");
        assert_eq!(size(" 640 × 480 "), ImageSize { width: 640, height: 480 });
        for bad in ["", "1024", "0x1", "1024x", "-1x2", "99999999x1"] {
            assert_eq!(bad.parse::<ImageSize>(), Err(BadImageSize(bad.to_owned())));
        }
    }

    /// 1024 / 28 is 36.57, so 37 × 28 = 1036 where the bounds allow it; the class's own allow 1280 tokens of 28 × 28.
    #[test]
    fn an_image_is_fitted_to_whole_tokens_and_to_the_bounds() {
        let open = PixelBounds { min: 0, max: u64::MAX >> 11 };
        assert_eq!(size("1024x1024").resized(28, open), Some(size("1036x1036")));
        assert_eq!(size("1024x1024").resized(28, QWEN), Some(size("980x980")));
        assert_eq!(size("20x20").resized(28, QWEN), Some(size("56x56")));
        assert_eq!(size("4000x10").resized(28, QWEN), None);
    }
}
