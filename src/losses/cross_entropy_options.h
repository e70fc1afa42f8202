#pragma once

#include <string>

#include "base/text.h"
#include "config/field.h"
#include "losses/teacher_options.h"

namespace stretto::losses {

/// `[loss]`
struct CrossEntropyOptions : TeacherOptions {
  using Inherited = TeacherOptions;

  std::string name = "cross_entropy";
  double label_smoothing = 0.1;
  double r_drop = 0;

  bool has_r_drop() const { return r_drop > 0; }

  /// What stands in the loss beside the negative log-likelihood: "label smoothing 0.1"; empty =
  /// nothing, the two are equal.
  std::string smoothing_words() const {
    return label_smoothing > 0 ? "label smoothing " + shortest(label_smoothing) : "";
  }
  /// The same of the loss of training: "label smoothing 0.1 and R-Drop 5".
  std::string training_words() const {
    if (has_teacher()) {
      const std::string own = smoothing_words();
      return (own.empty() ? "" : own + " and ") + "a teacher's probabilities";
    }
    if (!has_r_drop()) return smoothing_words();
    const std::string smoothing = smoothing_words();
    return (smoothing.empty() ? "" : smoothing + " and ") + "R-Drop " + shortest(r_drop);
  }

  static auto fields() {
    using namespace config;
    using O = CrossEntropyOptions;
    return Fields{
        field(&O::name, "name", "which loss", one_of({"cross_entropy"}))
            .also_called({"type", "criterion", "loss_type", "cost_type", "loss"})
            .value_also_called("cross_entropy", {"label_smoothed_cross_entropy"},
                               "with loss.label_smoothing")
            .value_also_called("cross_entropy",
                               {"ce", "ce_mean", "ce_sum", "nll", "nll_loss", "xent"}),
        field(&O::label_smoothing, "label_smoothing",
              "probability spread evenly over all other entries of the vocabulary", fraction())
            .also_called({"smoothing", "label_smoothing_factor", "label_smooth", "epsilon_ls"}),
        field(&O::r_drop, "r_drop",
              "alpha of R-Drop (Wu et al. 2021; 5 for translation); 0 = off. Training runs "
              "each micro-batch twice with other dropout. Per target token the loss is the "
              "mean cross entropy of both passes plus alpha / 4 times (KL(P || Q) + KL(Q || "
              "P)). This is half of the paper's loss",
              at_least(0))
            .also_called({"reg_alpha", "r_drop_alpha", "rdrop_alpha", "rdrop", "kl_alpha"}),
    }
        .with(teacher_fields({.run = "run folder of a model whose probabilities training learns "
                                     "beside the labels (word-level distillation). Both have one "
                                     "vocabulary: without [tokenizer], the student takes its",
                              .learned = "whose mean probabilities are learned",
                              .own = "the loss of the labels"}));
  }
};

}  // namespace stretto::losses
