//! Rotary position embeddings.

use crate::tape::{Category, LayerKernels, Tape, Tensor};

/// Cosine and sine tables of one rotary module.
#[derive(Debug, Clone)]
pub struct Rotary<'t> {
    /// Cosines.
    pub cos: Tensor<'t>,
    /// Sines.
    pub sin: Tensor<'t>,
}

impl Tape {
    /// The tables for `positions` positions of `width` rotated elements.
    #[must_use]
    pub fn rotary(&self, positions: u64, width: u64, element_bytes: u8) -> Rotary<'_> {
        let table = || self.fresh(positions * width, 4, Category::Activation);
        self.no_grad(|| {
            let _frequencies = self.fresh(positions * width / 2, 4, Category::Activation);
            let _doubled = table();
            let cos = {
                let plain = table();
                plain.scale()
            };
            let sin = {
                let plain = table();
                plain.scale()
            };
            Rotary { cos: cos.cast(element_bytes), sin: sin.cast(element_bytes) }
        })
    }
}

impl<'t> Tensor<'t> {
    /// Rotate all of `self`.
    #[must_use]
    pub fn rope(&self, rotary: &Rotary<'t>) -> Tensor<'t> {
        if self.tape().options().layer_kernels == LayerKernels::Liger {
            return self.view();
        }
        let straight = self.mul(&rotary.cos);
        let turned = {
            let half = self.rotate_half();
            half.mul(&rotary.sin)
        };
        straight.add(&turned)
    }

    fn rotate_half(&self) -> Tensor<'t> {
        let first = self.slice(self.elements / 2);
        let second = self.slice(self.elements / 2);
        let negated = second.neg();
        negated.cat(&first)
    }
}

impl<'t> Tensor<'t> {
    /// Rotate the first part of every head of the query `self` and of `key`, finishing the query
    /// before the key (Phi-3).
    #[must_use]
    pub fn partial_rope_by_turns(
        &self,
        key: &Tensor<'t>,
        rotary: &Rotary<'t>,
        rotated: u64,
        width: u64,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let [q_turn, q_pass] = self.parts(rotated, width);
        let [k_turn, k_pass] = key.parts(rotated, width);
        let q = {
            let turned = q_turn.rope(rotary);
            turned.cat(&q_pass)
        };
        let k = {
            let turned = k_turn.rope(rotary);
            turned.cat(&k_pass)
        };
        (q, k)
    }

    /// As [`Tensor::partial_rope_by_turns`], rotating both before joining either (GPT-NeoX).
    #[must_use]
    pub fn partial_rope_together(
        &self,
        key: &Tensor<'t>,
        rotary: &Rotary<'t>,
        rotated: u64,
        width: u64,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let [q_turn, q_pass] = self.parts(rotated, width);
        let [k_turn, k_pass] = key.parts(rotated, width);
        let mut q = q_turn.rope(rotary);
        let mut k = k_turn.rope(rotary);
        q = q.cat(&q_pass);
        k = k.cat(&k_pass);
        (q, k)
    }

    fn parts(&self, rotated: u64, width: u64) -> [Tensor<'t>; 2] {
        let turned = self.elements / width * rotated;
        // A slice of everything, or of nothing, is still a slice of the program.
        [self.part(turned), self.part(self.elements - turned)]
    }

    fn part(&self, elements: u64) -> Tensor<'t> {
        if elements == self.elements { self.view() } else { self.slice(elements) }
    }

    /// Rotate even and odd elements of the query `self` and of `key` (DeepSeek).
    #[must_use]
    pub fn interleaved_rope(
        &self,
        key: &Tensor<'t>,
        rotary: &Rotary<'t>,
    ) -> (Tensor<'t>, Tensor<'t>) {
        let half = Rotary { cos: rotary.cos.halves().0, sin: rotary.sin.halves().0 };
        let rotary = &half;
        let (q_even, q_odd) = self.halves();
        let (k_even, k_odd) = key.halves();
        let q = Self::turn(&q_even, &q_odd, rotary);
        let k = Self::turn(&k_even, &k_odd, rotary);
        (q, k)
    }

    fn halves(&self) -> (Tensor<'t>, Tensor<'t>) {
        (self.slice(self.elements / 2), self.slice(self.elements / 2))
    }

    fn turn(even: &Tensor<'t>, odd: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        let first = {
            let (straight, across) = (even.mul(&rotary.cos), odd.mul(&rotary.sin));
            straight.sub(&across)
        };
        let second = {
            let (straight, across) = (odd.mul(&rotary.cos), even.mul(&rotary.sin));
            straight.add(&across)
        };
        first.cat(&second)
    }
}
