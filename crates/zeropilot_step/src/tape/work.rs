//! How much kernels compute and move: what a clock needs of a program.
//!
//! Products of matrices are counted in operations, everything else in bytes read and written. How long that takes is not
//! known here.

use std::iter;
use std::ops::AddAssign;

/// The arithmetic of one operation, as far as it decides how long the operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Arithmetic {
    /// It is bound by memory.
    #[default]
    None,
    /// A product of matrices with this many operations.
    Product(u64),
    /// Products with this many operations in all, of pieces that fill the device.
    Pieces(u64),
    /// A fused attention with this many operations.
    Attention(u64),
}

impl Arithmetic {
    /// The product of `x` and `w` with `out` elements: all three sizes are products of two of three lengths.
    pub(crate) fn of_sizes(x: u64, w: u64, out: u64) -> Self {
        let lengths = (u128::from(x) * u128::from(w)).saturating_mul(u128::from(out)).isqrt();
        Self::Product(u64::try_from(lengths).map_or(u64::MAX, |lengths| lengths.saturating_mul(2)))
    }
}

/// Operations of products per byte below which the bytes take longer: thin products, such as those of adapters.
const THIN: u64 = 64;

/// Operations the backward of a fused attention takes for each of its forward: five products for two.
const ATTENTION_BACKWARD: (u64, u64) = (5, 2);

/// What kernels compute and move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Operations in products of matrices; a multiplication and an addition are two.
    pub products: u64,
    /// Operations in fused attention.
    pub attention: u64,
    /// Of both, those that only repeat what forward has done.
    pub repeated: u64,
    /// Bytes read and written by everything that memory bounds.
    pub moved: u64,
    /// Kernels.
    pub kernels: u32,
    /// Operations behind one element of a result, over all products: twice the lengths they sum over.
    pub depths: u64,
}

impl Work {
    /// Whether there is none.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.products.saturating_add(self.attention)
    }

    /// A kernel that moves bytes.
    pub(crate) fn moving(bytes: u64) -> Self {
        Self { moved: bytes, kernels: 1, ..Self::default() }
    }

    /// A kernel with its arithmetic, the elements of its result and the bytes of its operands and results.
    pub(crate) fn of(arithmetic: Arithmetic, elements: u64, bytes: u64) -> Self {
        match arithmetic {
            Arithmetic::Attention(operations) => Self::attending(operations),
            _ => Self::of_gradients(arithmetic, iter::once(elements), bytes),
        }
    }

    /// The gradients of factors of an operation, which have so many elements each.
    pub(crate) fn of_gradients(
        arithmetic: Arithmetic,
        factors: impl Iterator<Item = u64>,
        bytes: u64,
    ) -> Self {
        match arithmetic {
            Arithmetic::None => Self::moving(bytes),
            Arithmetic::Product(operations) => Self::products(operations, factors, bytes),
            Arithmetic::Pieces(operations) => {
                Self { depths: 0, ..Self::products(operations, factors, bytes) }
            }
            Arithmetic::Attention(operations) => {
                let (more, less) = ATTENTION_BACKWARD;
                Self::attending(operations.saturating_mul(more) / less)
            }
        }
    }

    fn attending(operations: u64) -> Self {
        Self { attention: operations, kernels: 1, ..Self::default() }
    }

    /// Products of so many operations each, by the elements of their results.
    fn products(operations: u64, results: impl Iterator<Item = u64>, bytes: u64) -> Self {
        let mut all = Self::default();
        for elements in results {
            all.products = all.products.saturating_add(operations);
            all.depths = all.depths.saturating_add(operations / elements.max(1));
            all.kernels += 1;
        }
        if all.products / THIN < bytes {
            return Self { moved: bytes, depths: 0, ..all };
        }
        all
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.products = self.products.saturating_add(more.products);
        self.attention = self.attention.saturating_add(more.attention);
        self.repeated = self.repeated.saturating_add(more.repeated);
        self.moved = self.moved.saturating_add(more.moved);
        self.kernels = self.kernels.saturating_add(more.kernels);
        self.depths = self.depths.saturating_add(more.depths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 × 5 by 5 × 7: 105 multiplications and as many additions.
    #[test]
    fn a_product_is_known_by_its_sizes() {
        assert_eq!(Arithmetic::of_sizes(15, 35, 21), Arithmetic::Product(210));
    }

    #[test]
    fn a_thin_product_is_bound_by_its_bytes() {
        // 4,096 rows of 4,096 by a weight of 16 columns and by one of 4,096, two bytes an element.
        let bytes = |columns: u64| 2 * (4096 * 4096 + 4096 * columns + 4096 * columns);
        let work = |columns: u64| {
            let operations = 2 * 4096 * 4096 * columns;
            Work::of(Arithmetic::Product(operations), 4096 * columns, bytes(columns))
        };
        assert_eq!(work(16).moved, bytes(16));
        assert_eq!(work(4096).moved, 0);
    }

    /// 512 rows of 4,096 by 4,096 × 11,008: results sum over 4,096, gradients of the rows over 11,008 and those of the
    /// weight over the 512 rows.
    #[test]
    fn every_product_knows_the_length_it_sums_over() {
        let (rows, inner, columns) = (512, 4096, 11_008);
        let arithmetic = Arithmetic::Product(2 * rows * inner * columns);
        assert_eq!(Work::of(arithmetic, rows * columns, 0).depths, 2 * inner);
        let factors = [rows * inner, inner * columns].into_iter();
        let gradients = Work::of_gradients(arithmetic, factors, 0);
        assert_eq!((gradients.depths, gradients.kernels), (2 * (columns + rows), 2));
    }
}
