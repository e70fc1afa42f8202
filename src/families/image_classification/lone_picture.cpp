#include "families/image_classification/lone_picture.h"

#include "base/error.h"
#include "base/text.h"
#include "families/image_classification/image_classification_options.h"

namespace stretto::experiment {

bool normalises_micro_batches(const Experiment& experiment) {
  const bool may_freeze = !experiment.train.freeze.empty() || !experiment.train.unfreeze.empty();
  return models::has_batch_norm(images_of(experiment).model) && !may_freeze &&
         experiment.dist.batch_norm != "all";
}

void require_no_lone_picture(const Experiment& experiment, const data::BatchSource& batches,
                             int64_t pictures) {
  if (!normalises_micro_batches(experiment)) return;
  const int64_t last = batches.num_batches() - 1;
  if (batches.sample_ids(/*epoch=*/0, last).size() > 1) return;
  throw Error(ExitCode::kUsage,
              "data.max_samples: the last micro-batch of an epoch of " +
                  counted(pictures, "picture") +
                  " has one picture, of which batch norm has no variance",
              "set data.drop_last = true, or another data.max_samples");
}

}  // namespace stretto::experiment
