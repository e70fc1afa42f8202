#pragma once

#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "store/run_record.h"
#include "tests/base/temp_dir.h"
#include "train/trainer.h"

namespace stretto::tasks {

/// Gives the run `teacher` of `folder` the configuration that later commands read, and `loss`, that
/// of a student, its place.
template <class LossOptions>
void make_teacher(const testing::TempDir& folder, experiment::Experiment options,
                  const train::TrainerSetup& setup, LossOptions& loss) {
  options.train.max_steps = 5000;
  folder.write("teacher/config.toml",
               store::seal_config(config::to_toml(experiment::experiment_schema(options)),
                                  setup.identity.run_id));
  loss.teacher = (folder / "teacher").string();
  loss.teacher_checkpoint = "last";
}

}  // namespace stretto::tasks
