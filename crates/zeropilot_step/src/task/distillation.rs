//! Losses of a student and its teacher.

use super::Role;
use super::objective::Stage;
use crate::family::Returns;
use crate::tape::{Mark, Tensor};

/// How a student imitates its teacher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distillation {
    /// What measures how far it is off.
    pub divergence: Divergence,
    /// Whether the student's own cross entropy is added.
    pub cross_entropy: bool,
    /// Whether the teacher runs before the student.
    pub teacher_first: bool,
    /// Whether the logits of labelled positions are copied out of both models' logits before anything else (ms-swift);
    /// otherwise labels pick from the divergence (TRL).
    pub picks_logits: bool,
}

/// The divergence of two distributions over the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divergence {
    /// Generalized Jensen–Shannon divergence of 16-bit logits: TRL's GKD, `0 < beta < 1`.
    JensenShannon,
    /// Forward KL of 16-bit logits: TRL's GKD with `beta` 0.
    Forward,
    /// Reverse KL of 16-bit logits: TRL's GKD with `beta` 1.
    Reverse,
    /// `kl_div(log_softmax(s / T), log_softmax(t / T), log_target)` in 32 bits.
    Wide,
    /// `kl_div(log_softmax(s / T), softmax(t / T))` in the model's format.
    Narrow,
}

impl<'t> Stage<'_, 't> {
    pub(super) fn distillation(&self, it: Distillation) -> Option<Tensor<'t>> {
        let mut teacher = Vec::new();
        if it.teacher_first {
            teacher = self.visit(Role::Teacher)?;
        }
        let returns = if it.cross_entropy { Returns::LogitsAndLoss } else { Returns::Logits };
        let student = self.train(returns)?;
        if !it.teacher_first {
            teacher = self.visit(Role::Teacher)?;
        }
        self.tape.mark(Mark::Loss);
        let divergence = self.divergence(it, student.first()?, teacher.first()?);
        let loss = match student.get(1) {
            Some(own) => divergence.scale().add(&own.scale()),
            None => divergence,
        };
        drop((student, teacher));
        Some(loss)
    }

    fn divergence(
        &self,
        it: Distillation,
        student: &Tensor<'t>,
        teacher: &Tensor<'t>,
    ) -> Tensor<'t> {
        match it.divergence {
            Divergence::Wide => {
                let teacher = wide_log_softmax(teacher);
                let student = wide_log_softmax(student);
                let distance = student.kl_div_of_logs(&teacher);
                distance.sum(distance.elements())
            }
            Divergence::Narrow => {
                let student = {
                    let scaled = student.scale();
                    scaled.log_softmax()
                };
                let teacher = {
                    let scaled = teacher.scale();
                    scaled.log_softmax()
                };
                let distance = student.kl_div(&teacher);
                distance.sum(distance.elements())
            }
            Divergence::JensenShannon | Divergence::Forward | Divergence::Reverse => {
                let part = |logits: &Tensor<'t>| match it.picks_logits {
                    true => self.labelled(logits),
                    false => logits.slice(self.sizes.predicted()),
                };
                let (student_part, teacher_part) = (part(student), part(teacher));
                let (student, teacher) = (student_part.scale(), teacher_part.scale());
                let (student_logs, teacher_logs) = (student.log_softmax(), teacher.log_softmax());
                let distance = match it.divergence {
                    Divergence::Forward => student_logs.kl_div_of_logs(&teacher_logs),
                    Divergence::Reverse => teacher_logs.kl_div_of_logs(&student_logs),
                    _ => return self.jensen_shannon(it, &student_logs, &teacher_logs),
                };
                self.sum_of_labels(it, &distance)
            }
        }
    }

    fn jensen_shannon(
        &self,
        it: Distillation,
        student: &Tensor<'t>,
        teacher: &Tensor<'t>,
    ) -> Tensor<'t> {
        let mixture = {
            let both = {
                let (student, teacher) = (student.add_scalar(), teacher.add_scalar());
                self.tape.stack(&[student, teacher])
            };
            both.log_sum_exp_of_two()
        };
        let of_teacher = mixture.kl_div_of_logs(teacher);
        let of_student = mixture.kl_div_of_logs(student);
        let distance = {
            let (teacher, student) = (of_teacher.scale(), of_student.scale());
            teacher.add(&student)
        };
        self.sum_of_labels(it, &distance)
    }

    /// The sum over the positions that have a label: they are picked out first, unless their logits were.
    fn sum_of_labels(&self, it: Distillation, distance: &Tensor<'t>) -> Tensor<'t> {
        if it.picks_logits {
            return distance.sum(distance.elements());
        }
        let picked = self.labelled(distance);
        picked.sum(picked.elements())
    }

    /// A copy of what belongs to positions that have a label.
    fn labelled(&self, of_positions: &Tensor<'t>) -> Tensor<'t> {
        let rows = self.sizes.labelled();
        let places = self.tape.index_tensor(2 * rows);
        of_positions.pick(&places, rows * self.sizes.vocabulary)
    }
}

/// `log_softmax(x.float() / T)`.
fn wide_log_softmax<'t>(logits: &Tensor<'t>) -> Tensor<'t> {
    let scaled = {
        let wide = logits.cast_loss(4);
        wide.scale()
    };
    scaled.log_softmax()
}
