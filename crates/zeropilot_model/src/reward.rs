//! A language model as a reward model: one number for a sequence instead of logits.

use crate::family::parts::{Bias, linear};
use crate::model::Model;

impl Model {
    /// The same with a head of one column (`…ForSequenceClassification` with `num_labels=1`); `None` if it has no output
    /// projection of its own to replace.
    pub fn as_reward_model(&self) -> Option<Self> {
        let output = self.output.as_deref().filter(|name| !name.contains('.'));
        let Some(output) = output else {
            let is_one = self.root.children.iter().any(|child| child.name.includes("score"));
            return is_one.then(|| self.clone());
        };
        let hidden = self.dimensions?.hidden_size;
        let mut root = self.root.clone();
        root.children.retain(|child| !child.name.includes(output));
        let root = root.with("score", linear(hidden, 1, Bias::No));
        let count = root.count().ok()?;
        Some(Self { root, count, output: None, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_reward_model_has_one_column() {
        let config = r#"{"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
            "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500,
            "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": false}"#;
        let model = Model::from_config(config).expect("a model");
        let reward = model.as_reward_model().expect("a reward model");
        let class = config.replace("LlamaForCausalLM", "LlamaForSequenceClassification");
        let class = class.replace('{', r#"{"num_labels": 1, "#);
        let class = Model::from_config(&class).expect("a classifier");
        let names = |model: &Model| model.parameters().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names(&reward), names(&class));
        assert_eq!(reward.count(), class.count());
        let again = class.as_reward_model().expect("it is one");
        assert_eq!(again.count(), class.count());
    }
}
