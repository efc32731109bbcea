//! `--tokens` and `--cost`: what is to be finished, and at what price.

use clap::Args;
use zeropilot_ask::BillRequest;

/// What is to be finished.
#[derive(Debug, Args)]
pub(crate) struct BillArguments {
    /// Tokens to train on, such as `10B`, to know what that takes
    #[arg(long, value_name = "N")]
    tokens: Option<String>,
    /// The price of a GPU and hour, such as `2.5/gpu-hour`
    #[arg(long, value_name = "PRICE", requires = "tokens")]
    cost: Option<String>,
}

impl BillArguments {
    /// What is asked; nothing without tokens.
    pub(crate) fn request(&self) -> Option<BillRequest> {
        let tokens = self.tokens.clone()?;
        Some(BillRequest { tokens, cost: self.cost.clone() })
    }
}
