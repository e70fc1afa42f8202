#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compress/compress_options.h"
#include "config/field.h"
#include "config/open_choice.h"
#include "distributed/dist_options.h"
#include "experiment/eval_options.h"
#include "optim/optim_options.h"
#include "report/report_options.h"
#include "train/run_options.h"
#include "train/train_options.h"

namespace stretto::experiment {

/// One of the families of tasks, with the sections that it reads: `[data]`, `[model]` and the like.
/// The families are those of experiment/family_spec.h.
class TaskChoice : public config::OpenChoice {
 public:
  TaskChoice();
  using OpenChoice::operator=;

  static std::vector<std::string> names();               ///< values of `task.name`
  static std::vector<config::OtherValue> other_names();  ///< what other toolkits call these

 private:
  static Alternatives listed();
};

/// One configuration file: every section with its defaults.
struct Experiment {
  train::RunOptions run;
  TaskChoice task;
  optim::OptimOptions optim;
  optim::ScheduleOptions schedule;
  train::TrainOptions train;
  compress::CompressOptions compress;
  distributed::DistOptions dist;
  EvalOptions eval;
  report::ReportOptions report;

  static auto fields() {
    using config::field;
    using E = Experiment;
    auto task = field(&E::task, "task", "what is learned").with_parts_beside();
    task.other_values = TaskChoice::other_names();
    return config::Fields{
        field(&E::run, "run", "what every experiment has").also_called({"common"}),
        std::move(task),
        field(&E::optim, "optim", "how weights change"),
        field(&E::schedule, "schedule", "learning rate over updates")
            .also_called({"lr_schedule", "lr_scheduler", "scheduler"}),
        field(&E::train, "train", "length of the run, accumulation, checkpoints")
            .also_called({"trainer", "training_args", "training_arguments", "checkpoint"}),
        field(&E::compress, "compress", "what training does for a small model"),
        field(&E::dist, "dist", "processes that train together")
            .also_called({"distributed", "distributed_training", "parallel", "ddp"}),
        field(&E::eval, "eval", "validation while training")
            .also_called({"validation", "valid", "evaluation", "dev"}),
        field(&E::report, "report", "what people look at")
            .also_called({"logging", "log", "tensorboard"}),
    };
  }
};

/// Whether processes may share a micro-batch (data::RankBatches::cut). Its parts make the same
/// update but for rounding; with batch norm another one, and a state of lanes stays whole.
bool may_cut_micro_batches(const Experiment& experiment);

}  // namespace stretto::experiment
