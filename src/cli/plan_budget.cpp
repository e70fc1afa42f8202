#include "cli/plan_budget.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log_silence.h"
#include "base/system_info.h"
#include "base/text.h"
#include "cli/engine.h"
#include "cli/plan_measure.h"
#include "cli/run_config.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/family_spec.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using experiment::Experiment;
using plan::ModelSize;

/// Width and depth against those of the configuration.
struct Scale {
  double width = 1, depth = 1;
};

constexpr std::array<Scale, 4> kMeasured{{{1, 1}, {0.5, 1}, {1, 0.5}, {0.5, 0.5}}};
constexpr std::array<Scale, 3> kMeasuredElse{{{2, 1}, {1, 2}, {0.25, 1}}};
constexpr size_t kWantedSizes = 3;
constexpr std::array kWidths{0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0};
constexpr std::array kDepths{0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0};
constexpr int64_t kHostProcesses = 8;

[[noreturn]] void refuse_plan(const std::string& what, const std::string& remedy) {
  throw Error(ExitCode::kUsage, "plan --hours: " + what, remedy);
}

bool is_given(double value) {
  return !std::isnan(value);
}

/// The configuration, and the sizes that its models may have.
class SizeMaker {
 public:
  SizeMaker(const PlanOptions& options, const Experiment& e, const experiment::TableRows& rows)
      : options_(options), rows_(rows) {
    if (const auto& family = plan_of(e); family.shape != nullptr) shape_ = family.shape(e);
  }

  const experiment::ModelShape& shape() const { return shape_; }

