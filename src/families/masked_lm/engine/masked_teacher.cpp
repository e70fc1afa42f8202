#include "families/masked_lm/engine/masked_teacher.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "data/text_columns.h"
#include "families/masked_lm/engine/masked_lm.h"
#include "losses/teacher.h"
#include "runs/run_folder.h"

namespace stretto::tasks {
namespace {

/// Masked tokens of each text, fp32 [B] on the device of `like`.
at::Tensor masks_of_texts(const data::Batch& batch, const at::Tensor& like) {
  const auto& labels = data::masked_labels(batch);
  std::vector<float> counts;
  for (int64_t i = 0; i < labels.num_sequences(); ++i) {
    counts.push_back(static_cast<float>(labels.length(i)));
  }
  return at::tensor(counts).to(like.device(), like.scalar_type());
}

}  // namespace

MaskedTeacher::MaskedTeacher(const experiment::Experiment& student, const Assets& tokenizer,
                             at::Device device)
    : weight_(masked_lm_of(student).loss.teacher_weight),
      parts_{.rows = masked_lm_of(student).loss.teacher_hidden,
             .attention = masked_lm_of(student).loss.teacher_attention} {
  const auto& loss = masked_lm_of(student).loss;
  const auto teacher = experiment_of_text_teacher(loss.teacher, student);
  require_same_reading(teacher, student);
  auto run = load_text_run(
      teacher, runs::RunFolder::open(loss.teacher), loss.teacher_checkpoint,
      [](const experiment::Experiment&, const Assets&) { return kMaskedTokenHead; }, device);
  require_same_vocabulary(run.assets, tokenizer, loss.teacher);
  models_ = std::move(run.models);
  for (const auto& model : models_) model->eval();
}

MaskedSums MaskedTeacher::loss(models::TextModel& student, const train::Prepared& batch,
                               const models::ForwardContext& context) const {
  if (data::masked_labels(batch).num_rows() == 0) return masked_loss(student, batch, context);
  std::vector<losses::OutputRows> outputs(models_.size());
  std::vector<TextPass> passes;
  {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < models_.size(); ++i) {
      const losses::RecordScope recording(outputs[i]);
      passes.push_back(masked_pass(*models_[i], batch, {}, parts_.parts()).parts);
    }
  }
  const losses::TeacherScope teachers(outputs);
  MaskedPass own = masked_pass(student, batch, context, parts_.parts());
  const at::Tensor inner = parts_divergence(own.parts, passes, parts_, data::tokens(batch));
  if (inner.defined()) {
    own.sums.loss = own.sums.loss + weight_ * (masks_of_texts(batch, inner) * inner).sum();
  }
  return std::move(own.sums);
}

}  // namespace stretto::tasks
