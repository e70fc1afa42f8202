#include "search/explain.h"

#include "base/text.h"
#include "search/search_files.h"

namespace stretto::search {
namespace {

constexpr size_t kValueColumns = 12;

// Scores are negated where more is better.
std::string score_text(const SearchPlan& plan, std::optional<double> score) {
  if (!score) return "failed";
  return fixed(plan.higher_is_better ? -*score : *score, 4);
}

std::string fate(const SearchState& state, const Rung& rung, const Competitor& competitor) {
  if (competitor.went_on) return "went on";
  if (!competitor.score) return "failed: " + state.trial(competitor.trial).why;
  if (rung.is_last) return state.best() == competitor.trial ? "the best" : "";
  return state.state_of(competitor.trial) == TrialState::kWaiting ? "may go on" : "stopped";
}

std::string row(const SearchState& state, const Rung& rung, const Competitor& competitor) {
  const Trial& trial = state.trial(competitor.trial);
  return "    " + padded("trial " + std::to_string(competitor.trial), 12) +
         padded(score_text(state.plan(), competitor.score), kValueColumns) +
         padded(fate(state, rung, competitor), 11) +
         printable(state.plan().space.text(trial.point), 4000) + "\n";
}

std::string rung_text(const SearchState& state, const Rung& rung) {
  std::string text = "  rung at " + counted(rung.until, "update") + ": " +
                     counted(std::ssize(rung.competitors), "result") +
                     (rung.rule.empty() ? "" : ", " + rung.rule) + "\n";
  bool is_cut = rung.is_last || !rung.cut_off;
  for (const auto& competitor : rung.competitors) {
    if (!is_cut && (!competitor.score || *competitor.score > *rung.cut_off)) {
      text += "    ---- cut-off " + score_text(state.plan(), rung.cut_off) + "\n";
      is_cut = true;
    }
    text += row(state, rung, competitor);
  }
  if (!is_cut && !rung.competitors.empty()) {
    text += "    ---- cut-off " + score_text(state.plan(), rung.cut_off) + "\n";
  }
  return text;
}

}  // namespace

std::string explain(const SearchState& state) {
  const auto& plan = state.plan();
  std::string text = plan.options.method.name() + " by " + plan.metric + ", " +
                     (plan.higher_is_better ? "more" : "less") + " is better; " +
                     std::to_string(state.trials().size()) + " of " + plan.budget_text() +
                     " begun, " + std::to_string(state.running().size()) +
                     " without a result yet\n";
  for (const auto& remark : {plan.refused_text(), plan.cut_text()}) {
    if (!remark.empty()) text += remark + "\n";
  }
  int64_t bracket = -1;
  const auto lines = state.scheduler().plan();
  for (const auto& rung : state.scheduler().rungs()) {
    if (rung.bracket != bracket) {
      bracket = rung.bracket;
      text += "\n" + lines.at(static_cast<size_t>(bracket)) + "\n";
    }
    text += rung_text(state, rung);
  }
  return text;
}

}  // namespace stretto::search
