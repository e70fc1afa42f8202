#pragma once

#include <string>
#include <vector>

#include "config/field.h"
#include "losses/teacher_options.h"

namespace stretto::losses {

/// `[loss]` of labels. What is minimised follows from the data: cross entropy of one label, binary
/// cross entropy of several (data.label_separator), the squared error of a number
/// (data.label_kind).
struct LabelLossOptions : TextTeacherOptions {
  using Inherited = TextTeacherOptions;

  double label_smoothing = 0;
  std::string class_weights = "none";
  std::vector<double> class_weight_list;

  static auto fields() {
    using namespace config;
    using O = LabelLossOptions;
    return Fields{
        field(&O::label_smoothing, "label_smoothing",
              "probability spread evenly over all other labels, of texts with one label",
              fraction())
            .also_called({"smoothing", "label_smoothing_factor", "label_smooth"}),
        field(
            &O::class_weights, "class_weights",
            "what the loss of a text is multiplied by. balanced: texts / (labels * texts with its "
            "label); list: loss.class_weight_list",
            one_of({"none", "balanced", "list"}))
            .also_called({"class_weight", "label_weights"}),
        field(&O::class_weight_list, "class_weight_list",
              "a weight for each label, in the order of data.labels, or else of their names",
              greater(0))
            .also_called({"class_weight_values"})
            .read_with("class_weights", {"list"}),
    }
        .with(teacher_fields({.run = "run folder of a model whose predictions training learns "
                                     "beside the labels. Both have one vocabulary, which a student "
                                     "without a tokenizer of its own takes, and the same labels",
                              .learned = "whose mean is learned",
                              .own = "the loss of the labels"}));
  }
};

}  // namespace stretto::losses
