#include "experiment/tensor_patterns.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "experiment/task_rules.h"
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

// Which rule each tensor has: of a vector there is no fan.
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

// Of a weight-normalised matrix: a row of zeros has no direction.
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

// Of the patterns of model.lora.maps, each must reach a linear map, which then has a `lora_a`;
// those of model.lora.train any tensor. Their defaults need not.
void note_lora(const nn::LoraOptions& lora, std::span<const optim::TensorName> tensors,
               std::vector<PatternProblem>& problems) {
  constexpr std::string_view kMatrix = ".lora_a", kWeight = ".weight";
  std::vector<optim::TensorName> adapted, others;
  for (const auto& tensor : tensors) {
    const auto without = [&](std::string_view ending) {
      return tensor.name.substr(0, tensor.name.size() - ending.size());
    };
    if (tensor.name.ends_with(kMatrix)) {
      adapted.push_back({without(kMatrix)});
    } else if (tensor.name.ends_with(kWeight) && !tensor.is_vector) {
      others.push_back({without(kWeight)});
    }
  }
  for (const auto& pattern : lora.map_patterns()) {
    if (!optim::matches_nothing(pattern, adapted)) continue;
    problems.push_back({"model.lora.maps",
                        "`" + printable(pattern) + "` matches no linear map of this model",
                        "names near it: " + optim::names_near(pattern, others)});
  }
  for (const auto& pattern : lora.train) {
    note("model.lora.train", optim::matches_no_name(pattern, tensors), problems);
  }
}

// The residual connections of a model: those with an adapter, and all.
struct ResidualNames {
  std::vector<optim::TensorName> adapted, all;
};

ResidualNames residual_names(std::span<const optim::TensorName> tensors) {
  constexpr std::string_view kAdapter = ".adapter.down.weight", kNorm = "residual.norm.weight";
  constexpr std::string_view kNormAlone = ".norm.weight";
  ResidualNames names;
  for (const auto& tensor : tensors) {
    const auto without = [&](std::string_view ending) {
      return tensor.name.substr(0, tensor.name.size() - ending.size());
    };
    if (tensor.name.ends_with(kAdapter)) {
      names.adapted.push_back({without(kAdapter)});
    } else if (tensor.name.ends_with(kNorm)) {
      const std::string residual = without(kNormAlone);
      if (residual.ends_with(".residual")) {
        // Around several parts at once: each part has a place below it.
        for (const char* part : {".self", ".ffn"}) names.all.push_back({residual + part});
      } else {
        names.all.push_back({residual});
      }
    }
  }
  return names;
}

// Of the patterns of model.adapter.parts, each must reach a residual connection, which then has an
// `adapter`. A model without such connections has no place for one.
void note_adapter(const nn::AdapterOptions& adapter, std::span<const optim::TensorName> tensors,
                  std::vector<PatternProblem>& problems) {
  const auto [adapted, all] = residual_names(tensors);
  if (all.empty()) {
    problems.push_back(
        {"model.adapter.dim",
         "this model has no layers that adapters can stand in: those of Transformers "
         "and of light and dynamic convolutions have them",
         "set model.adapter.dim = 0; model.lora is for any linear map"});
  } else {
    for (const auto& pattern : adapter.part_patterns()) {
      if (!optim::matches_nothing(pattern, adapted)) continue;
      problems.push_back(
          {"model.adapter.parts",
           "`" + printable(pattern) + "` matches no residual connection of this model",
           "names near it: " + optim::names_near(pattern, all)});
    }
  }
  for (const auto& pattern : adapter.train) {
    note("model.adapter.train", optim::matches_no_name(pattern, tensors), problems);
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

std::string key_that_names_tensors(const Experiment& options) {
  if (!options.optim.groups.empty()) return "optim.groups";
  if (!options.optim.no_decay.empty()) return "optim.no_decay";
  if (!options.optim.lazy_tables.empty()) return "optim.lazy_tables";
  if (!options.optim.weight_noise_tensors.empty()) return "optim.weight_noise_tensors";
  if (!init_rules(options).empty()) return "model.init";
  if (lora_in_use(options) != nullptr) return "model.lora.rank";
  if (adapter_in_use(options) != nullptr) return "model.adapter.dim";
  if (options.optim.layer_decay != 1) return "optim.layer_decay";
  if (!options.train.freeze.empty()) return "train.freeze";
  if (!options.train.unfreeze.empty()) return "train.unfreeze";
  return options.train.init_only.empty() ? "" : "train.init_only";
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
                                          std::span<const optim::TensorName> tensors) {
  std::vector<PatternProblem> problems;
  const auto& o = options.optim;
  for (const auto& group : readable_entries<optim::ParameterGroup>(o.groups, optim::read_group)) {
    note("optim.groups", optim::matches_nothing(group.pattern, tensors), problems);
  }
  if (!optim::spares_none(o)) {
    for (const auto& pattern : o.no_decay) {
      note("optim.no_decay", optim::matches_nothing(pattern, tensors), problems);
    }
  }
  for (const auto& pattern : o.lazy_tables) {
    note("optim.lazy_tables", optim::matches_nothing(pattern, tensors), problems);
  }
  for (const auto& pattern : o.weight_noise_tensors) {
    note("optim.weight_noise_tensors", optim::matches_nothing(pattern, tensors), problems);
  }
  const auto rules = readable_entries<nn::InitRule>(init_rules(options), nn::read_init_rule);
  for (const auto& rule : rules) {
    note("model.init", optim::matches_nothing(rule.pattern, tensors), problems);
  }
  note_vectors(rules, tensors, problems);
  note_normed(rules, tensors, problems);
  note("optim.layer_decay", optim::no_layers(o, tensors), problems);
  if (const auto* lora = lora_in_use(options)) note_lora(*lora, tensors, problems);
  if (const auto* adapter = adapter_in_use(options)) note_adapter(*adapter, tensors, problems);
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
