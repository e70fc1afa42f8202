#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "experiment/family_spec.h"
#include "experiment/load_experiment.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/family.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::tasks {

struct FamilyTraining {
  int64_t updates = 0;
  double lr = 0.02;
  int64_t eval_every = 50;
};

/// What `stretto train` does with a family, in a run folder of its own.
inline train::TrainerSetup train_family(const Family& family,
                                        const experiment::LoadedExperiment& experiment,
                                        const std::filesystem::path& folder,
                                        const FamilyTraining& training) {
  const experiment::Experiment& options = experiment.options;
  auto run = runs::RunFolder::open_for_training(folder);
  run.write_config("# of the test", "hash");
  run.write_assets(family.first_assets(experiment));
  const auto task = family.make_task(options, run.read_assets(), {});
  task->require_known_data(/*warn=*/true);
  auto setup = train::test::toy_setup(run.directory());
  setup.train.max_steps = training.updates;
  setup.train.update_freq = options.train.update_freq;
  setup.train.init_from = options.train.init_from;
  setup.optim.lr = training.lr;
  setup.eval = {.every = training.eval_every, .best_metric = options.eval.best_metric};
  setup.identity = {.run_id = run.run_id(),
                    .config_hash = "hash",
                    .tokenizer = runs::tokenizer_hashes(task->assets())};
  setup.description.display = experiment::display_of(options);
  EXPECT_EQ(train::Trainer(*task, setup).run(), ExitCode::kOk);
  return setup;
}

}  // namespace stretto::tasks
