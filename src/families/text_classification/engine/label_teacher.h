#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch.h"
#include "families/text/engine/run_model.h"
#include "families/text_classification/engine/label_outputs.h"
#include "models/text_model.h"
#include "nn/attention_record.h"
#include "tasks/family.h"

/// Shape letters: B samples of a batch, L labels; of a value L = 1.
namespace stretto::tasks {

/// How far predictions are from those of a teacher, [B], natural log, differentiable in `logits`:
/// T^2 KL(teacher || model) of one label; of several the mean over labels of that of each; of a
/// value the squared difference. Both sides' logits are divided by the temperature T first.
/// @param logits, teacher  [B, L]
at::Tensor label_divergence(LabelTarget target, const at::Tensor& logits, const at::Tensor& teacher,
                            double temperature);

/// How far the rows of a last layer relate to each other otherwise than those of a teacher do, [B],
/// differentiable in `rows`. The relations of row i of a text are softmax_j(<x_i, x_j> /
/// sqrt(width)), as those of MiniLMv2 (Wang et al. 2021, arXiv:2012.15828) with one head, so that
/// widths may differ. For each text the mean over its rows of KL(teacher || model).
/// @param rows, teacher  [N, D] and [N, D'], of the tokens of `texts`
/// @param heads  parts of equal width into which both are cut; the mean over them
at::Tensor relation_divergence(const at::Tensor& rows, const at::Tensor& teacher,
                               const data::PackedTokens& texts, int64_t heads = 1);

/// The mean of relation_divergence() of queries, keys and values, [B], of as many heads as the
/// numbers of heads of both have as their greatest common divisor.
at::Tensor attention_divergence(const nn::AttentionRows& attention,
                                const nn::AttentionRows& teacher, const data::PackedTokens& texts);

/// What a model makes of a batch.
struct LabelPass {
  at::Tensor logits;     ///< [B, L]
  at::Tensor rows = {};  ///< of the last layer, [N, D]; undefined where they are not asked for
  nn::AttentionRows attention = {};  ///< of the last layer, where it was asked for
};

/// What is asked for beside the logits.
struct PassParts {
  bool rows = false, attention = false;
};
/// Throws Error(kUsage) where attention is asked for and the model has none.
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
  PassParts parts() const { return {.rows = hidden_ > 0, .attention = attention_ > 0}; }
  /// [B]: what the loss of each text of a batch becomes.
  /// @param own  its losses by the labels
  at::Tensor losses(const LabelOutputs& outputs, const train::Prepared& batch,
                    const LabelPass& student, const models::LabelLosses& own) const;

 private:
  double weight_, temperature_, hidden_, attention_;
  std::vector<std::shared_ptr<models::TextModel>> models_;
};

/// The tokenizer's files of the teacher's run, for a student that names no tokenizer.
Assets tokenizer_of_label_teacher(const experiment::Experiment& student);

}  // namespace stretto::tasks
