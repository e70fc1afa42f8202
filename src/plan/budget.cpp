#include "plan/budget.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/text.h"
#include "plan/training_memory.h"

namespace stretto::plan {
namespace {

constexpr double kForward = 1.0 / 3;  // of the time of training a micro-batch
constexpr int64_t kMostMicroBatches = 256;
constexpr double kScaleBits = 16;

double kept_of(const ModelSize& size, double units) {
  return units * kept_values({.units = units, .flops = size.flops, .fan_in = size.fan_in});
}

std::vector<double> time_columns(const ModelSize& size, double units) {
  return {1, size.flops * units, size.parameters};
}

std::vector<double> memory_columns(const ModelSize& size, double units) {
  return {1, size.parameters, kept_of(size, units)};
}

double work_of(const MeasuredSize& measured) {
  return measured.units / measured.micro_batches;
}

FitRow relative_row(std::vector<double> x, double y) {
  if (!(y > 0)) throw std::invalid_argument("a size was measured as nothing");
  return {.x = std::move(x), .y = y, .weight = 1 / (y * y)};
}

LinearFit fit_seconds(std::span<const MeasuredSize> measured) {
  std::vector<FitRow> rows;
  for (const MeasuredSize& one : measured) {
    rows.push_back(
        relative_row(time_columns(one.size, work_of(one)), one.seconds / one.micro_batches));
  }
  return LinearFit(rows);
}

LinearFit fit_bytes(std::span<const MeasuredSize> measured) {
  std::vector<FitRow> rows;
  for (const MeasuredSize& one : measured) {
    rows.push_back(relative_row(memory_columns(one.size, work_of(one)), one.peak_bytes));
  }
  return LinearFit(rows);
}

std::vector<LossPoint> all_losses(std::span<const MeasuredSize> measured) {
  std::vector<LossPoint> losses;
  for (const MeasuredSize& one : measured) {
    losses.insert(losses.end(), one.losses.begin(), one.losses.end());
  }
  return losses;
}

std::vector<MeasuredSize> required(std::vector<MeasuredSize> measured) {
  if (measured.size() < 2) throw std::invalid_argument("a plan needs two sizes");
  return measured;
}

// Micro-batches of an update that are tried.
std::vector<int64_t> batches_to_try(const SizeModel& model) {
  if (!model.noise_scale()) {
    return {std::max<int64_t>(1, std::llround(model.measured_batches()))};
  }
  std::vector<int64_t> batches;
  for (int64_t m = 1; m <= kMostMicroBatches; m *= 2) batches.push_back(m);
  return batches;
}

// 1 + noise scale / batch over the same of the batch that was measured, upside down.
double worth_of(const SizeModel& model, int64_t micro_batches) {
  if (!model.noise_scale() || model.batch() <= 0) return 1;
  const double noise = *model.noise_scale();
  const double before = model.measured_batches() * model.batch();
  const double now = double(micro_batches) * model.batch();
  return (1 + noise / before) / (1 + noise / now);
}

Choice best_batch(const SizeModel& model, const ModelSize& size, const Budget& budget,
                  const UpdateTimer& timer) {
  Choice best;
  const Estimate compute = model.micro_batch_seconds(size);
  const double before = worth_of(model, budget.rate_batches);
  for (const int64_t m : batches_to_try(model)) {
    const double seconds = timer.seconds(size, compute.value, m, budget.processes);
    const double updates = std::floor(budget.seconds / seconds);
    const double worth = worth_of(model, m);
    if (updates * worth <= best.worth_updates) continue;
    best.micro_batches = m;
    best.worth = worth;
    best.rate_factor = worth / before;
    best.update_seconds = {seconds, seconds * compute.error / compute.value};
    best.updates = {updates, updates * compute.error / compute.value};
    best.worth_updates = updates * worth;
  }
  best.size = size;
  return best;
}

// The loss at the end, whose error has that of the number of updates.
Estimate loss_at_end(const SizeModel& model, const Choice& choice) {
  Estimate loss = model.loss(choice.size, choice.worth_updates);
  const double share = std::min(0.5, choice.updates.error / choice.updates.value);
  const double few = model.loss(choice.size, choice.worth_updates * (1 - share)).value;
  const double many = model.loss(choice.size, choice.worth_updates * (1 + share)).value;
  loss.error = std::hypot(loss.error, (few - many) / 2);
  return loss;
}

std::vector<CompressedForm> forms_within(const ModelSize& size, double bytes) {
  std::vector<CompressedForm> forms;
  for (const CompressedForm& form : usual_forms()) {
    if (bytes <= 0 || form.bytes(size.parameters) <= bytes) forms.push_back(form);
  }
  std::ranges::stable_sort(forms, {}, &CompressedForm::loss_cost);
  return forms;
}

double least_bytes(const ModelSize& size) {
  double least = size.parameters * 4;
  for (const CompressedForm& form : usual_forms()) {
    least = std::min(least, form.bytes(size.parameters));
  }
  return least;
}

void note(int64_t& count, double& least, double value) {
  least = count == 0 ? value : std::min(least, value);
  ++count;
}

// Whether the size can be trained and deployed; what forbids it is counted.
bool is_within(const SizeModel& model, const ModelSize& size, const Budget& budget, Choice& choice,
               Plan& plan) {
  choice.peak_bytes = model.peak_bytes(size);
  if (budget.memory_bytes > 0 && choice.peak_bytes.value > budget.memory_bytes) {
    note(plan.too_large_to_train, plan.least_memory, choice.peak_bytes.value);
    return false;
  }
  choice.forms = forms_within(size, budget.deploy_bytes);
  if (choice.forms.empty()) {
    note(plan.too_large_to_deploy, plan.least_deploy_bytes, least_bytes(size));
    return false;
  }
  choice.deploy_seconds = model.forward_seconds(size, budget.deploy_units);
  if (budget.deploy_seconds > 0 && choice.deploy_seconds > budget.deploy_seconds) {
    note(plan.too_slow_to_deploy, plan.least_deploy_seconds, choice.deploy_seconds);
    return false;
  }
  return true;
}

}  // namespace

double CompressedForm::bits_per_weight() const {
  return bits >= 32 ? 32 : bits + kScaleBits / double(group);
}

std::string CompressedForm::text() const {
  return bits >= 32 ? "fp32" : shortest(bits) + " bits, groups of " + std::to_string(group);
}

std::vector<CompressedForm> usual_forms() {
  constexpr std::array<std::pair<double, double>, 6> kCosts{
      {{32, 0}, {8, 0.002}, {6, 0.005}, {4, 0.02}, {3, 0.08}, {2, 0.3}}};
  std::vector<CompressedForm> forms;
  for (const auto& [bits, cost] : kCosts) forms.push_back({.bits = bits, .loss_cost = cost});
  return forms;
}

SizeModel::SizeModel(std::vector<MeasuredSize> measured)
    : seconds_(fit_seconds(required(measured))),
      bytes_(fit_bytes(measured)),
      surface_(all_losses(measured)) {
  const auto n = static_cast<double>(measured.size());
  double noise = 0, with_noise = 0;
  smallest_ = largest_ = measured.front().size.parameters;
  micro_batches_ = 0;
  for (const MeasuredSize& one : measured) {
    units_ += work_of(one) / n;
    batch_ += one.batch / one.micro_batches / n;
    micro_batches_ += one.micro_batches / n;
    smallest_ = std::min(smallest_, one.size.parameters);
    largest_ = std::max(largest_, one.size.parameters);
    if (one.noise_scale <= 0) continue;
    noise += one.noise_scale;
    ++with_noise;
  }
  if (with_noise > 0 && batch_ > 0) noise_scale_ = noise / with_noise;
}

Estimate SizeModel::micro_batch_seconds(const ModelSize& size) const {
  return seconds_.at(time_columns(size, units_));
}

double SizeModel::forward_seconds(const ModelSize& size, double units) const {
  return units > 0 ? kForward * seconds_.at(time_columns(size, units_)).value / units_ * units : 0;
}

Estimate SizeModel::peak_bytes(const ModelSize& size) const {
  return bytes_.at(memory_columns(size, units_));
}

Estimate SizeModel::loss(const ModelSize& size, double updates) const {
  return surface_.at(size.parameters, updates);
}

Plan plan_budget(const SizeModel& model, const std::vector<ModelSize>& sizes, const Budget& budget,
                 const UpdateTimer& timer) {
  Plan plan;
  for (const ModelSize& size : sizes) {
    Choice limits;
    if (!is_within(model, size, budget, limits, plan)) continue;
    Choice choice = best_batch(model, size, budget, timer);
    if (choice.worth_updates < 1) {
      const double seconds =
          timer.seconds(size, model.micro_batch_seconds(size).value, 1, budget.processes);
      note(plan.too_slow, plan.least_seconds, seconds);
      continue;
    }
    choice.peak_bytes = limits.peak_bytes;
    choice.forms = std::move(limits.forms);
    choice.deploy_seconds = limits.deploy_seconds;
    choice.loss = loss_at_end(model, choice);
    choice.deployed_loss = choice.loss.value * (1 + choice.forms.front().loss_cost);
    choice.stop_updates = model.surface().balanced_updates(size.parameters) / choice.worth;
    plan.choices.push_back(std::move(choice));
  }
  std::ranges::stable_sort(plan.choices, {}, &Choice::deployed_loss);
  return plan;
}

}  // namespace stretto::plan
