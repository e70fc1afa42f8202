#include "search/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace stretto::search {
namespace {

constexpr size_t kQuarters = 4;
constexpr size_t kLeastPairs = 3;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Ranks from 1; ties share their mean rank.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
    begin = end;
  }
  return ranks;
}

// Where each trial with a report stands in its bracket: 0 the best, towards 1 the worst.
std::map<TrialId, double> standings(const SearchState& state) {
  std::map<int64_t, std::vector<Competitor>> brackets;
  for (const auto& trial : state.trials()) {
    if (trial.reports.empty()) continue;
    brackets[state.scheduler().bracket_of(trial.id)].push_back(
        {.trial = trial.id, .score = state.plan().score_of(trial.reports.front().value)});
  }
  std::map<TrialId, double> standings;
  for (auto& [bracket, competitors] : brackets) {
    std::sort(competitors.begin(), competitors.end(), ranks_before);
    for (size_t i = 0; i < competitors.size(); ++i) {
      standings[competitors[i].trial] =
          static_cast<double>(i) / static_cast<double>(competitors.size());
    }
  }
  return standings;
}

struct Pairs {
  std::vector<std::string> texts;
  std::vector<double> positions, results;
};

std::vector<std::vector<double>> groups_of(const Parameter& parameter, const Pairs& pairs) {
  std::map<std::string, std::vector<double>> groups;
  const auto ranks = ranks_of(pairs.positions);
  for (size_t i = 0; i < pairs.results.size(); ++i) {
    const double share = (ranks[i] - 0.5) / static_cast<double>(ranks.size());
    const auto quarter = std::min(kQuarters - 1, static_cast<size_t>(share * kQuarters));
    groups[parameter.is_discrete() ? pairs.texts[i] : std::to_string(quarter)].push_back(
        pairs.results[i]);
  }
  std::vector<std::vector<double>> all;
  for (auto& [name, values] : groups) all.push_back(std::move(values));
  return all;
}

}  // namespace

std::optional<double> epsilon_squared(const std::vector<std::vector<double>>& groups) {
  std::vector<double> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  if (groups.size() < 2 || all.size() <= groups.size()) return std::nullopt;
  const double centre = mean(all);
  double between = 0, within = 0;
  for (const auto& group : groups) {
    const double own = mean(group);
    between += static_cast<double>(group.size()) * (own - centre) * (own - centre);
    for (const double value : group) within += (value - own) * (value - own);
  }
  if (between + within <= 0) return std::nullopt;
  const auto k = static_cast<double>(groups.size()), n = static_cast<double>(all.size());
  return std::max(0.0, (between - (k - 1) * within / (n - k)) / (between + within));
}

std::optional<double> spearman(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() < kLeastPairs) return std::nullopt;
  const auto a = ranks_of(x), b = ranks_of(y);
  const double centre_a = mean(a), centre_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - centre_a) * (b[i] - centre_b);
    aa += (a[i] - centre_a) * (a[i] - centre_a);
    bb += (b[i] - centre_b) * (b[i] - centre_b);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

std::vector<Importance> importances(const SearchState& state) {
  const auto results = standings(state);
  const auto& parameters = state.plan().space.parameters;
  std::vector<Importance> all;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Pairs pairs;
    for (const auto& [trial, result] : results) {
      const auto& value = state.trial(trial).point[i];
      if (!value) continue;
      pairs.texts.push_back(*value);
      pairs.positions.push_back(parameters[i].position(*value));
      pairs.results.push_back(result);
    }
    Importance one{.parameter = i, .trials = static_cast<int64_t>(pairs.results.size())};
    one.variance_share = epsilon_squared(groups_of(parameters[i], pairs));
    if (parameters[i].has_order()) one.rank_correlation = spearman(pairs.positions, pairs.results);
    all.push_back(one);
  }
  std::stable_sort(all.begin(), all.end(), [](const Importance& a, const Importance& b) {
    return a.variance_share.value_or(-1) > b.variance_share.value_or(-1);
  });
  return all;
}

}  // namespace stretto::search
