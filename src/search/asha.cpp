#include "search/asha.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stretto::search {
namespace {

// floor(log_d value) + 1, in whole numbers: logarithms of powers are not exact.
int64_t num_levels(int64_t value, int64_t divisor) {
  int64_t levels = 1;
  while (value >= divisor) {
    value /= divisor;
    ++levels;
  }
  return levels;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) result *= base;
  return result;
}

std::vector<int64_t> numbers_of_rungs(const AshaOptions& options, int64_t most) {
  int64_t least = most;
  if (options.mode == "conservative") least = 1;
  if (options.mode == "standard") least = (most - 1) / 2 + 1;
  std::vector<int64_t> numbers;
  for (int64_t rungs = most; rungs >= least; --rungs) numbers.push_back(rungs);
  return numbers;
}

std::vector<double> weights_of(const std::vector<AshaBracket>& brackets, int64_t divisor) {
  std::vector<double> weights;
  for (const auto& bracket : brackets) {
    const auto rungs = static_cast<double>(bracket.lengths.size());
    weights.push_back(std::pow(static_cast<double>(divisor), rungs - 1) / rungs);
  }
  return weights;
}

void share_out(std::vector<AshaBracket>& brackets, int64_t divisor, int64_t max_trials) {
  const auto weights = weights_of(brackets, divisor);
  double total = 0;
  for (const double weight : weights) total += weight;
  int64_t given = 0;
  for (size_t i = 0; i < brackets.size(); ++i) {
    const double share = weights[i] / total * static_cast<double>(max_trials);
    brackets[i].max_trials = std::max<int64_t>(1, static_cast<int64_t>(share));
    given += brackets[i].max_trials;
  }
  brackets.front().max_trials += std::max<int64_t>(0, max_trials - given);
  const int64_t concurrent = std::max(brackets.back().max_trials, divisor);
  for (auto& bracket : brackets) bracket.max_concurrent = concurrent;
}

}  // namespace

std::vector<AshaBracket> asha_brackets(const AshaOptions& options, int64_t max_trials,
                                       int64_t max_steps) {
  const int64_t d = options.divisor;
  const int64_t most =
      std::min({options.max_rungs, num_levels(max_steps, d), num_levels(max_trials, d)});
  std::vector<AshaBracket> brackets;
  for (const int64_t rungs : numbers_of_rungs(options, most)) {
    AshaBracket bracket;
    for (int64_t i = 0; i < rungs; ++i) {
      bracket.lengths.push_back(std::max<int64_t>(1, max_steps / power(d, rungs - 1 - i)));
    }
    brackets.push_back(std::move(bracket));
  }
  share_out(brackets, d, max_trials);
  return brackets;
}

Asha::Asha(std::vector<AshaBracket> brackets, int64_t divisor) : divisor_(divisor) {
  for (auto& bracket : brackets) {
    State state;
    state.rungs.resize(bracket.lengths.size());
    state.arrivals.resize(bracket.lengths.size());
    state.bracket = std::move(bracket);
    brackets_.push_back(std::move(state));
  }
}

size_t Asha::quota(const std::vector<Competitor>& rung) const {
  return rung.size() / static_cast<size_t>(divisor_);
}

std::optional<Job> Asha::promotion() {
  std::optional<Job> best;
  Competitor* chosen = nullptr;
  State* of = nullptr;
  size_t to = 0;
  for (auto& state : brackets_) {
    if (state.running >= state.bracket.max_concurrent) continue;
    for (size_t i = 0; i + 1 < state.rungs.size(); ++i) {
      auto& rung = state.rungs[i];
      const int64_t until = state.bracket.lengths[i + 1];
      if (best && until <= best->until) continue;
      for (size_t k = 0; k < quota(rung); ++k) {
        if (rung[k].went_on || !rung[k].score) continue;
        best = Job{.trial = rung[k].trial, .until = until};
        chosen = &rung[k];
        of = &state;
        to = i + 1;
        break;
      }
    }
  }
  if (best) {
    chosen->went_on = true;
    ++of->arrivals[to];
    ++of->running;
  }
  return best;
}

