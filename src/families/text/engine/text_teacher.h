#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "experiment/experiment.h"
#include "nn/attention_record.h"
#include "tasks/family.h"

/// What students on encoded texts learn from the inner rows of a teacher, whatever is read from
/// them. Shape letters: B texts, N tokens of all of them, D the width of a row.
namespace stretto::tasks {

/// What is asked for of a pass beside its output, and what it left.
struct PassParts {
  bool rows = false, attention = false;
};
struct TextPass {
  at::Tensor rows = {};              ///< of the last layer, [N, D]
  nn::AttentionRows attention = {};  ///< of the last layer
};

/// What both count in the loss of a text; 0 = nothing.
struct PartWeights {
  double rows = 0, attention = 0;

  PassParts parts() const { return {.rows = rows > 0, .attention = attention > 0}; }
};

/// How far the rows of a last layer relate to each other otherwise than those of a teacher do, [B],
/// differentiable in `rows`. The relations of row i of a text are softmax_j(<x_i, x_j> /
/// sqrt(width)), as those of MiniLMv2 (Wang et al. 2021, arXiv:2012.15828), so that widths may
/// differ. For each text the mean over its rows of KL(teacher || model).
/// @param rows, teacher  [N, D] and [N, D'], of the tokens of `texts`
/// @param heads  parts of equal width into which both are cut; the mean over them
at::Tensor relation_divergence(const at::Tensor& rows, const at::Tensor& teacher,
                               const data::PackedTokens& texts, int64_t heads = 1);

/// The mean of relation_divergence() of queries, keys and values, [B], of as many heads as the
/// numbers of heads of both have as their greatest common divisor.
at::Tensor attention_divergence(const nn::AttentionRows& attention,
                                const nn::AttentionRows& teacher, const data::PackedTokens& texts);

/// Both as they are weighed, [B]: the mean over the teachers. Undefined where both weights are 0.
/// Throws Error(kUsage) where attention is asked for and a model has none.
at::Tensor parts_divergence(const TextPass& student, const std::vector<TextPass>& teachers,
                            const PartWeights& weights, const data::PackedTokens& texts);

/// The configuration of the run that `loss.teacher` names. Throws Error(kUsage) unless its task is
/// that of the student.
experiment::Experiment experiment_of_text_teacher(const std::string& directory,
                                                  const experiment::Experiment& student);

/// Throws Error(kUsage) for a teacher that reads shorter texts or other segments.
void require_same_reading(const experiment::Experiment& teacher,
                          const experiment::Experiment& student);

/// Throws Error(kUsage) unless the teacher has these files, byte for byte.
void require_same_vocabulary(const Assets& teacher, const Assets& files,
                             const std::string& directory);

}  // namespace stretto::tasks
