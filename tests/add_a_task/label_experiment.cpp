#include "tests/add_a_task/label_experiment.h"

#include "base/hash.h"
#include "config/resolved.h"
#include "tests/add_a_task/label_rules.h"

namespace stretto::experiment {
namespace {

/// Experiment, with another list of families.
struct Root {
  train::RunOptions run;
  config::Choice<TextClassificationOptions, LabellingOptions> task;
  optim::OptimOptions optim;
  optim::ScheduleOptions schedule;
  train::TrainOptions train;
  distributed::DistOptions dist;
  EvalOptions eval;
  report::ReportOptions report;

  static auto fields() {
    using config::field;
    return config::Fields{
        field(&Root::run, "run", "what every experiment has"),
        field(&Root::task, "task", "what is learned").with_parts_beside(),
        field(&Root::optim, "optim", "how weights change"),
        field(&Root::schedule, "schedule", "learning rate over updates"),
        field(&Root::train, "train", "length of the run, accumulation, checkpoints"),
        field(&Root::dist, "dist", "processes that train together"),
        field(&Root::eval, "eval", "validation while training"),
        field(&Root::report, "report", "what people look at"),
    };
  }
};

LabellingOptions& sections() {
  static LabellingOptions sections;
  return sections;
}

}  // namespace

const LabellingOptions& labelling_of(const Experiment& /*experiment*/) {
  return sections();
}
LabellingOptions& labelling_of(Experiment& /*experiment*/) {
  return sections();
}

LoadedExperiment load_label_experiment(const std::filesystem::path& path,
                                       const std::vector<std::string>& overrides) {
  Root root, fallback;
  LoadedExperiment loaded;
  std::vector<config::Problem> problems;
  loaded.origins = config::load_file(path, overrides, config::schema_of(root),
                                     config::schema_of(fallback), problems);
  config::throw_problems(problems);
  sections() = root.task.as<LabellingOptions>();
  auto& options = loaded.options;
  options.run = root.run;
  options.optim = root.optim;
  options.schedule = root.schedule;
  options.train = root.train;
  options.dist = root.dist;
  options.eval = root.eval;
  options.report = root.report;
  const config::Schema schema = config::schema_of(root), defaults = config::schema_of(fallback);
  problems = missing_files(schema, loaded.origins, {});
  check_rules(options, loaded.origins, &label_rules(), problems);
  config::throw_problems(problems);
  loaded.resolved_toml = config::to_toml(schema, &defaults);
  loaded.config_hash = hex64(config::fixed_hash(schema, {}));
  return loaded;
}

}  // namespace stretto::experiment
