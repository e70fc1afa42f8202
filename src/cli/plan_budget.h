#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/plan_inputs.h"
#include "plan/budget.h"

namespace stretto::cli {

/// `stretto plan --hours`: how to spend a budget, and what that rests on.
struct BudgetPlan {
  plan::Budget budget;
  std::vector<plan::MeasuredSize> measured;
  std::vector<std::string> runs;         ///< where each was measured
  std::optional<plan::SizeModel> model;  ///< never empty
  plan::Plan answer;
  std::string unit;          ///< of work: "tokens"
  std::string batch_unit;    ///< of the noise scale
  double learning_rate = 0;  ///< optim.lr of the configuration
  bool batch_stays = false;  ///< train.update_freq cuts the batch, and makes it no larger
  std::vector<std::string> assumed;
};

/// Trains a few sizes for about a minute, in folders that a second plan reads again, and looks for
/// the size, batch, rate and number of updates with the lowest loss. Throws Error(kUsage) where no
/// size is within the budget, and says by how much.
BudgetPlan make_budget_plan(const PlanOptions& options);

/// Bytes for people: "0.0012 MB", "4.125 MB", "230 MB".
std::string megabytes_text(double bytes);

/// Prints it, for people or as one JSON object.
void print_budget_plan(const BudgetPlan& plan, bool json);

}  // namespace stretto::cli
