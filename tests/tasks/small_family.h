#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiment/score_spec.h"
#include "experiment/task_rules.h"
#include "report/display.h"
#include "tasks/family.h"

/// What families of tests have nothing of their own to say of: a test overrides what it is about.
namespace stretto::experiment {

/// No rule, and the loss as the only score.
class SmallRules : public TaskRules {
 public:
  void check_model(RuleCheck& /*check*/) const override {}
  void check_data(RuleCheck& /*check*/) const override {}
  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return {{.style = report::loss_style()}};
  }
  BatchBound micro_batch(const Experiment& /*experiment*/) const override { return {}; }
};

/// The loss alone. @param unit  of the throughput: "numbers"
inline report::Display small_display(const std::string& unit) {
  report::Display display;
  display.numbers = {report::loss_style()};
  display.rate = {.key = unit + "_per_second", .unit = unit, .short_unit = unit, .batch = unit};
  display.loss_unit = {.name = unit, .count = unit};
  return display;
}

}  // namespace stretto::experiment

namespace stretto::tasks {

/// @tparam Rest  a task that has all else
template <class Rest>
class SmallTask : public Rest {
 public:
  using Rest::Rest;

  std::vector<distributed::Fact> data_facts() const override { return {}; }
  void require_known_data(bool /*warn*/) const override {}
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }
  data::Loading loading() const override { return {.depth = 2}; }
  int64_t update_bound() const override { return 1; }
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& /*run*/) const override {
    return {};
  }
};

/// Without files of a run, and without any command but training.
class SmallFamily : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& /*experiment*/) const override {
    return {};
  }
  int eval(const EvalRequest& /*request*/, const CommandContext& /*context*/) const override {
    return 0;
  }
  int infer(const InferRequest& /*request*/, const CommandContext& /*context*/) const override {
    return 0;
  }
  std::string memory_advice(MemoryUse /*use*/) const override { return "use smaller batches"; }
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

}  // namespace stretto::tasks
