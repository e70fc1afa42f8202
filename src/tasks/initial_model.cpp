#include "tasks/initial_model.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/task_rules.h"
#include "families/text/encoder_sections.h"
#include "store/quantised_file.h"

namespace stretto::tasks {
namespace {

// "model.encoder.num_heads: 4 there (model.encoders.1.num_heads), 8 here"
std::string difference_text(const experiment::ModelDifference& difference) {
  const bool renamed = difference.key_there != difference.key;
  return difference.key + ": " + difference.theirs + " there" +
         (renamed ? " (" + difference.key_there + ")" : "") + ", " + difference.own + " here";
}

}  // namespace

InitialModel::InitialModel(const runs::InitialRun& run)
    : folder_(run.folder), place_(run.place()), is_imported_(!run.config.empty()) {
  const auto path = folder_ / "config.toml";
  if (folder_.empty() || (!is_imported_ && !std::filesystem::exists(path))) return;
  for (const auto& [stem, file] : run.checkpoint.files) {
    if (stem != "model") continue;
    tensors_ = store::names_of_tensors(file, run.weights_file());
  }
  try {
    options_ =
        experiment::load_stored_experiment(
            is_imported_ ? run.config : experiment::read_run_config(folder_), path.string(), {})
            .options;
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

std::string InitialModel::differences(const experiment::Experiment& own) const {
  const auto* rules = experiment::find_task_rules(own);
  if (rules == nullptr || !options_) return "";
  std::vector<std::string> lines;
  for (const auto& difference : rules->hidden_differences(*options_, own, tensors_)) {
    lines.push_back(difference_text(difference));
  }
  return join(lines, "; ");
}

void InitialModel::require_alike(const experiment::Experiment& own) const {
  if (!problem_.empty()) {
    log::warn("train.init_from: the [model] of " + folder_.string() +
              " is not compared with this one: " + problem_);
  }
  const std::string found = differences(own);
  if (found.empty()) return;
  const std::string what =
      "train.init_from: the weights of " + place_.string() + " belong to another model: " + found;
  if (!own.train.init_only.empty()) return log::warn(what);
  const std::string advice = is_imported_
                                 ? "leave these keys out: they then have the values of that folder"
                                 : "give [model] the values of that run (its config.toml)";
  throw Error(ExitCode::kUsage, what,
              advice + "; train.init_only takes the tensors that it names all the same");
}

void InitialModel::explain_misfit(const experiment::Experiment& own,
                                  const std::function<void()>& look) const {
  try {
    look();
  } catch (const Error& error) {
    const bool is_warned_of = error.code() == ExitCode::kBadData && !own.train.init_only.empty();
    const std::string found = is_warned_of ? differences(own) : "";
    if (found.empty()) throw;
    throw Error(error.code(), error.what(), error.advice() + "; the models differ in " + found,
                error.details());
  }
}

bool InitialModel::has_another_head(const experiment::Experiment& own) const {
  if (!options_ || options_->task.name() == own.task.name()) return false;
  const auto sections = experiment::find_encoder_sections(*options_);
  return sections && sections->has_head;
}

}  // namespace stretto::tasks
