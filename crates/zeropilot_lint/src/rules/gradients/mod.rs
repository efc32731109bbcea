//! G: buckets, gradients and GPU memory.

pub(crate) mod norm_off;
