#pragma once

#include <string>

#include "config/field.h"

namespace stretto::losses {

/// `[loss]` of masked language models: the cross entropy of hidden tokens, and what a teacher adds.
struct MaskedTokenLossOptions {
  std::string teacher, teacher_checkpoint;
  double teacher_weight = 0.5, teacher_temperature = 1, teacher_hidden = 0, teacher_attention = 0;

  bool has_teacher() const { return !teacher.empty(); }

  static auto fields() {
    using namespace config;
    using O = MaskedTokenLossOptions;
    return Fields{
        field(&O::teacher, "teacher",
              "run folder of a masked language model whose probabilities training learns beside "
              "the hidden tokens. Both have one vocabulary: a student without a tokenizer of its "
              "own takes the teacher's",
              any(), {.is_path = true})
            .also_called({"teacher_path", "teacher_model", "distill_from"}),
        field(&O::teacher_checkpoint, "teacher_checkpoint",
              "of the teacher: best, last, a step, a name, or several with commas, whose mean "
              "probabilities are learned; empty = best"),
        field(&O::teacher_weight, "teacher_weight",
              "share of the divergence from the teacher in the loss; the rest is the cross entropy "
              "of the hidden tokens",
              between(0, 1))
            .also_called({"distill_alpha", "kd_alpha", "alpha_kd"}),
        field(&O::teacher_temperature, "teacher_temperature",
              "what the logits of both are divided by in the divergence", greater(0))
            .also_called({"distill_temperature", "kd_temperature", "kd_temp"}),
        field(&O::teacher_hidden, "teacher_hidden",
              "weight, beside the divergence from the teacher, of how otherwise the last hidden "
              "rows of a text relate to each other (as in MiniLMv2); widths may differ. 0 = off",
              at_least(0)),
        field(&O::teacher_attention, "teacher_attention",
              "the same of the queries, keys and values of the last layer's attention, head by "
              "head as far as the numbers of heads have a common divisor. 0 = off",
              at_least(0)),
    };
  }
};

}  // namespace stretto::losses
