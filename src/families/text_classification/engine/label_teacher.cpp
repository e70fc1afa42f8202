#include "families/text_classification/engine/label_teacher.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/text_columns.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/text/encoder_sections.h"
#include "families/text/engine/run_tokenizer.h"
#include "families/text/text_sections.h"
#include "families/text_classification/text_classification_options.h"
#include "runs/run_folder.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

const losses::LabelLossOptions& label_loss_of(const experiment::Experiment& experiment) {
  return experiment.task.as<experiment::TextClassificationOptions>().loss;
}

// The configuration of the teacher's run.
experiment::Experiment experiment_of_label_teacher(const std::string& directory) {
  const std::string where = (std::filesystem::path(directory) / "config.toml").string();
  auto loaded =
      experiment::load_stored_experiment(experiment::read_run_config(directory), where, {});
  if (loaded.options.task.name() == experiment::TextClassificationOptions::kName) {
    return std::move(loaded.options);
  }
  throw Error(ExitCode::kUsage,
              "loss.teacher: " + directory + " is a model of " + loaded.options.task.name(),
              "name the run folder of a model of text_classification");
}

void require_same_reading(const experiment::Experiment& teacher,
                          const experiment::Experiment& student) {
  const auto theirs = experiment::encoder_sections(teacher);
  const int64_t longest = experiment::text_sections(student).max_text_tokens;
  if (theirs.max_length < longest) {
    throw Error(ExitCode::kUsage,
                "loss.teacher: its model has " + counted(theirs.max_length, "learned position") +
                    ", and texts may have " + counted(longest, "token"),
                "set data.max_text_tokens = " + std::to_string(theirs.max_length));
  }
  const int64_t own = experiment::encoder_sections(student).num_segments;
  if ((theirs.num_segments > 0) == (own > 0)) return;
  throw Error(ExitCode::kUsage,
              "loss.teacher: its model has vectors for " + counted(theirs.num_segments, "segment") +
                  ", and the student for " + std::to_string(own),
              "set model.num_segments = " + std::to_string(theirs.num_segments));
}

// What both have to have: tokenizer and labels.
void require_same_assets(const Assets& teacher, const Assets& student,
                         const std::string& directory) {
  for (const auto& [name, bytes] : student) {
    const auto theirs = teacher.find(name);
    if (theirs != teacher.end() && theirs->second == bytes) continue;
    const bool labels = name == kLabelsAsset;
    throw Error(ExitCode::kUsage,
                "loss.teacher: " + directory + " has " +
                    (labels ? "other labels than the student, or another order of them"
                            : "another vocabulary than the student"),
                labels ? "list the teacher's labels in data.labels, in the order of its " +
                             std::string(kLabelsAsset)
                       : "leave the tokenizer's files out of the student's configuration: it then "
                         "takes the teacher's");
  }
}

// x [n, D] -> [heads, n, n], fp32 or fp64
at::Tensor log_relations(const at::Tensor& x, int64_t heads) {
  const at::Tensor real = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const int64_t width = x.size(1) / heads;
  const at::Tensor parts = real.reshape({x.size(0), heads, width}).transpose(0, 1);
  const double scale = std::sqrt(static_cast<double>(width));
  return at::log_softmax(at::matmul(parts, parts.transpose(1, 2)) / scale, 2);
}

