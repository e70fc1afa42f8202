#pragma once

#include <memory>
#include <vector>

#include "families/masked_lm/engine/masked_model.h"
#include "families/text/engine/text_teacher.h"
#include "models/text_model.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// The models of the run that `loss.teacher` names, which see the same masked text as a student.
/// They are no part of it.
class MaskedTeacher {
 public:
  /// Throws Error(kUsage) for what is no run of masked_lm, for one with another tokenizer, and for
  /// a model that reads shorter texts or other segments; and as load_text_run() does.
  /// @param tokenizer  the files of the student's
  MaskedTeacher(const experiment::Experiment& student, const Assets& tokenizer, at::Device device);

  /// The sums of a batch, whose loss has the divergence from the teachers beside the student's own
  /// cross entropy, and of each text, as often as it has masked tokens, that of its inner rows.
  /// @param student  whose head has the teacher's weights (models/heads/masked_token.h)
  MaskedSums loss(models::TextModel& student, const train::Prepared& batch,
                  const models::ForwardContext& context) const;

 private:
  double weight_;
  PartWeights parts_;
  std::vector<std::shared_ptr<models::TextModel>> models_;
};

}  // namespace stretto::tasks
