#include "tasks/checkpoint_experiment.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "runs/choose_checkpoint.h"
#include "runs/provenance.h"
#include "tasks/registry.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& checkpoint, const runs::RunFolder& run) {
  std::error_code error;
  const fs::path place = runs::run_of(checkpoint);
  return !place.empty() && fs::equivalent(place, run.directory(), error);
}

bool is_of_configuration(const store::LoadedCheckpoint& checkpoint, const runs::RunFolder& run) {
  const auto& hashes = run.config_hashes();
  return std::find(hashes.begin(), hashes.end(), checkpoint.config_hash) != hashes.end();
}

[[noreturn]] void throw_other_tokenizer(const fs::path& place, const std::string& difference,
                                        const runs::RunFolder& run) {
  const std::string what = runs::what_differs(difference);
  const std::string found = place.string() + " has another " + what + " than " +
                            run.directory().string() + " (" + difference + ")";
  if (what != "tokenizer") {
    throw Error(
        ExitCode::kBadData, found + ", so that its outputs mean something else",
        "use it with its own run folder; runs that are to predict together need the same " + what);
  }
  throw Error(ExitCode::kBadData, found + ", so that its ids stand for other pieces",
              "use it with its own run folder; runs that are to decode together need one tokenizer "
              "(tokenizer.model of one in the configuration of the other)");
}

void require_tokenizer_of(const store::LoadedCheckpoint& checkpoint, const fs::path& place,
                          const runs::RunFolder& run) {
  const auto own = runs::tokenizer_hashes(run.read_assets());
  std::string difference = runs::tokenizer_difference(checkpoint, own);
  if (!difference.empty()) throw_other_tokenizer(checkpoint.directory, difference, run);
  // Early checkpoints do not say what they were trained with.
  const auto other = runs::tokenizer_hashes(runs::RunFolder::open(place).read_assets());
  difference = runs::tokenizer_difference(other, own);
  if (!difference.empty()) throw_other_tokenizer(place, difference, run);
}

}  // namespace

experiment::Experiment checkpoint_experiment(const store::LoadedCheckpoint& checkpoint,
                                             const runs::RunFolder& run,
                                             const experiment::Experiment& own) {
  if (lies_in(checkpoint.directory, run)) return own;
  const fs::path place = runs::run_of(checkpoint.directory);
  if (place.empty()) {
    if (checkpoint.run_id == run.run_id() || is_of_configuration(checkpoint, run)) return own;
    throw Error(ExitCode::kUsage,
                checkpoint.directory.string() + " is of run " + printable(checkpoint.run_id) +
                    ", and nothing beside it describes its model",
                "leave it in its run folder, beside config.toml and run.json, and give its path "
                "there");
  }
  require_tokenizer_of(checkpoint, place, run);
  const auto other = experiment::load_stored_experiment(experiment::read_run_config(place),
                                                        (place / "config.toml").string(), {});
  family_of(own).require_room(place, other.options, own);
  return other.options;
}

void require_same_model(const store::LoadedCheckpoint& checkpoint,
                        const experiment::Experiment& described,
                        const experiment::Experiment& own) {
  experiment::Experiment theirs = described, ours = own;
  auto schema = experiment::experiment_schema(ours);
  const auto is_elsewhere = [](const auto& declared) {
    return !declared.path.starts_with("model.");
  };
  std::erase_if(schema.keys, is_elsewhere);
  std::erase_if(schema.lists, is_elsewhere);
  std::vector<std::string> keys;
  for (const auto& key : schema.keys) keys.push_back(key.path);
  auto lines = config::differences(experiment::experiment_schema(theirs), schema, keys,
                                   {.stored = "in the checkpoint", .now = "in the run"});
  if (lines.empty()) return;
  throw Error(
      ExitCode::kBadData,
      checkpoint.directory.string() + " has another model than the run:\n  " + join(lines, "\n  "),
      "only weights of one architecture have a mean; `--checkpoint A,B` of infer and eval "
      "decodes with several");
}

std::string name_of(const fs::path& checkpoint, const runs::RunFolder& run) {
  return lies_in(checkpoint, run) ? checkpoint.filename().string() : checkpoint.string();
}

}  // namespace stretto::tasks