  /// Nothing where rules forbid it.
  std::optional<ModelSize> make(std::vector<std::string> overrides, const Scale& scale) const {
    PlanOptions own = options_;
    own.overrides.insert(own.overrides.end(), overrides.begin(), overrides.end());
    const log::Silence silence;
    try {
      const auto e = experiment_of(own);
      if (!e) return std::nullopt;
      return describe(*e, rows_, std::move(overrides), scale);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::optional<ModelSize> make(const Scale& scale) const {
    return make(experiment::resized(shape_, scale.width, scale.depth), scale);
  }

  static ModelSize describe(const Experiment& e, const experiment::TableRows& rows,
                            std::vector<std::string> overrides, const Scale& scale) {
    const auto cost = cost_of(e, rows);
    const auto& family = plan_of(e);
    ModelSize size;
    size.overrides = std::move(overrides);
    size.width = scale.width;
    size.depth = scale.depth;
    size.parameters = static_cast<double>(cost.parameters);
    size.flops = cost.training_flops;
    if (family.shape != nullptr) size.fan_in = family.shape(e).fan_in;
    return size;
  }

 private:
  const PlanOptions& options_;
  experiment::TableRows rows_;
  experiment::ModelShape shape_;
};

/// Sizes without those that are there already.
class DifferentSizes {
 public:
  void add(std::optional<ModelSize> size) {
    if (size && seen_.insert(join(size->overrides, " ")).second) {
      sizes_.push_back(std::move(*size));
    }
  }
  std::vector<ModelSize> take() { return std::move(sizes_); }
  size_t count() const { return sizes_.size(); }

 private:
  std::set<std::string> seen_;
  std::vector<ModelSize> sizes_;
};

std::vector<ModelSize> given_sizes(const PlanOptions& options, const SizeMaker& maker) {
  DifferentSizes sizes;
  for (const auto& words : options.sizes) {
    auto size = maker.make(split_words(words), {});
    if (!size) {
      refuse_plan("--size \"" + printable(words, 100) + "\" is no sound configuration",
                  "`stretto check CONFIG " + printable(words, 100) + "` says what is wrong");
    }
    sizes.add(std::move(size));
  }
  return sizes.take();
}

std::vector<ModelSize> sizes_to_measure(const PlanOptions& options, const SizeMaker& maker) {
  if (!options.sizes.empty()) return given_sizes(options, maker);
  DifferentSizes sizes;
  for (const Scale& scale : kMeasured) sizes.add(maker.make(scale));
  for (const Scale& scale : kMeasuredElse) {
    if (sizes.count() < kWantedSizes) sizes.add(maker.make(scale));
  }
  return sizes.take();
}

std::vector<ModelSize> sizes_to_choose(const PlanOptions& options, const SizeMaker& maker) {
  if (!options.sizes.empty()) return given_sizes(options, maker);
  DifferentSizes sizes;
  for (const double width : kWidths) {
    for (const double depth : kDepths) sizes.add(maker.make({width, depth}));
  }
  return sizes.take();
}

// All that a measured time and loss depend on, files that the configuration includes among it.
std::string recipe_of(const Experiment& e, const ModelSize& size, int64_t update_freq) {
  Experiment options = e;
  return config::to_toml(experiment::experiment_schema(options)) + "\n" +
         join(size.overrides, "\n") + "\n" + std::to_string(update_freq);
}

// Sizes of one configuration have folders that tell them apart, and so have other configurations.
fs::path folder_of(const PlanOptions& options, const std::string& recipe) {
  const fs::path config(options.config);
  const fs::path directory = options.directory.empty()
                                 ? fs::path("runs") / ("plan_" + config.stem().string())
                                 : fs::path(options.directory);
  return directory / hex64(xxh3_64(recipe));
}

void measure_sizes(const PlanOptions& options, const Experiment& e, const SizeMaker& maker,
                   const std::vector<ModelSize>& sizes, BudgetPlan& plan) {
  int64_t update_freq = plan.batch_stays ? e.train.update_freq : measured_update_freq(e);
  if (!maker.make({"train.update_freq=" + std::to_string(update_freq)}, {})) {
    update_freq = e.train.update_freq;  // the rules of this task forbid another number
  }
  for (const ModelSize& size : sizes) {
    MeasureRequest request;
    request.config = options.config;
    request.overrides = options.overrides;
    request.overrides.insert(request.overrides.end(), size.overrides.begin(), size.overrides.end());
    request.overrides.push_back("train.update_freq=" + std::to_string(update_freq));
    request.directory = folder_of(options, recipe_of(e, size, update_freq));
    request.seconds = options.measure_seconds / static_cast<double>(sizes.size());
    train_to_measure(request);
    plan.measured.push_back(measured_run(request.directory, e, size, update_freq));
    plan.runs.push_back(request.directory.string());
  }
}

// Lanes are cut into train.update_freq micro-batches, and an update has all of them.
bool update_freq_cuts_the_batch(const Experiment& e) {
  Experiment more = e;
  more.train.update_freq *= 2;
  return plan_of(e).work(more).units < plan_of(e).work(e).units;
}

void take_runs(const PlanOptions& options, const Experiment& e, BudgetPlan& plan) {
  for (const std::string& run : options.measured) {
    const auto trained = load_run_config(run, {}).options;
    if (trained.task.name() != e.task.name()) {
      refuse_plan(
          run + " is a run of " + trained.task.name() + ", the configuration of " + e.task.name(),
          "name runs of the same task and data");
    }
    PlanOptions own = options;
    own.config.clear();
    own.overrides.clear();
    own.vocab_rows = 0;
    own.run = run;
    std::vector<std::string> ignored;
    const auto rows = rows_of(own, trained, ignored);
    plan.measured.push_back(measured_run(run, trained, SizeMaker::describe(trained, rows, {}, {}),
                                         trained.train.update_freq));
    plan.runs.push_back(run);
  }
}

/// An update of several processes, as `plan --scaling` predicts it.
class ScalingTimer : public plan::UpdateTimer {
 public:
  explicit ScalingTimer(const plan::Setup& setup) : setup_(setup) {}

  double seconds(const ModelSize& size, double compute, int64_t micro_batches,
                 int64_t processes) const override {
    plan::Setup setup = setup_;
    const double ratio =
        setup.parameter_bytes > 0 ? 4 * size.parameters / setup.parameter_bytes : 1;
    setup.compute_seconds = compute;
    setup.optimizer_seconds = 0;  // measured with the rest
    setup.micro_batches = micro_batches;
    setup.gradient_bytes *= ratio;
    setup.row_bytes *= ratio;
    setup.parameter_bytes = 4 * size.parameters;
    return plan::predict(setup, processes).step_seconds;
  }

 private:
  plan::Setup setup_;
};

PlanInputs scaling_inputs(const PlanOptions& options) {
  PlanOptions own = options;
  own.world_size = options.processes;
  own.compute_ms = 1;
  own.optimizer_ms = 0;
  if (!is_given(own.units)) own.units = 1;
  const log::Silence silence;
  return plan_inputs(own);
}

plan::Budget budget_of(const PlanOptions& options, const Experiment& e, BudgetPlan& plan) {
  plan::Budget budget;
  budget.seconds = options.hours * 3600;
  budget.processes = options.processes;
  budget.rate_batches = e.train.update_freq;
  if (is_given(options.deploy_mb)) budget.deploy_bytes = options.deploy_mb * 1e6;
  budget.deploy_units = options.deploy_units;
  if (is_given(options.deploy_ms)) {
    budget.deploy_seconds = options.deploy_ms / 1e3;
    plan.assumed.push_back("a text or sample that is deployed has " +
                           shortest(options.deploy_units) + " " + plan.unit +
                           ", and takes a third of its training time in fp32 (--deploy-units)");
  }
  if (is_given(options.memory_gb)) {
    budget.memory_bytes = options.memory_gb * 1e9;
  } else if (!trains_on_gpu(e)) {
    const int64_t per_host = options.per_host > 0 ? options.per_host : kHostProcesses;
    const int64_t together = std::min(per_host, options.processes);
    budget.memory_bytes = static_cast<double>(total_memory_bytes()) / double(together);
    plan.assumed.push_back("a process may take " +
                           human_bytes(static_cast<uint64_t>(budget.memory_bytes)) +
                           ", as this machine has for it (--memory-gb)");
  } else if (const uint64_t bytes = engine().gpu_memory(); bytes > 0) {
    budget.memory_bytes = static_cast<double>(bytes);
    plan.assumed.push_back("a process has a GPU of " + human_bytes(bytes) +
                           ", as this machine does (--memory-gb)");
  } else {
    plan.assumed.emplace_back("every size fits into the memory of a GPU (--memory-gb)");
  }
  return budget;
}

void require_budget(const PlanOptions& options) {
  if (options.config.empty())
    refuse_plan("CONFIG is missing", "name the recipe whose size is planned");
  if (options.hours <= 0) refuse_plan("no time at all", "give the hours that training may take");
  for (const auto& [name, value] :
       {std::pair("--deploy-mb", options.deploy_mb), std::pair("--deploy-ms", options.deploy_ms),
        std::pair("--deploy-units", options.deploy_units),
        std::pair("--memory-gb", options.memory_gb)}) {
    if (is_given(value) && value <= 0) {
      refuse_plan(std::string(name) + " of 0 leaves room for nothing",
                  "give a number above 0, or leave it out");
    }
  }
  if (options.measure_seconds <= 0 && options.measured.empty()) {
    refuse_plan("with --measure-seconds 0 nothing is measured",
                "name runs with --measured, or give it seconds");
  }
  if (!options.sizes.empty() && options.sizes.size() < 2) {
    refuse_plan("one --size tells nothing about others", "give --size at least twice");
  }
}

// "0.0041 ms", "12.5 ms", "2h 10m"
std::string short_time(double seconds) {
  if (seconds >= 1) return human_duration(seconds);
  return fixed(seconds * 1e3, seconds < 1e-3 ? 4 : 1) + " ms";
}

// What would be needed, a reason each.
[[noreturn]] void refuse_budget(const plan::Plan& plan, const plan::Budget& budget) {
  std::vector<std::string> why;
  if (plan.too_large_to_deploy > 0) {
    why.push_back(counted(plan.too_large_to_deploy, "size") + " cannot be compressed to " +
                  megabytes_text(budget.deploy_bytes) + ": the smallest takes " +
                  megabytes_text(plan.least_deploy_bytes));
  }
  if (plan.too_slow_to_deploy > 0) {
    why.push_back(counted(plan.too_slow_to_deploy, "size") + " cannot answer in " +
                  short_time(budget.deploy_seconds) + ": the fastest takes " +
                  short_time(plan.least_deploy_seconds));
  }
  if (plan.too_large_to_train > 0) {
    why.push_back(counted(plan.too_large_to_train, "size") + " cannot be trained within " +
                  megabytes_text(budget.memory_bytes) + ": the smallest takes " +
                  megabytes_text(plan.least_memory));
  }
  if (plan.too_slow > 0) {
    why.push_back(counted(plan.too_slow, "size") + " cannot make one update in " +
                  short_time(budget.seconds) + ": the fastest takes " +
                  short_time(plan.least_seconds));
  }
  refuse_plan("no size is within the budget. " + join(why, "; "),
              "raise what is exceeded, or begin with a smaller model and smaller tables "
              "(tokenizer.vocab_size)");
}

plan::SizeModel model_of(const BudgetPlan& plan) {
  size_t losses = 0;
  for (const auto& one : plan.measured) losses += one.losses.size();
  if (plan.measured.size() < 2 || losses < 4) {
    refuse_plan("what was measured is too little: " +
                    counted(static_cast<int64_t>(plan.measured.size()), "size") + ", " +
                    counted(static_cast<int64_t>(losses), "loss", "losses"),
                "raise --measure-seconds, or name more runs with --measured");
  }
  return plan::SizeModel(plan.measured);
}

}  // namespace

std::string megabytes_text(double bytes) {
  const int decimals = bytes < 1e5 ? 4 : bytes < 1e7 ? 3 : bytes < 1e8 ? 1 : 0;
  return fixed(bytes / 1e6, decimals) + " MB";
}

BudgetPlan make_budget_plan(const PlanOptions& options) {
  require_budget(options);
  const Experiment e = experiment_of(options).value();
  if (!e.train.init_from.empty()) {
    refuse_plan("train.init_from gives the model its size",
                "plan its pretraining, or leave it out");
  }
  const auto display = experiment::display_of(e);
  BudgetPlan plan;
  plan.unit = display.rate.unit;
  plan.batch_unit = display.loss_unit.name;
  plan.learning_rate = e.optim.lr;
  const auto inputs = scaling_inputs(options);
  plan.assumed = inputs.assumed;
  std::vector<std::string> known;  // among those of the inputs
  const SizeMaker maker(options, e, rows_of(options, e, known));
  if (!maker.shape().can_change() && options.sizes.empty()) {
    refuse_plan("nobody knows which keys make this model larger or smaller",
                "give sizes: --size \"KEY=VALUE KEY=VALUE\", at least twice");
  }
  plan.batch_stays = update_freq_cuts_the_batch(e);
  take_runs(options, e, plan);
  if (options.measure_seconds > 0) {
    measure_sizes(options, e, maker, sizes_to_measure(options, maker), plan);
  }
  for (auto& one : plan.measured) {
    if (plan.batch_stays) one.noise_scale = 0;
  }
  plan.model = model_of(plan);
  plan.budget = budget_of(options, e, plan);
  plan.answer = plan::plan_budget(*plan.model, sizes_to_choose(options, maker), plan.budget,
                                  ScalingTimer(inputs.setup));
  if (plan.answer.choices.empty()) refuse_budget(plan.answer, plan.budget);
  return plan;
}

}  // namespace stretto::cli
