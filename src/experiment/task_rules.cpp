#include "experiment/task_rules.h"

#include <algorithm>

#include "experiment/family_spec.h"
#include "experiment/preflight_found.h"
#include "experiment/taken_values.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
Preflight TaskRules::look_at_data(const Experiment& /*experiment*/,
                                  const std::vector<config::Problem>& /*known*/,
                                  const PreflightOptions& /*how*/) const {
  return {};
}

Preflight TaskRules::look_at_files(const Experiment& /*experiment*/,
                                   const std::vector<config::Problem>& /*known*/,
                                   const PreflightOptions& /*how*/) const {
  return {};
}

std::vector<TakenValue> TaskRules::values_of_other_model(const OtherModel& /*other*/,
                                                         const Experiment& /*own*/,
                                                         const config::Origins& /*given*/) const {
  return {};
}

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const auto& family : families()) {
    Experiment experiment;
    experiment.task.select(family.options.name);
    for (const auto& score : ranking_scores(family.rules().scores(experiment))) {
      if (std::find(names.begin(), names.end(), score.name()) == names.end()) {
        names.push_back(score.name());
      }
    }
  }
  return names;
}

const TaskRules* find_task_rules(const Experiment& experiment) {
  const FamilySpec* family = find_family(experiment);
  return family != nullptr ? &family->rules() : nullptr;
}

Experiment without_teacher(const Experiment& experiment) {
  const TaskRules* task = find_task_rules(experiment);
  return task == nullptr ? experiment : task->without_teacher(experiment);
}

bool takes_tokenizer_of_other_run(const Experiment& experiment) {
  const auto& train = experiment.train;
  const TaskRules* task = find_task_rules(experiment);
  if (task == nullptr) return false;
  const bool takes = train.init_from.empty() ? !task->teacher_run(experiment).empty()
                                             : train.init_vocabulary == "same";
  if (!takes) return false;
  const auto options = task->tokenizer_options(experiment);
  return options && !text::names_tokenizer(*options);
}

ModelWidth model_width(const Experiment& experiment) {
  const TaskRules* task = find_task_rules(experiment);
  return task != nullptr ? task->model_width(experiment) : ModelWidth{};
}

bool may_cut_micro_batches(const Experiment& experiment) {
  const TaskRules* task = find_task_rules(experiment);
  const bool tied =
      task != nullptr && (task->has_batch_norm(experiment) || task->has_carry(experiment));
  return !experiment.dist.deterministic && !tied;
}

}  // namespace stretto::experiment