LabelPass pass_with_rows(models::TextModel& model, const train::Prepared& texts,
                         const models::ForwardContext& context) {
  const auto& head = model.labels();
  LabelPass pass;
  pass.rows = model.encode(texts.rows(), context);
  pass.logits = head.logits(head.pooled(pass.rows, texts.rows(), context));
  return pass;
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

at::Tensor relation_divergence(const at::Tensor& rows, const at::Tensor& teacher,
                               const data::PackedTokens& texts, int64_t heads) {
  std::vector<at::Tensor> each;
  for (int64_t i = 0; i < texts.num_sequences(); ++i) {
    const int64_t begin = texts.offsets[static_cast<size_t>(i)], end = begin + texts.length(i);
    const at::Tensor log_p = log_relations(rows.slice(0, begin, end), heads);
    const at::Tensor log_q =
        log_relations(teacher.slice(0, begin, end), heads).to(log_p.scalar_type());
    each.push_back((log_q.exp() * (log_q - log_p)).sum(2).mean());
  }
  return at::stack(each);
}

at::Tensor attention_divergence(const nn::AttentionRows& attention,
                                const nn::AttentionRows& teacher, const data::PackedTokens& texts) {
  const int64_t heads = std::gcd(attention.num_heads, teacher.num_heads);
  const int64_t kv_heads = std::gcd(attention.num_kv_heads, teacher.num_kv_heads);
  return (relation_divergence(attention.queries, teacher.queries, texts, heads) +
          relation_divergence(attention.keys, teacher.keys, texts, kv_heads) +
          relation_divergence(attention.values, teacher.values, texts, kv_heads)) /
         3;
}

LabelPass label_pass(models::TextModel& model, const train::Prepared& texts,
                     const models::ForwardContext& context, PassParts parts) {
  nn::AttentionRows attention;
  LabelPass pass;
  {
    std::optional<nn::AttentionRecordScope> recording;
    if (parts.attention) recording.emplace(attention);
    if (parts.rows) {
      pass = pass_with_rows(model, texts, context);
    } else {
      pass.logits = label_logits(model, texts, context);
    }
  }
  if (parts.attention && !attention.queries.defined()) {
    throw Error(ExitCode::kUsage,
                "loss.teacher_attention: one of both models has no layer of attention",
                "set loss.teacher_attention = 0");
  }
  pass.attention = std::move(attention);
  return pass;
}

LabelTeacher::LabelTeacher(const experiment::Experiment& student, const Assets& assets,
                           const HeadOfRun& head, at::Device device)
    : weight_(label_loss_of(student).teacher_weight),
      temperature_(label_loss_of(student).teacher_temperature),
      hidden_(label_loss_of(student).teacher_hidden),
      attention_(label_loss_of(student).teacher_attention) {
  const auto& loss = label_loss_of(student);
  const auto teacher = experiment_of_label_teacher(loss.teacher);
  require_same_reading(teacher, student);
  auto run = load_text_run(teacher, runs::RunFolder::open(loss.teacher), loss.teacher_checkpoint,
                           head, device);
  require_same_assets(run.assets, assets, loss.teacher);
  models_ = std::move(run.models);
  for (const auto& model : models_) {
    model->eval();
    if (hidden_ <= 0 || !model->labels().reads_states()) continue;
    throw Error(ExitCode::kUsage,
                "loss.teacher_hidden: the teacher's labels are read from the states of its stack "
                "(model.pooling = \"state\"), and not from rows",
                "set loss.teacher_hidden = 0");
  }
}

at::Tensor LabelTeacher::losses(const LabelOutputs& outputs, const train::Prepared& batch,
                                const LabelPass& student, const models::LabelLosses& own) const {
  std::vector<LabelPass> passes;
  std::vector<at::Tensor> logits;
  {
    const at::NoGradGuard no_grad;
    for (const auto& model : models_) {
      passes.push_back(label_pass(*model, batch, {}, parts()));
      logits.push_back(passes.back().logits);
    }
  }
  at::Tensor divergence =
      label_divergence(outputs.target(), student.logits, outputs.mean_logits(logits), temperature_);
  const auto& texts = data::tokens(batch);
  const auto share = 1 / static_cast<double>(passes.size());
  for (const auto& pass : passes) {
    if (parts().rows) {
      divergence =
          divergence + hidden_ * share * relation_divergence(student.rows, pass.rows, texts);
    }
    if (parts().attention) {
      divergence = divergence + attention_ * share *
                                    attention_divergence(student.attention, pass.attention, texts);
    }
  }
  return (1 - weight_) * own.each + weight_ * own.weight * divergence;
}

Assets tokenizer_of_label_teacher(const experiment::Experiment& student) {
  const std::string& directory = label_loss_of(student).teacher;
  const auto teacher = experiment_of_label_teacher(directory);
  auto tokenizer = load_tokenizer(teacher, assets_of(runs::RunFolder::open(directory)));
  log::info("tokenizer of " + directory + ", the teacher");
  return std::move(tokenizer.assets);
}

}  // namespace stretto::tasks
