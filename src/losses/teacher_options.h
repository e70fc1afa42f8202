#pragma once

#include <string>

#include "config/field.h"

namespace stretto::losses {

/// What a `[loss]` says of its teacher in `describe`.
struct TeacherWords {
  const char* run;      ///< which run it names, and what student and teacher have in common
  const char* learned;  ///< of several checkpoints: "whose mean probabilities are learned"
  const char* own;      ///< the other share of the loss: "the loss of the labels"
};

/// Keys of `[loss]` for a student (knowledge distillation, Hinton et al. 2015, arXiv:1503.02531).
struct TeacherOptions {
  std::string teacher, teacher_checkpoint;
  double teacher_weight = 0.5, teacher_temperature = 1;

  bool has_teacher() const { return !teacher.empty(); }
  /// For a task that trains nothing.
  void clear_teacher() { teacher.clear(); }

  static auto teacher_fields(const TeacherWords& words) {
    using namespace config;
    using O = TeacherOptions;
    return Fields{
        field(&O::teacher, "teacher", words.run, any(), {.is_path = true})
            .also_called({"teacher_path", "teacher_model", "distill_from"}),
        field(&O::teacher_checkpoint, "teacher_checkpoint",
              "of the teacher: best, last, a step, a name, or several with commas, " +
                  std::string(words.learned) + "; empty = best"),
        field(&O::teacher_weight, "teacher_weight",
              "share of the divergence from the teacher in the loss; the rest is " +
                  std::string(words.own),
              between(0, 1))
            .also_called({"distill_alpha", "kd_alpha", "alpha_kd"}),
        field(&O::teacher_temperature, "teacher_temperature",
              "what the logits of both are divided by in the divergence", greater(0))
            .also_called({"distill_temperature", "kd_temperature", "kd_temp"}),
    };
  }
};

/// The same of a stack of text, which may learn its teacher's inner rows too.
struct TextTeacherOptions : TeacherOptions {
  using Inherited = TeacherOptions;

  double teacher_hidden = 0, teacher_attention = 0;

  void clear_teacher() {
    TeacherOptions::clear_teacher();
    teacher_hidden = teacher_attention = 0;
  }

  static auto teacher_fields(const TeacherWords& words) {
    using namespace config;
    using O = TextTeacherOptions;
    return TeacherOptions::teacher_fields(words).with(Fields{
        field(&O::teacher_hidden, "teacher_hidden",
              "weight, beside the divergence from the teacher, of how otherwise the last hidden "
              "rows of a text relate to each other (as in MiniLMv2); widths may differ. 0 = off",
              at_least(0)),
        field(&O::teacher_attention, "teacher_attention",
              "the same of the queries, keys and values of the last layer's attention, head by "
              "head as far as the numbers of heads have a common divisor. 0 = off",
              at_least(0)),
    });
  }
};

}  // namespace stretto::losses
