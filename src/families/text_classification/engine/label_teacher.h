#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "families/text/engine/run_model.h"
#include "families/text/engine/text_teacher.h"
#include "families/text_classification/engine/label_outputs.h"
#include "models/text_model.h"
#include "tasks/family.h"

/// Shape letters: B samples of a batch, L labels; of a value L = 1.
namespace stretto::tasks {

/// How far predictions are from those of a teacher, [B], natural log, differentiable in `logits`:
/// T^2 KL(teacher || model) of one label; of several the mean over labels of that of each; of a
/// value the squared difference. Both sides' logits are divided by the temperature T first.
/// @param logits, teacher  [B, L]
at::Tensor label_divergence(LabelTarget target, const at::Tensor& logits, const at::Tensor& teacher,
                            double temperature);

/// What a model makes of a batch.
struct LabelPass {
  at::Tensor logits;    ///< [B, L]
  TextPass parts = {};  ///< those that were asked for
};
LabelPass label_pass(models::TextModel& model, const train::Prepared& texts,
                     const models::ForwardContext& context, PassParts parts = {});

/// The models of the run that `loss.teacher` names, which label what a student trains on. They are
/// no part of the student.
class LabelTeacher {
 public:
  /// Throws Error(kUsage) for what is no run that labels texts, for one with another tokenizer,
  /// with other labels or another order of them, and for a model that reads shorter texts or other
  /// segments; and as load_text_run() does.
  /// @param assets  of the student
  /// @param head    of a run that labels texts
  LabelTeacher(const experiment::Experiment& student, const Assets& assets, const HeadOfRun& head,
               at::Device device);

  /// What losses() reads of a pass: by `loss.teacher_hidden` and `loss.teacher_attention`.
  PassParts parts() const { return parts_.parts(); }
  /// [B]: what the loss of each text of a batch becomes.
  /// @param own  its losses by the labels
  at::Tensor losses(const LabelOutputs& outputs, const train::Prepared& batch,
                    const LabelPass& student, const models::LabelLosses& own) const;

 private:
  double weight_, temperature_;
  PartWeights parts_;
  std::vector<std::shared_ptr<models::TextModel>> models_;
};

}  // namespace stretto::tasks
