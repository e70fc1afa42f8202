#pragma once

#include "losses/teacher_options.h"

namespace stretto::losses {

/// `[loss]` of masked language models: the cross entropy of hidden tokens, and what a teacher adds.
struct MaskedTokenLossOptions : TextTeacherOptions {
  using Inherited = TextTeacherOptions;

  static auto fields() {
    return teacher_fields(
        {.run = "run folder of a masked language model whose probabilities training learns beside "
                "the hidden tokens. Both have one vocabulary: a student without a tokenizer of its "
                "own takes the teacher's",
         .learned = "whose mean probabilities are learned",
         .own = "the cross entropy of the hidden tokens"});
  }
};

}  // namespace stretto::losses
