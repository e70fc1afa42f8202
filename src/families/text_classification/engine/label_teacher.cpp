#include "families/text_classification/engine/label_teacher.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "data/text_columns.h"
#include "families/text_classification/text_classification_options.h"
#include "runs/run_folder.h"

namespace stretto::tasks {
namespace {

const losses::LabelLossOptions& label_loss_of(const experiment::Experiment& experiment) {
  return experiment.task.as<experiment::TextClassificationOptions>().loss;
}

void require_same_labels(const Assets& teacher, const Assets& student,
                         const std::string& directory) {
  const auto theirs = teacher.find(kLabelsAsset), own = student.find(kLabelsAsset);
  if (theirs != teacher.end() && own != student.end() && theirs->second == own->second) return;
  throw Error(
      ExitCode::kUsage,
      "loss.teacher: " + directory + " has other labels than the student, or another order of them",
      "list the teacher's labels in data.labels, in the order of its " + std::string(kLabelsAsset));
}

}  // namespace

at::Tensor label_divergence(LabelTarget target, const at::Tensor& logits, const at::Tensor& teacher,
                            double temperature) {
  if (target == LabelTarget::kValue) {
    return (logits - teacher.to(logits.scalar_type())).square().squeeze(1);
  }
  const at::Tensor own = logits / temperature,
                   theirs = teacher.to(logits.scalar_type()) / temperature;
  const double scale = temperature * temperature;
  if (target == LabelTarget::kOne) {
    const at::Tensor q = at::softmax(theirs, 1);
    return scale * (at::xlogy(q, q) - q * at::log_softmax(own, 1)).sum(1);
  }
  const at::Tensor q = at::sigmoid(theirs), rest = 1 - q;
  const at::Tensor entropies = at::xlogy(q, q) + at::xlogy(rest, rest);
  return scale * (entropies - q * at::log_sigmoid(own) - rest * at::log_sigmoid(-own)).mean(1);
}

LabelPass label_pass(models::TextModel& model, const train::Prepared& texts,
                     const models::ForwardContext& context, PassParts parts) {
  LabelPass pass;
  nn::AttentionRows attention;
  std::optional<nn::AttentionRecordScope> recording;
  if (parts.attention) recording.emplace(attention);
  if (parts.rows) {
    const auto& head = model.labels();
    pass.parts.rows = model.encode(texts.rows(), context);
    pass.logits = head.logits(head.pooled(pass.parts.rows, texts.rows(), context));
  } else {
    pass.logits = label_logits(model, texts, context);
  }
  pass.parts.attention = attention;
  return pass;
}

LabelTeacher::LabelTeacher(const experiment::Experiment& student, const Assets& assets,
                           const HeadOfRun& head, at::Device device)
    : weight_(label_loss_of(student).teacher_weight),
      temperature_(label_loss_of(student).teacher_temperature),
      parts_{.rows = label_loss_of(student).teacher_hidden,
             .attention = label_loss_of(student).teacher_attention} {
  const auto& loss = label_loss_of(student);
  const auto teacher = experiment_of_text_teacher(loss.teacher, student);
  require_same_reading(teacher, student);
  auto run = load_text_run(teacher, runs::RunFolder::open(loss.teacher), loss.teacher_checkpoint,
                           head, device);
  Assets files = assets;
  files.erase(kLabelsAsset);
  require_same_vocabulary(run.assets, files, loss.teacher);
  require_same_labels(run.assets, assets, loss.teacher);
  models_ = std::move(run.models);
  for (const auto& model : models_) {
    model->eval();
    if (parts_.rows <= 0 || !model->labels().reads_states()) continue;
    throw Error(ExitCode::kUsage,
                "loss.teacher_hidden: the teacher's labels are read from the states of its stack "
                "(model.pooling = \"state\"), and not from rows",
                "set loss.teacher_hidden = 0");
  }
}

at::Tensor LabelTeacher::losses(const LabelOutputs& outputs, const train::Prepared& batch,
                                const LabelPass& student, const models::LabelLosses& own) const {
  std::vector<TextPass> passes;
  std::vector<at::Tensor> logits;
  {
    const at::NoGradGuard no_grad;
    for (const auto& model : models_) {
      auto pass = label_pass(*model, batch, {}, parts());
      logits.push_back(std::move(pass.logits));
      passes.push_back(std::move(pass.parts));
    }
  }
  at::Tensor divergence =
      label_divergence(outputs.target(), student.logits, outputs.mean_logits(logits), temperature_);
  const at::Tensor inner = parts_divergence(student.parts, passes, parts_, data::tokens(batch));
  if (inner.defined()) divergence = divergence + inner;
  return (1 - weight_) * own.each + weight_ * own.weight * divergence;
}

}  // namespace stretto::tasks
