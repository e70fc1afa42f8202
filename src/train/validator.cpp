#include "train/validator.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stretto::train {

namespace {

/// The states of both are one part of a checkpoint.
constexpr const char* kOfAverage = "average.";

}  // namespace

Validator::Validator(Task& task, ValidatorSetup setup)
    : task_(task), setup_(std::move(setup)), nonmonotone_(setup_.average_nonmono) {}

// The end of a run validates too, and before it is saved: the last checkpoint then knows of that
// validation, and a finished run that is started again has nothing left to do. A run that was ended
// before its first checkpoint begins afresh, with the validation of its start.
bool Validator::is_due(const runs::TrainState& state, bool at_end) const {
  if (!task_.can_validate()) return false;
  if (state.step == 0) return setup_.eval.at_start && !validated_start_;
  if (state.validated_step == state.step) return false;
  return state.step % setup_.eval.every == 0 || at_end;
}

Validation Validator::validate() {
  task_.model().eval();
  const kernels::ComputeScope arithmetic(setup_.compute);
  return task_.validate();
}

bool Validator::judge(const Validation& validation, runs::TrainState& state) {
  const Score& best_by = score_to_rank_by(validation.scores);
  if (state.step == 0) {
    validated_start_ = true;
    return false;
  }
  const double quality = setup_.higher_is_better ? best_by.value : -best_by.value;
  if (std::isfinite(quality)) state.quality[state.step] = quality;  // JSON knows no NaN
  state.validated_step = state.step;
  // The end of a run validates between intervals too: one that goes on later must not notice, so
  // plateau, train.patience and train.average_nonmono neither count that validation nor compare
  // others with it.
  if (const int64_t every = setup_.eval.every; state.step % every == 0) {
    const bool progress = state.best_step(every) == state.step;
    const bool counts = !progress && state.stepped() > setup_.pruned_after;
    state.bad_validations = counts ? state.bad_validations + 1 : 0;
    const Score* loss = find_score(validation.scores, "loss");
    const double judged = loss ? loss->value : -quality;
    plateau_ = optim::after_validation(setup_.schedule, plateau_, judged);
    nonmonotone_.look(judged, state.stepped());
  }
  return state.best_step() == state.step;
}

void Validator::begin_anew(runs::TrainState& state) {
  state.best_from = state.step + 1;  // the validation of this step was before
  state.bad_validations = 0;
  plateau_ = {.reductions = plateau_.reductions};
  nonmonotone_.forget();
}

const Score& Validator::score_to_rank_by(const std::vector<Score>& scores) const {
  if (const Score* score = find_score(scores, setup_.eval.best_metric)) return *score;
  std::vector<std::string> names;
  for (const Score& score : scores) names.push_back(score.name);
  throw Error(ExitCode::kUsage,
              "eval.best_metric: a validation has no score `" + setup_.eval.best_metric + "`",
              names.empty() ? "this task has none" : "it has " + join(names, ", "));
}

std::map<std::string, double> Validator::state() const {
  std::map<std::string, double> state{
      {"without_progress", static_cast<double>(plateau_.without_progress)},
      {"reductions", static_cast<double>(plateau_.reductions)}};
  if (std::isfinite(plateau_.best)) state["best"] = plateau_.best;
  for (const auto& [name, value] : nonmonotone_.state()) state[kOfAverage + name] = value;
  return state;
}

void Validator::restore(const std::map<std::string, double>& state) {
  const optim::Plateau fresh;
  const auto value = [&](const char* name, double otherwise) {
    const auto found = state.find(name);
    return found == state.end() ? otherwise : found->second;
  };
  plateau_ = {.best = value("best", fresh.best),
              .without_progress = static_cast<int64_t>(value("without_progress", 0)),
              .reductions = static_cast<int64_t>(value("reductions", 0))};
  std::map<std::string, double> of_average;
  for (const auto& [name, number] : state) {
    if (name.starts_with(kOfAverage)) of_average[name.substr(std::strlen(kOfAverage))] = number;
  }
  nonmonotone_.restore(of_average);
}

}  // namespace stretto::train