std::optional<Job> Asha::next(bool may_begin) {
  if (auto job = promotion()) return job;
  if (!may_begin) return std::nullopt;
  State* furthest_behind = nullptr;
  size_t number = 0;
  for (size_t i = 0; i < brackets_.size(); ++i) {
    State& state = brackets_[i];
    const int64_t most = state.bracket.max_trials;
    if (state.arrivals[0] >= most || state.running >= state.bracket.max_concurrent) continue;
    // begun / most of one bracket against that of another, without a division
    if (furthest_behind != nullptr && state.arrivals[0] * furthest_behind->bracket.max_trials >=
                                          furthest_behind->arrivals[0] * most) {
      continue;
    }
    furthest_behind = &state;
    number = i;
  }
  if (furthest_behind == nullptr) return std::nullopt;
  const auto trial = static_cast<TrialId>(bracket_of_.size());
  bracket_of_[trial] = static_cast<int64_t>(number);
  ++furthest_behind->arrivals[0];
  ++furthest_behind->running;
  return Job{.trial = trial, .until = furthest_behind->bracket.lengths.front(), .begins = true};
}

void Asha::report(const Result& result) {
  State& state = brackets_[static_cast<size_t>(bracket_of_.at(result.trial))];
  --state.running;
  const auto& lengths = state.bracket.lengths;
  const auto number = std::find(lengths.begin(), lengths.end(), result.until) - lengths.begin();
  auto& rung = state.rungs[static_cast<size_t>(number)];
  const Competitor arrived{.trial = result.trial, .score = result.score};
  rung.insert(std::upper_bound(rung.begin(), rung.end(), arrived, ranks_before), arrived);
}

void Asha::raise_budget(int64_t max_trials) {
  std::vector<AshaBracket> brackets;
  for (const auto& state : brackets_) brackets.push_back(state.bracket);
  share_out(brackets, divisor_, max_trials);
  for (size_t i = 0; i < brackets.size(); ++i) {
    brackets_[i].bracket.max_trials =
        std::max(brackets_[i].bracket.max_trials, brackets[i].max_trials);
    brackets_[i].bracket.max_concurrent = brackets[i].max_concurrent;
  }
}

// An upper bound of each rung's quota when everything has been reported: who is behind it now, of
// results that can only grow in number, stays behind it.
std::vector<int64_t> Asha::final_quotas(const State& state) const {
  std::vector<int64_t> quotas;
  int64_t to_come = state.bracket.max_trials - state.arrivals[0];
  for (size_t i = 0; i < state.rungs.size(); ++i) {
    const auto& rung = state.rungs[i];
    const auto reported = static_cast<int64_t>(rung.size());
    to_come += state.arrivals[i] - reported;
    quotas.push_back((reported + to_come) / divisor_);
    const auto within = std::min(static_cast<size_t>(quotas.back()), rung.size());
    for (size_t k = 0; k < within; ++k) {
      if (!rung[k].went_on && rung[k].score) ++to_come;
    }
  }
  return quotas;
}

bool Asha::is_over(TrialId trial) const {
  const State& state = brackets_[static_cast<size_t>(bracket_of_.at(trial))];
  const auto quotas = final_quotas(state);
  for (size_t i = state.rungs.size(); i-- > 0;) {
    const auto& rung = state.rungs[i];
    const auto found = std::find_if(rung.begin(), rung.end(),
                                    [&](const Competitor& c) { return c.trial == trial; });
    if (found == rung.end()) continue;
    if (found->went_on) return false;  // on its way to the next rung
    if (i + 1 == state.rungs.size() || !found->score) return true;
    return found - rung.begin() >= quotas[i];
  }
  return false;
}

std::vector<Rung> Asha::rungs() const {
  std::vector<Rung> all;
  for (size_t b = 0; b < brackets_.size(); ++b) {
    const State& state = brackets_[b];
    for (size_t i = 0; i < state.rungs.size(); ++i) {
      Rung rung{.bracket = static_cast<int64_t>(b),
                .until = state.bracket.lengths[i],
                .is_last = i + 1 == state.rungs.size(),
                .competitors = state.rungs[i]};
      if (!rung.is_last) {
        rung.quota = quota(state.rungs[i]);
        if (rung.quota > 0) rung.cut_off = rung.competitors[rung.quota - 1].score;
        rung.rule = "the best " + std::to_string(rung.quota) + " of " +
                    std::to_string(rung.competitors.size()) + " go on (one of " +
                    std::to_string(divisor_) + ")";
      }
      all.push_back(std::move(rung));
    }
  }
  return all;
}

std::vector<std::string> Asha::plan() const {
  std::vector<std::string> lines;
  for (size_t b = 0; b < brackets_.size(); ++b) {
    const auto& bracket = brackets_[b].bracket;
    std::vector<std::string> lengths;
    for (const int64_t length : bracket.lengths) lengths.push_back(with_thousands(length));
    lines.push_back("bracket " + std::to_string(b) + ": " + counted(bracket.max_trials, "trial") +
                    ", rungs at " + join(lengths, ", ") + " updates");
  }
  return lines;
}

}  // namespace stretto::search
