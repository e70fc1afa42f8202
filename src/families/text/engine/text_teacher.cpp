#include "families/text/engine/text_teacher.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/text/encoder_sections.h"
#include "families/text/text_sections.h"

namespace stretto::tasks {
namespace {

// x [n, D] -> [heads, n, n], fp32 or fp64
at::Tensor log_relations(const at::Tensor& x, int64_t heads) {
  const at::Tensor real = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  const int64_t width = x.size(1) / heads;
  const at::Tensor parts = real.reshape({x.size(0), heads, width}).transpose(0, 1);
  const double scale = std::sqrt(static_cast<double>(width));
  return at::log_softmax(at::matmul(parts, parts.transpose(1, 2)) / scale, 2);
}

void require_attention(const TextPass& pass) {
  if (pass.attention.queries.defined()) return;
  throw Error(ExitCode::kUsage,
              "loss.teacher_attention: one of both models has no layer of attention",
              "set loss.teacher_attention = 0");
}

}  // namespace

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

at::Tensor parts_divergence(const TextPass& student, const std::vector<TextPass>& teachers,
                            const PartWeights& weights, const data::PackedTokens& texts) {
  at::Tensor sum;
  const auto add = [&](double weight, const at::Tensor& divergence) {
    const at::Tensor one = weight / static_cast<double>(teachers.size()) * divergence;
    sum = sum.defined() ? sum + one : one;
  };
  const PassParts parts = weights.parts();
  if (parts.attention) require_attention(student);
  for (const TextPass& teacher : teachers) {
    if (parts.rows) add(weights.rows, relation_divergence(student.rows, teacher.rows, texts));
    if (!parts.attention) continue;
    require_attention(teacher);
    add(weights.attention, attention_divergence(student.attention, teacher.attention, texts));
  }
  return sum;
}

experiment::Experiment experiment_of_text_teacher(const std::string& directory,
                                                  const experiment::Experiment& student) {
  const std::string where = (std::filesystem::path(directory) / "config.toml").string();
  auto loaded =
      experiment::load_stored_experiment(experiment::read_run_config(directory), where, {});
  const std::string theirs = loaded.options.task.name(), own = student.task.name();
  if (theirs == own) return std::move(loaded.options);
  throw Error(ExitCode::kUsage, "loss.teacher: " + directory + " is a model of " + theirs,
              "name the run folder of a model of " + own);
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

void require_same_vocabulary(const Assets& teacher, const Assets& files,
                             const std::string& directory) {
  for (const auto& [name, bytes] : files) {
    const auto theirs = teacher.find(name);
    if (theirs != teacher.end() && theirs->second == bytes) continue;
    throw Error(ExitCode::kUsage,
                "loss.teacher: " + directory + " has another vocabulary than the student",
                "leave the tokenizer's files out of the student's configuration: it then takes "
                "the teacher's");
  }
}

}  // namespace stretto::tasks
