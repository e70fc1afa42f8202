#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "cli/plan_budget.h"

namespace stretto::cli {
namespace {

using BudgetJson = nlohmann::ordered_json;
using plan::Choice;
using plan::Estimate;

constexpr size_t kShownChoices = 5, kShownForms = 4;

BudgetJson estimate_json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"error", estimate.error}};
}

BudgetJson form_json(const plan::CompressedForm& form, double parameters) {
  return {{"bits", form.bits},
          {"group", form.group},
          {"bits_per_weight", form.bits_per_weight()},
          {"bytes", form.bytes(parameters)},
          {"assumed_loss_cost", form.loss_cost}};
}

BudgetJson choice_json(const Choice& choice, double learning_rate) {
  BudgetJson json{{"overrides", choice.size.overrides},
                  {"width", choice.size.width},
                  {"depth", choice.size.depth},
                  {"parameters", choice.size.parameters},
                  {"micro_batches", choice.micro_batches},
                  {"learning_rate", learning_rate * choice.rate_factor},
                  {"update_seconds", estimate_json(choice.update_seconds)},
                  {"updates", estimate_json(choice.updates)},
                  {"stop_updates", choice.stop_updates},
                  {"loss", estimate_json(choice.loss)},
                  {"peak_bytes", estimate_json(choice.peak_bytes)},
                  {"deploy_seconds", choice.deploy_seconds},
                  {"deployed_loss", choice.deployed_loss}};
  json["forms"] = BudgetJson::array();
  for (const auto& form : choice.forms) {
    json["forms"].push_back(form_json(form, choice.size.parameters));
  }
  return json;
}

BudgetJson measured_json(const plan::MeasuredSize& one, const std::string& run) {
  return {{"run", run},
          {"overrides", one.size.overrides},
          {"parameters", one.size.parameters},
          {"update_seconds", one.seconds},
          {"units_per_update", one.units},
          {"micro_batches", one.micro_batches},
          {"peak_bytes", one.peak_bytes},
          {"noise_scale", one.noise_scale},
          {"last_loss", one.losses.empty() ? 0 : one.losses.back().loss}};
}

void print_budget_json(const BudgetPlan& plan) {
  BudgetJson json{
      {"seconds", plan.budget.seconds},           {"processes", plan.budget.processes},
      {"deploy_bytes", plan.budget.deploy_bytes}, {"deploy_seconds", plan.budget.deploy_seconds},
      {"memory_bytes", plan.budget.memory_bytes}, {"unit", plan.unit}};
  json["choice"] = choice_json(plan.answer.choices.front(), plan.learning_rate);
  json["size_exponent"] = estimate_json(plan.model->surface().size_exponent());
  json["step_exponent"] = estimate_json(plan.model->surface().step_exponent());
  json["noise_scale"] = plan.model->noise_scale().value_or(0);
  json["measured"] = BudgetJson::array();
  for (size_t i = 0; i < plan.measured.size(); ++i) {
    json["measured"].push_back(measured_json(plan.measured[i], plan.runs[i]));
  }
  json["assumed"] = plan.assumed;
  json["choices"] = BudgetJson::array();
  for (const Choice& choice : plan.answer.choices) {
    json["choices"].push_back(choice_json(choice, plan.learning_rate));
  }
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

// "2.345 ± 0.05"
std::string with_error(const Estimate& estimate, int decimals) {
  return fixed(estimate.value, decimals) + " ± " + fixed(estimate.error, decimals);
}

std::string parameters_text(double parameters) {
  return parameters < 1e6 ? fixed(parameters / 1e3, 0) + "k" : fixed(parameters / 1e6, 1) + "M";
}

// Three digits of a learning rate.
std::string rate_text(double rate) {
  if (!(rate > 0)) return shortest(rate);
  const int decimals = std::max(0, 2 - static_cast<int>(std::floor(std::log10(rate))));
  return fixed(rate, decimals);
}

// A number of updates that nobody takes for an exact one.
std::string updates_text(double updates) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(updates)) - 2));
  return with_thousands(std::llround(std::round(updates / unit) * unit));
}

void print_measured(const BudgetPlan& plan) {
  std::cout << "measured\n";
  for (size_t i = 0; i < plan.measured.size(); ++i) {
    const auto& one = plan.measured[i];
    std::cout << "  " << parameters_text(one.size.parameters)
              << " parameters: " << fixed(one.seconds * 1e3, 1) << " ms an update of "
              << with_thousands(std::llround(one.units)) << " " << plan.unit << ", peak "
              << megabytes_text(one.peak_bytes);
    if (!one.losses.empty()) std::cout << ", loss " << fixed(one.losses.back().loss, 3);
    std::cout << "; " << plan.runs[i] << "\n";
  }
  if (const auto noise = plan.model->noise_scale()) {
    std::cout << "  noise scale " << with_thousands(std::llround(*noise)) << " " << plan.batch_unit
              << "\n";
  }
  std::cout << "fitted: the loss falls with parameters^-"
            << with_error(plan.model->surface().size_exponent(), 2) << " and with updates^-"
            << with_error(plan.model->surface().step_exponent(), 2) << "\n";
}

