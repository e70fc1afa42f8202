#include "cli/plan_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "cli/engine.h"
#include "cli/plan_inputs.h"
#include "experiment/family_spec.h"
#include "experiment/task_rules.h"
#include "plan/training_memory.h"

namespace stretto::cli {
namespace {

using experiment::Experiment;
using plan::MemoryInputs;
using plan::TrainingMemory;

// Gates, attention and feed-forward parts of a layer have no more than so many matrices, of which
// one side is at most the widest and the other the width of rows, and so many rows of each width.
constexpr double kMostMatrices = 16, kMostValues = 6;
constexpr double kPlainlyEnough = 0.5;  // of the memory
constexpr double kSmallGpu = 4e9;       // less has none that trains
constexpr double kStep = 0.8;           // between widths that are tried
constexpr int kNarrower = 24;

bool trains_everything(const Experiment& e) {
  if (!e.train.freeze.empty() || !e.train.unfreeze.empty()) return false;
  const auto* rules = experiment::find_task_rules(e);
  if (rules == nullptr) return false;
  const auto* lora = rules->lora(e);
  const auto* adapter = rules->adapter(e);
  return (lora == nullptr || !lora->is_on()) && (adapter == nullptr || !adapter->is_on());
}

// With sharded strategy each of several processes has its part of the state; of one alone nobody
// knows how many it will train with.
double share_of_state(const Experiment& e, int64_t processes) {
  if (e.dist.strategy != "sharded") return 1;
  return processes > 1 ? 1 / static_cast<double>(processes) : 0;
}

MemoryInputs inputs_of(const Experiment& e, const models::ModelCost& cost, int64_t processes) {
  const auto& family = plan_of(e);
  MemoryInputs inputs;
  inputs.parameters = static_cast<double>(cost.parameters);
  inputs.trained_share = trains_everything(e) ? 1 : 0;
  const double share = share_of_state(e, processes);
  inputs.state_values = share * plan::state_values_of(e.optim.name, e.optim.momentum);
  inputs.has_average = e.train.averages_weights() && share == 1;
  inputs.units = family.work(e).units;
  inputs.flops = cost.training_flops;
  if (family.shape != nullptr) inputs.fan_in = family.shape(e).fan_in;
  return inputs;
}

// More than the model can need, without asking the engine.
double rough_bytes(const Experiment& e, const experiment::ModelShape& shape) {
  double width = 0, depth = 0;
  for (const auto& key : shape.widths) width = std::max(width, static_cast<double>(key.value));
  for (const auto& key : shape.depths) depth += static_cast<double>(key.value);
  depth = std::max(depth, 1.0);
  const double narrow = std::max(shape.fan_in, width / 4);
  const auto& family = plan_of(e);
  double rows = 0;
  if (family.tables) rows = static_cast<double>(family.tables->tables(e).tokenizer.vocab_size);
  MemoryInputs inputs;
  inputs.parameters = kMostMatrices * depth * width * narrow + 3 * rows * narrow;
  inputs.has_average = true;
  const double values = kMostValues * depth * (width + narrow) + 3 * rows;
  return plan::training_memory(inputs).total() + 4 * values * family.work(e).units;
}

std::string parts_text(const TrainingMemory& memory) {
  const auto bytes = [](double value) { return human_bytes(static_cast<uint64_t>(value)); };
  std::string text = "weights " + bytes(memory.weights);
  if (memory.gradients > 0) text += ", gradients " + bytes(memory.gradients);
  if (memory.optimizer > 0) text += ", optimizer " + bytes(memory.optimizer);
  if (memory.average > 0) text += ", their average " + bytes(memory.average);
  return text + ", activations of a micro-batch about " + bytes(memory.activations);
}

// The widest model of this form of which weights and what belongs to them fit.
std::string widest_that_fits(const MemoryQuestion& question, const Experiment& e, double bytes) {
  PlanOptions options;
  options.config = question.config;
  const auto shape = plan_of(e).shape(e);
  std::vector<std::string> ignored;
  const auto rows = rows_of(options, e, ignored);
  double width = 1;
  for (int i = 0; i < kNarrower; ++i) {
    width *= kStep;
    const auto keys = experiment::narrowed(shape, width);
    options.overrides = question.overrides;
    options.overrides.insert(options.overrides.end(), keys.begin(), keys.end());
    try {
      const auto smaller = experiment_of(options);
      if (!smaller) return {};
      const auto memory =
          plan::training_memory(inputs_of(*smaller, cost_of(*smaller, rows), question.processes));
      if (memory.at_least() <= bytes) return join(keys, " ");
    } catch (const Error&) {  // a rule forbids it
    }
  }
  return {};
}

std::string largest_text(const MemoryQuestion& question, const Experiment& e,
                         const MemoryInputs& inputs, double bytes) {
  const double units = plan::largest_work(inputs, bytes);
  const auto work = plan_of(e).work(e);
  if (units >= 1 && inputs.units > 0 && !work.key.empty()) {
    const double share = std::min(1.0, units / inputs.units);
    return "the largest micro-batch that fits has about " +
           with_thousands(static_cast<int64_t>(units)) + " " + experiment::display_of(e).rate.unit +
           ": set " + work.key + " to " + percent_text(share) +
           " of what it is, and train.update_freq to " +
           std::to_string(static_cast<int64_t>(std::ceil(1 / share))) + " times as many";
  }
  const std::string keys = widest_that_fits(question, e, bytes);
  if (!keys.empty()) return "the largest of this form that fits is " + keys;
  return "take a smaller model, or a machine with more memory";
}

}  // namespace

std::optional<experiment::Stop> memory_stop(const MemoryQuestion& question, const Experiment& e) {
  const auto* family = experiment::find_family(e);
  if (family == nullptr || !family->plan || family->plan->shape == nullptr) return std::nullopt;
  const bool on_gpu = trains_on_gpu(e);
  const log::Silence silence;
  double bytes =
      on_gpu ? kSmallGpu : question.memory_bytes / double(std::max<int64_t>(1, question.processes));
  const auto shape = family->plan->shape(e);
  if (!shape.can_change() || rough_bytes(e, shape) < kPlainlyEnough * bytes) return std::nullopt;
  if (engine_path().empty()) return std::nullopt;
  try {
    if (on_gpu) bytes = static_cast<double>(engine().gpu_memory());
    if (bytes <= 0) return std::nullopt;
    PlanOptions options;
    options.config = question.config;
    options.overrides = question.overrides;
    std::vector<std::string> ignored;
    const auto inputs = inputs_of(e, cost_of(e, rows_of(options, e, ignored)), question.processes);
    const TrainingMemory memory = plan::training_memory(inputs);
    if (memory.at_least() <= bytes) return std::nullopt;
    experiment::Stop stop;
    stop.stage = experiment::Stage::kMachine;
    stop.key = plan_of(e).work(e).key;
    stop.code = ExitCode::kUsage;
    stop.what = "training takes at least " + human_bytes(static_cast<uint64_t>(memory.at_least())) +
                " of memory, and " + (on_gpu ? "the GPU" : "a process") + " has " +
                human_bytes(static_cast<uint64_t>(bytes)) + " here: " + parts_text(memory);
    stop.hint = largest_text(question, e, inputs, bytes);
    return stop;
  } catch (const Error&) {
    return std::nullopt;  // what is wrong with the model or the engine is said elsewhere
  }
}

}  // namespace stretto::cli
