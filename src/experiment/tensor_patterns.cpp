#include "experiment/tensor_patterns.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include "base/text.h"
#include "experiment/experiment_schema.h"
#include "experiment/task_rules.h"
#include "experiment/tensor_keys.h"
#include "nn/init_rules.h"
#include "optim/frozen_names.h"
#include "runs/taken_names.h"

namespace stretto::experiment {
namespace {

/// Reads each entry by `read(entry, value)`; those that cannot be read are left out.
template <class Value, class Read>
std::vector<Value> readable_entries(const std::vector<std::string>& entries, const Read& read) {
  std::vector<Value> values;
  for (const std::string& entry : entries) {
    Value value;
    if (!read(entry, value)) values.push_back(value);
  }
  return values;
}

/// A problem for each entry that cannot be read.
template <class Value, class Read>
void note_unreadable(const char* key, const std::vector<std::string>& entries, const Read& read,
                     std::vector<PatternProblem>& problems) {
  for (const std::string& entry : entries) {
    Value value;
    if (const auto problem = read(entry, value)) {
      problems.push_back({key, problem->what, problem->hint});
    }
  }
}

void note(const char* key, const std::optional<optim::GroupProblem>& problem,
          std::vector<PatternProblem>& problems) {
  if (problem) problems.push_back({key, problem->what, problem->hint});
}

// Which rule each tensor has: a vector has no fan.
void note_vectors(std::span<const nn::InitRule> rules, std::span<const optim::TensorName> tensors,
                  std::vector<PatternProblem>& problems) {
  for (const nn::InitRule& rule : rules) {
    if (!nn::needs_matrix(rule.distribution)) continue;
    std::vector<std::string> vectors;
    for (const auto& tensor : tensors) {
      if (tensor.is_vector && nn::find_rule(rules, tensor.name) == &rule) {
        vectors.push_back("`" + tensor.name + "`");
      }
    }
    if (vectors.empty()) continue;
    problems.push_back({"model.init",
                        "`" + printable(rule.pattern) + "` reaches " +
                            counted(static_cast<int64_t>(vectors.size()), "vector") +
                            ", and its initialiser needs rows and columns: " + join(vectors, ", "),
                        "name matrices alone (\"*.weight\" matches gains of norms, too), or put a "
                        "rule for vectors before it: \"*.bias zeros\""});
  }
}

// For weight-normalised matrices, in which a row of zeros has no direction.
void note_normed(std::span<const nn::InitRule> rules, std::span<const optim::TensorName> tensors,
                 std::vector<PatternProblem>& problems) {
  constexpr std::string_view kWeight = "weight";
  for (const auto& tensor : tensors) {
    if (!tensor.name.ends_with(".weight")) continue;
    const nn::InitRule* rule = nn::find_rule(rules, tensor.name);
    const bool zeros =
        rule != nullptr && rule->distribution == nn::Distribution::kConstant && rule->number == 0;
    const std::string gain = tensor.name.substr(0, tensor.name.size() - kWeight.size()) + "gain";
    if (!zeros || !std::any_of(tensors.begin(), tensors.end(),
                               [&](const auto& other) { return other.name == gain; })) {
      continue;
    }
    problems.push_back(
        {"model.init",
         "`" + tensor.name + "` is weight-normalised, and rows of zeros have no direction",
         "put \"" + gain + " zeros\" before it: then the layer gives zeros"});
  }
}

void note_compressed(const compress::CompressOptions& options,
                     std::span<const optim::TensorName> tensors,
                     std::vector<PatternProblem>& problems) {
  const auto note_each = [&](const char* key, const std::vector<std::string>& patterns) {
    for (const auto& pattern : patterns) {
      note(key, optim::matches_nothing(pattern, tensors), problems);
    }
  };
  if (options.prune.prunes()) {
    note_each("compress.prune.tensors", options.prune.tensors);
    note_each("compress.prune.except", options.prune.except);
  }
  if (options.quantise.quantises()) {
    note_each("compress.quantise.tensors", options.quantise.tensors);
    note_each("compress.quantise.except", options.quantise.except);
  }
}

std::vector<std::string> init_rules(const Experiment& options) {
  const TaskRules* task = find_task_rules(options);
  return task == nullptr ? std::vector<std::string>{} : task->init_rules(options);
}

// A section of the family's that is on; else null.
template <class Section>
const Section* in_use(const Experiment& options,
                      const Section* (TaskRules::*section_of)(const Experiment&) const) {
  const TaskRules* task = find_task_rules(options);
  const Section* section = task == nullptr ? nullptr : (task->*section_of)(options);
  return section != nullptr && section->is_on() ? section : nullptr;
}

const nn::LoraOptions* lora_in_use(const Experiment& options) {
  return in_use(options, &TaskRules::lora);
}

const nn::AdapterOptions* adapter_in_use(const Experiment& options) {
  return in_use(options, &TaskRules::adapter);
}

// What tensors with this ending belong to: linear maps, or parts of a layer.
std::vector<optim::TensorName> owners_of(std::string_view ending,
                                         std::span<const optim::TensorName> tensors) {
  std::vector<optim::TensorName> owners;
  for (const auto& tensor : tensors) {
    if (!tensor.name.ends_with(ending)) continue;
    owners.push_back({tensor.name.substr(0, tensor.name.size() - ending.size())});
  }
  return owners;
}

// A list of patterns of places that have a tensor with this ending.
struct Places {
  const char* key;
  std::string_view ending;
  const char* called;  ///< "linear map"
};

// Each of the patterns must reach a place. The model itself says which there are: once more, with a
// pattern that reaches all of them.
void note_places(const Places& places, const std::vector<std::string>& patterns,
                 const Experiment& options, std::span<const optim::TensorName> tensors,
                 const TensorLister& lister, std::vector<PatternProblem>& problems) {
  const auto reached = owners_of(places.ending, tensors);
  std::vector<optim::TensorName> all;
  for (const auto& pattern : patterns) {
    if (!optim::matches_nothing(pattern, reached)) continue;
    if (all.empty() && lister) {
      Experiment everywhere = options;
      const auto schema = experiment_schema(everywhere);
      *std::get<std::vector<std::string>*>(schema.find(places.key)->value) = {"*"};
      all = owners_of(places.ending, lister(everywhere));
    }
    problems.push_back(
        {places.key, "`" + printable(pattern) + "` matches no " + places.called + " of this model",
         all.empty() ? "\"*\" is every one" : "names near it: " + optim::names_near(pattern, all)});
  }
}

}  // namespace

optim::TrainingPlan training_plan(const Experiment& options) {
  optim::TrainingPlan plan{.freeze = options.train.freeze,
                           .unfreeze = readable_entries<optim::LateStart>(options.train.unfreeze,
                                                                          optim::read_late_start)};
  if (const auto* lora = lora_in_use(options)) {
    plan.adding.push_back({"model.lora", lora->train_patterns(), &nn::is_lora});
  }
  if (const auto* adapter = adapter_in_use(options)) {
    plan.adding.push_back({"model.adapter", adapter->train_patterns(), &nn::is_adapter});
  }
  return plan;
}

std::vector<std::string> keys_that_name_tensors(const Experiment& options) {
  const auto& optim = options.optim;
  const auto& train = options.train;
  std::vector<std::string> keys;
  const auto add = [&](const char* key, bool is_given) {
    if (is_given) keys.emplace_back(key);
  };
  add("optim.groups", !optim.groups.empty());
  add("optim.no_decay", !optim.no_decay.empty());
  add("optim.lazy_tables", !optim.lazy_tables.empty());
  add("optim.muon_adam_tensors", !optim.muon_adam_tensors.empty());
  add("optim.weight_noise_tensors", !optim.weight_noise_tensors.empty());
  add("model.init", !init_rules(options).empty());
  add("model.lora.rank", lora_in_use(options) != nullptr);
  add("model.adapter.dim", adapter_in_use(options) != nullptr);
  add("optim.layer_decay", optim.layer_decay != 1);
  const auto& prune = options.compress.prune;
  const auto& quantise = options.compress.quantise;
  add("compress.prune.tensors", prune.prunes() && !prune.tensors.empty());
  add("compress.prune.except", prune.prunes() && !prune.except.empty());
  add("compress.quantise.tensors", quantise.quantises() && !quantise.tensors.empty());
  add("compress.quantise.except", quantise.quantises() && !quantise.except.empty());
  add("train.freeze", !train.freeze.empty());
  add("train.unfreeze", !train.unfreeze.empty());
  add("train.init_only", !train.init_only.empty());
  return keys;
}

bool names_tensors(const Experiment& options) {
  return !keys_that_name_tensors(options).empty();
}

Experiment without_init(Experiment options) {
  const auto schema = experiment_schema(options);
  if (const auto* key = schema.find("model.init")) {
    std::get<std::vector<std::string>*>(key->value)->clear();
  }
  return options;
}

std::vector<PatternProblem> entry_problems(const Experiment& options) {
  std::vector<PatternProblem> problems;
  note_unreadable<optim::ParameterGroup>("optim.groups", options.optim.groups, optim::read_group,
                                         problems);
  note_unreadable<nn::InitRule>("model.init", init_rules(options), nn::read_init_rule, problems);
  note_unreadable<optim::LateStart>("train.unfreeze", options.train.unfreeze,
                                    optim::read_late_start, problems);
  note_unreadable<runs::TakenNames>("train.init_only", options.train.init_only,
                                    runs::read_taken_names, problems);
  return problems;
}

std::vector<PatternProblem> name_problems(const Experiment& options,
                                          std::span<const optim::TensorName> tensors,
                                          const TensorLister& lister) {
  std::vector<PatternProblem> problems;
  const auto& o = options.optim;
  for (const auto& group : readable_entries<optim::ParameterGroup>(o.groups, optim::read_group)) {
    note("optim.groups", optim::matches_nothing(group.pattern, tensors), problems);
  }
  if (!optim::exempts_nothing(o)) {
    for (const auto& pattern : o.no_decay) {
      note("optim.no_decay", optim::matches_nothing(pattern, tensors), problems);
    }
  }
  for (const auto& pattern : o.lazy_tables) {
    note("optim.lazy_tables", optim::matches_nothing(pattern, tensors), problems);
  }
  for (const auto& pattern : o.muon_adam_tensors) {
    note("optim.muon_adam_tensors", optim::matches_nothing(pattern, tensors), problems);
  }
  for (const auto& pattern : o.weight_noise_tensors) {
    note("optim.weight_noise_tensors", optim::matches_nothing(pattern, tensors), problems);
  }
  note_compressed(options.compress, tensors, problems);
  const auto rules = readable_entries<nn::InitRule>(init_rules(options), nn::read_init_rule);
  for (const auto& rule : rules) {
    note("model.init", optim::matches_nothing(rule.pattern, tensors), problems);
  }
  note_vectors(rules, tensors, problems);
  note_normed(rules, tensors, problems);
  note("optim.layer_decay", optim::no_layers(o, tensors), problems);
  const auto note_added = [&](const Places& places, const auto& patterns, const char* train_key,
                              const auto& train) {
    note_places(places, patterns, options, tensors, lister, problems);
    for (const auto& pattern : train) {
      note(train_key, optim::matches_no_name(pattern, tensors), problems);
    }
  };
  // Defaults of `train` need not match.
  if (const auto* lora = lora_in_use(options)) {
    note_added({"model.lora.maps", ".lora_a", "linear map"}, lora->map_patterns(),
               "model.lora.train", lora->train);
  }
  if (const auto* adapter = adapter_in_use(options)) {
    note_added({"model.adapter.parts", ".adapter.down.weight", "part of a layer"},
               adapter->part_patterns(), "model.adapter.train", adapter->train);
  }
  for (const auto& [key, problem] : optim::plan_problems(training_plan(options), tensors)) {
    note(key.c_str(), problem, problems);
  }
  const auto& taken = options.train.init_only;
  for (const auto& names : readable_entries<runs::TakenNames>(taken, runs::read_taken_names)) {
    note("train.init_only", optim::matches_no_name(names.pattern, tensors), problems);
  }
  return problems;
}

}  // namespace stretto::experiment
