#include "tests/recurrent_family/recurrent_family.h"

#include <memory>
#include <vector>

#include "config/open_part.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "tasks/registry.h"
#include "tests/tasks/small_family.h"
#include "tests/train/recurrent_task.h"

namespace stretto::experiment {
namespace {

class RecurrentRules final : public SmallRules {
 public:
  ValidationData validation_data(const Experiment& /*experiment*/) const override {
    return {.there = true, .name = "numbers", .keys = {"data.groups"}, .remedy = ""};
  }
  bool has_carry(const Experiment& /*experiment*/) const override { return true; }
};

const TaskRules& recurrent_rules() {
  static const RecurrentRules rules;
  return rules;
}

}  // namespace

FamilySpec recurrent_spec() {
  return {.options = config::open_alternative<RecurrentOptions>(),
          .also_called = {},
          .rules = &recurrent_rules,
          .display = [](const Experiment& /*experiment*/) { return small_display("numbers"); }};
}

}  // namespace stretto::experiment

namespace stretto::tasks {
namespace {

class RecurrentFamilyTask : public SmallTask<train::test::RecurrentOf<FamilyTask>> {
 public:
  explicit RecurrentFamilyTask(const experiment::RecurrentOptions& options)
      : SmallTask(options.data.groups) {
    nan_after = options.model.nan_after;
  }
};

class RecurrentFamily : public SmallFamily {
 public:
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& /*assets*/,
                                        const CommandContext& /*context*/) const override {
    return std::make_unique<RecurrentFamilyTask>(
        experiment.task.as<experiment::RecurrentOptions>());
  }
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& /*experiment*/) const override {
    train::test::RecurrentTask task;
    return optim::names_of(optim::Arena(task.model(), optim::Arena::Gradients::kNone));
  }
};

}  // namespace

const Family& recurrent_family() {
  static const RecurrentFamily family;
  return family;
}

void add_recurrent_family() {
  if (experiment::TaskChoice().select("recurrent")) return;
  experiment::add_family(experiment::recurrent_spec());
  add_family({"recurrent", &recurrent_family});
}

}  // namespace stretto::tasks