void print_assumed(const BudgetPlan& plan) {
  for (const auto& line : plan.assumed) std::cout << "assumed: " << line << "\n";
  if (plan.batch_stays) {
    std::cout
        << "assumed: the batch stays, since train.update_freq cuts it and makes it no larger\n";
  } else if (!plan.model->noise_scale()) {
    std::cout << "assumed: the batch stays as it was measured, since no noise scale was measured: "
                 "it needs "
                 "train.noise_scale, two micro-batches an update and some updates "
                 "(--measure-seconds)\n";
  } else {
    std::cout
        << "assumed: the noise scale stays as it was measured; it grows while the loss falls, "
           "and larger batches pay then\n";
  }
  std::cout << "assumed: a compressed model loses 0.2 % at 8 bits, 0.5 % at 6, 2 % at 4, 8 % at 3 "
               "and 30 % at 2: `stretto compress --grid` measures it\n"
               "assumed: neither validations nor checkpoints take time\n";
}

// The words that train it.
void print_choice(const BudgetPlan& plan, const Choice& choice) {
  std::cout << "\n" << parameters_text(choice.size.parameters) << " parameters\n";
  for (const auto& words : choice.size.overrides) std::cout << "  " << words << "\n";
  std::cout << "  train.update_freq=" << choice.micro_batches
            << "\n  optim.lr=" << rate_text(plan.learning_rate * choice.rate_factor)
            << "\n  train.max_steps=" << std::llround(choice.updates.value) << "\nan update takes "
            << with_error({choice.update_seconds.value * 1e3, choice.update_seconds.error * 1e3}, 1)
            << " ms on " << counted(plan.budget.processes, "process") << "; "
            << updates_text(choice.updates.value) << " in " << human_duration(plan.budget.seconds)
            << "\n";
  if (choice.stop_updates > 0) {
    std::cout << (choice.stop_updates < choice.updates.value ? "stop at about update "
                                                             : "it pays until about update ")
              << updates_text(std::max(1.0, choice.stop_updates))
              << ", from where a larger model would gain more (train.stop = \"compute_optimal\")\n";
  }
  std::cout << "loss " << with_error(choice.loss, 3) << "; peak memory "
            << megabytes_text(choice.peak_bytes.value) << " ± "
            << megabytes_text(choice.peak_bytes.error) << "; "
            << fixed(plan.budget.seconds / 3600 * double(plan.budget.processes), 2)
            << " hours of processes in all\n";
  std::cout << "deployed";
  if (plan.budget.deploy_seconds > 0) {
    std::cout << " (" << fixed(choice.deploy_seconds * 1e3, 1) << " ms in fp32)";
  }
  std::cout << ":\n";
  for (size_t i = 0; i < std::min(kShownForms, choice.forms.size()); ++i) {
    const auto& form = choice.forms[i];
    std::cout << "  " << form.text() << ": " << megabytes_text(form.bytes(choice.size.parameters))
              << ", " << fixed(form.bits_per_weight(), 2) << " bits a weight, loss about "
              << fixed(choice.loss.value * (1 + form.loss_cost), 3) << "\n";
  }
}

void print_others(const BudgetPlan& plan) {
  const auto& choices = plan.answer.choices;
  if (choices.size() < 2) return;
  std::cout << "\nnext best\n";
  for (size_t i = 1; i < std::min(kShownChoices, choices.size()); ++i) {
    const Choice& choice = choices[i];
    std::cout << "  " << parameters_text(choice.size.parameters) << ", "
              << updates_text(choice.updates.value) << " updates of " << choice.micro_batches
              << ": loss " << with_error(choice.loss, 3) << "; " << join(choice.size.overrides, " ")
              << "\n";
  }
  const Choice& best = choices.front();
  if (best.size.parameters > 2 * plan.model->largest() ||
      best.size.parameters < plan.model->smallest() / 2) {
    std::cout << "\nnote: the best size is far from those that were measured; plan again with a "
                 "configuration of about that size\n";
  }
}

}  // namespace

void print_budget_plan(const BudgetPlan& plan, bool json) {
  if (json) return print_budget_json(plan);
  print_measured(plan);
  print_assumed(plan);
  print_choice(plan, plan.answer.choices.front());
  print_others(plan);
}

}  // namespace stretto::cli
