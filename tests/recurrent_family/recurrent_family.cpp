#include "tests/recurrent_family/recurrent_family.h"

#include "config/open_part.h"
#include "experiment/score_spec.h"
#include "experiment/task_rules.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "tasks/registry.h"
#include "tests/train/recurrent_task.h"

namespace stretto::experiment {
namespace {

class RecurrentRules final : public TaskRules {
 public:
  void check_model(RuleCheck& /*check*/) const override {}
  void check_data(RuleCheck& /*check*/) const override {}
  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return {{.style = report::loss_style()}};
  }
  ValidationData validation_data(const Experiment& /*experiment*/) const override {
    return {.there = true, .name = "numbers", .keys = {"data.groups"}, .remedy = ""};
  }
  BatchBound micro_batch(const Experiment& /*experiment*/) const override { return {}; }
  bool has_carry(const Experiment& /*experiment*/) const override { return true; }
};

const TaskRules& recurrent_rules() {
  static const RecurrentRules rules;
  return rules;
}

report::Display recurrent_display() {
  report::Display display;
  display.numbers = {report::loss_style()};
  display.rate = {
      .key = "numbers_per_second", .unit = "numbers", .short_unit = "numbers", .batch = "numbers"};
  display.loss_unit = {.name = "numbers", .count = "numbers"};
  return display;
}

}  // namespace

FamilySpec recurrent_spec() {
  return {.options = config::open_alternative<RecurrentOptions>(),
          .also_called = {},
          .rules = &recurrent_rules,
          .display = [](const Experiment& /*experiment*/) { return recurrent_display(); }};
}

}  // namespace stretto::experiment

namespace stretto::tasks {
namespace {

class RecurrentFamilyTask : public train::test::RecurrentOf<FamilyTask> {
 public:
  explicit RecurrentFamilyTask(const experiment::RecurrentOptions& options)
      : RecurrentOf(options.data.groups) {
    nan_after = options.model.nan_after;
  }

  std::vector<distributed::Fact> data_facts() const override { return {}; }
  void require_known_data(bool /*warn*/) const override {}
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }
  data::Loading loading() const override { return {.depth = 2}; }
  int64_t update_bound() const override { return 1; }
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& /*run*/) const override {
    return {};
  }
};

class RecurrentFamily : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& /*experiment*/) const override {
    return {};
  }
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& /*assets*/,
                                        const CommandContext& /*context*/) const override {
    return std::make_unique<RecurrentFamilyTask>(
        experiment.task.as<experiment::RecurrentOptions>());
  }
  int eval(const EvalRequest& /*request*/, const CommandContext& /*context*/) const override {
    return 0;
  }
  int infer(const InferRequest& /*request*/, const CommandContext& /*context*/) const override {
    return 0;
  }
  std::string memory_advice(MemoryUse /*use*/) const override { return "raise data.groups"; }
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& /*experiment*/) const override {
    train::test::RecurrentTask task;
    return optim::names_of(optim::Arena(task.model(), optim::Arena::Gradients::kNone));
  }
  models::ModelCost model_cost(const CostRequest& /*request*/) const override { return {}; }
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& /*experiment*/,
                                                  const Assets& /*assets*/,
                                                  bool /*draws_weights*/) const override {
    return nullptr;
  }
  void check_weights(const experiment::CheckRequest& /*request*/,
                     experiment::Preflight& /*found*/) const override {}
  void require_room(const std::filesystem::path& /*place*/, const experiment::Experiment& /*other*/,
                    const experiment::Experiment& /*own*/) const override {}
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
