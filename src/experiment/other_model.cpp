#include "experiment/other_model.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "config/paths.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/task_rules.h"
#include "store/checkpoint.h"
#include "store/quantised_file.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.toml";

Experiment stored_options(const fs::path& run) {
  const log::Silence silence;  // whoever opens the weights warns
  return load_stored_experiment(read_run_config(run), (run / kConfigFile).string(), {}).options;
}

// The folder itself, or the run whose checkpoints it is in; empty = neither is a run.
fs::path run_of_path(const std::string& path) {
  fs::path folder = fs::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a slash at its end
  std::error_code ignored;
  if (fs::is_regular_file(folder / kConfigFile, ignored)) return folder;
  const fs::path place = folder.parent_path();
  const fs::path run = place.parent_path();
  const bool lies_in_run =
      place.filename() == "checkpoints" && fs::is_regular_file(run / kConfigFile, ignored);
  return lies_in_run ? run : fs::path();
}

// The names in the newest checkpoint: all checkpoints of a run have the same.
std::vector<std::string> tensor_names_of(const fs::path& run) {
  const store::CheckpointStore checkpoints(run);
  const auto steps = checkpoints.steps();
  if (steps.empty()) return {};
  const fs::path path = checkpoints.path_of(steps.back()) / "model.safetensors";
  return store::names_of_tensors(store::SafetensorsFile(path), path.string());
}

// The run that goes on, if it began from the same weights.
std::optional<OtherModel> own_model(const Experiment& own, const fs::path& run) {
  if (run.empty() || store::CheckpointStore(run).steps().empty()) return std::nullopt;
  OtherModel found{
      .options = stored_options(run), .tensors = {}, .name = run.string(), .is_own = true};
  const bool is_same = found.options.train.init_from == own.train.init_from &&
                       found.options.task.name() == own.task.name();
  return is_same ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<OtherModel> model_of_run(const Experiment& own, const fs::path& run) {
  OtherModel found{.options = stored_options(run), .tensors = {}, .name = run.string()};
  if (!own.train.init_only.empty()) found.tensors = tensor_names_of(run);
  return found;
}

template <class Read>
std::optional<OtherModel> where_readable(const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Sections in the order of their first keys, so that a list's entry stands above its own sections.
std::string text_of(const std::vector<TakenValue>& values, const config::Schema& theirs) {
  std::vector<std::pair<std::string, std::string>> sections;  // path and lines
  for (const auto& value : values) {
    const std::string path = config::section_above(value.key);
    auto place = std::find_if(sections.begin(), sections.end(),
                              [&](const auto& section) { return section.first == path; });
    if (place == sections.end()) place = sections.insert(place, {path, ""});
    place->second += value.key.substr(path.size() + 1) + " = " + value.value + "\n";
  }
  std::string text;
  for (const auto& [path, lines] : sections) {
    const auto* section = theirs.find_section(path);
    text += (section == nullptr ? "[" + path + "]" : theirs.header(*section)) + "\n" + lines;
  }
  return text;
}

}  // namespace

std::optional<OtherModel> find_other_model(const Experiment& own, const ReadContext& read_context) {
  const auto& from = own.train.init_from;
  if (from.empty()) return std::nullopt;
  if (auto found = where_readable([&] { return own_model(own, read_context.run_directory); })) {
    return found;
  }
  const fs::path run = run_of_path(from);
  return where_readable([&]() -> std::optional<OtherModel> {
    if (!run.empty()) return model_of_run(own, run);
    return read_context.describe ? read_context.describe(from, own) : std::nullopt;
  });
}

config::InheritedValues inherited_values(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given) {
  const TaskRules* task = find_task_rules(own);
  if (task == nullptr) return {};
  auto values = task->values_of_other_model(other, own, given);
  std::erase_if(values, [&](const TakenValue& value) { return given.given(value.key); });
  Experiment theirs = other.options;
  return {.toml = text_of(values, experiment_schema(theirs)), .name = other.name};
}

std::string taken_text(const Experiment& options, const config::Origins& origins,
                       const OtherModel& other) {
  constexpr size_t kMostListed = 24;
  Experiment own = options;
  const std::string model = "model.";
  size_t num_taken = 0;  // of the model
  std::vector<std::string> values;
  const auto schema = experiment_schema(own);
  const auto changed = changed_keys(options, [&](const std::string& key) {
    const bool is_taken = origins.taken(key);
    num_taken += is_taken && key.starts_with(model) ? 1 : 0;
    return is_taken;
  });
  if (num_taken == 0 && changed.empty()) return "";
  for (const auto& key : changed) {
    const std::string shown = key.starts_with(model) ? key.substr(model.size()) : key;
    values.push_back(shown + " = " + config::value_text(schema.find(key)->value));
  }
  if (values.size() > kMostListed) {
    const size_t more = values.size() - kMostListed;
    values.resize(kMostListed);
    values.push_back("and " + std::to_string(more) + " more");
  }
  const std::string what = "keys of [model] that are not given are those of " + other.name + ": ";
  return what + (values.empty() ? "all have their defaults" : join(values, ", "));
}

}  // namespace stretto::experiment
