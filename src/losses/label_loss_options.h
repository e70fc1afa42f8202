#pragma once

#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::losses {

/// `[loss]` of labels. What is minimised follows from the data: cross entropy of one label, binary
/// cross entropy of several (data.label_separator), the squared error of a number
/// (data.label_kind).
struct LabelLossOptions {
  double label_smoothing = 0;
  std::string class_weights = "none";
  std::vector<double> class_weight_list;
  std::string teacher, teacher_checkpoint;
  double teacher_weight = 0.5, teacher_temperature = 1, teacher_hidden = 0, teacher_attention = 0;

  bool has_teacher() const { return !teacher.empty(); }

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
        field(
            &O::teacher, "teacher",
            "run folder of a model whose predictions training learns beside the labels. Both have "
            "one vocabulary, which a student without a tokenizer of its own takes, and the same "
            "labels",
            any(), {.is_path = true})
            .also_called({"teacher_path", "teacher_model", "distill_from"}),
        field(&O::teacher_checkpoint, "teacher_checkpoint",
              "of the teacher: best, last, a step, a name, or several with commas, whose mean is "
              "learned; empty = best"),
        field(&O::teacher_weight, "teacher_weight",
              "share of the divergence from the teacher in the loss; the rest is the loss of the "
              "labels",
              between(0, 1))
            .also_called({"distill_alpha", "kd_alpha", "alpha_kd"}),
        field(&O::teacher_temperature, "teacher_temperature",
              "what the logits of both are divided by in the divergence", greater(0))
            .also_called({"distill_temperature", "kd_temperature", "kd_temp"}),
        field(
            &O::teacher_hidden, "teacher_hidden",
            "weight, beside the divergence from the teacher, of how otherwise the last hidden rows "
            "of a text relate to each other (as in MiniLMv2); widths may differ. 0 = off",
            at_least(0)),
        field(
            &O::teacher_attention, "teacher_attention",
            "the same of the queries, keys and values of the last layer's attention, head by head "
            "as far as the numbers of heads have a common divisor. 0 = off",
            at_least(0)),
    };
  }
};

}  // namespace stretto::losses
