#include "search/search_charts.h"

#include <algorithm>

#include "base/text.h"
#include "report/ranked_lines.h"

namespace stretto::search {
namespace {

using report::RankedLine;

constexpr size_t kMostTrials = 1000;  // the best of more
constexpr size_t kMostNames = 8;      // values of an axis that are named

// The trials with a result, the best first.
std::vector<TrialId> ranked(const SearchState& state) {
  std::vector<TrialId> order;
  for (const auto& trial : state.trials()) {
    if (state.has_score(trial.id)) order.push_back(trial.id);
  }
  std::sort(order.begin(), order.end(),
            [&](TrialId a, TrialId b) { return state.is_better(a, b); });
  if (order.size() > kMostTrials) order.resize(kMostTrials);
  return order;
}

std::string title_of(const SearchState& state, const Trial& trial) {
  return "trial " + std::to_string(trial.id) + ": " + fixed(*trial.value(), 4) + " at " +
         with_thousands(trial.updates()) + "\n" + state.plan().space.text(trial.point);
}

// The ends of an interval, or its values.
report::ParallelAxis axis_of(const Parameter& parameter) {
  report::ParallelAxis axis{.title = parameter.key.substr(parameter.key.rfind('.') + 1),
                            .names = {}};
  if (!parameter.is_discrete()) {
    axis.names = {{0, parameter.at(0)}, {1, parameter.at(0x1.fffffffffffffp-1)}};
    return axis;
  }
  for (const auto& value : parameter.values) {
    if (axis.names.size() < kMostNames) axis.names.emplace_back(parameter.position(value), value);
  }
  return axis;
}

}  // namespace

std::string render_trial_curves(const SearchState& state, const TrialCurves& curves) {
  const auto& metric = state.plan().metric;
  report::RankedCurves picture{.title = metric + " of each trial over its updates",
                               .last_step = static_cast<double>(state.plan().max_steps)};
  int64_t drawn = 0;
  for (const TrialId id : ranked(state)) {
    const auto found = curves.find(id);
    const auto points = found == curves.end() ? std::vector<report::Point>{} : found->second;
    drawn += points.empty() ? 0 : 1;
    picture.lines.push_back({title_of(state, state.trial(id)), points});
  }
  if (drawn > 0) picture.summary = counted(drawn, "trial");
  return render_ranked_curves(picture);
}

std::string render_points(const SearchState& state) {
  const auto& parameters = state.plan().space.parameters;
  report::ParallelCoordinates picture{
      .title = "Points and their place",
      .summary = "the trials that were trained furthest come first"};
  for (const auto& parameter : parameters) picture.axes.push_back(axis_of(parameter));
  for (const TrialId id : ranked(state)) {
    const Trial& trial = state.trial(id);
    RankedLine line{.title = title_of(state, trial), .points = {}};
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!trial.point[i]) continue;
      line.points.push_back({static_cast<double>(i), parameters[i].position(*trial.point[i])});
    }
    picture.lines.push_back(std::move(line));
  }
  return render_parallel_coordinates(picture);
}

}  // namespace stretto::search
