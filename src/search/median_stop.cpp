#include "search/median_stop.h"

#include <algorithm>

#include "base/text.h"

namespace stretto::search {

MedianStop::MedianStop(const StopOptions& options, int64_t max_trials, int64_t max_steps)
    : options_(options), max_trials_(max_trials), max_steps_(max_steps) {
  if (options_.check_every == 0) options_.check_every = std::max<int64_t>(1, max_steps / 5);
}

int64_t MedianStop::check_after(int64_t step) const {
  return std::min(max_steps_, (step / options_.check_every + 1) * options_.check_every);
}

std::optional<Job> MedianStop::next(bool may_begin) {
  if (!waiting_.empty()) {
    const TrialId trial = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    return Job{.trial = trial, .until = check_after(curves_.at(trial).rbegin()->first)};
  }
  if (!may_begin || begun_ >= max_trials_) return std::nullopt;
  return Job{.trial = begun_++, .until = check_after(0), .begins = true};
}

std::optional<double> MedianStop::best_until(const Curve& curve, int64_t step) const {
  std::optional<double> best;
  for (const auto& [at, score] : curve) {
    if (at <= step && score && (!best || *score < *best)) best = score;
  }
  return best;
}

std::optional<double> MedianStop::median_at(int64_t step, TrialId without) const {
  std::vector<double> means;
  for (const auto& [trial, curve] : curves_) {
    if (trial == without || curve.rbegin()->first < step) continue;
    double sum = 0;
    int64_t count = 0;
    for (const auto& [at, score] : curve) {
      if (at > step || !score) continue;
      sum += *score;
      ++count;
    }
    if (count > 0) means.push_back(sum / static_cast<double>(count));
  }
  if (static_cast<int64_t>(means.size()) < options_.min_trials) return std::nullopt;
  std::sort(means.begin(), means.end());
  const size_t half = means.size() / 2;
  return means.size() % 2 == 1 ? means[half] : (means[half - 1] + means[half]) / 2;
}

void MedianStop::report(const Result& result) {
  Curve& curve = curves_[result.trial];
  curve[result.until] = result.score;
  judged_by_.erase(result.trial);  // by those at an earlier look
  const auto over = [&] {
    if (!result.score || result.until >= max_steps_) return true;
    if (result.until < options_.grace_steps) return false;
    const auto median = median_at(result.until, result.trial);
    judged_by_[result.trial] = median;
    return median && *best_until(curve, result.until) > *median;
  };
  (over() ? over_ : waiting_).insert(result.trial);
}

void MedianStop::raise_budget(int64_t max_trials) {
  max_trials_ = std::max(max_trials_, max_trials);
}

std::vector<Rung> MedianStop::rungs() const {
  std::set<int64_t> checks{max_steps_};
  for (const auto& [trial, curve] : curves_) {
    for (const auto& [until, score] : curve) checks.insert(until);
  }
  std::vector<Rung> all;
  for (const int64_t until : checks) {
    Rung rung{.until = until, .is_last = until == max_steps_};
    for (const auto& [trial, curve] : curves_) {
      const auto here = curve.find(until);
      if (here == curve.end()) continue;
      const bool last_look = curve.rbegin()->first == until;
      // At the end no trial is judged any more: trials rank by their last scores.
      const bool is_judged = !rung.is_last && here->second;
      rung.competitors.push_back({.trial = trial,
                                  .score = is_judged ? best_until(curve, until) : here->second,
                                  .went_on = !last_look || !over_.contains(trial)});
      if (!rung.is_last && last_look && over_.contains(trial) && judged_by_.contains(trial)) {
        rung.cut_off = judged_by_.at(trial);
      }
    }
    std::sort(rung.competitors.begin(), rung.competitors.end(), ranks_before);
    for (const auto& competitor : rung.competitors) rung.quota += competitor.went_on ? 1 : 0;
    if (!rung.is_last && !rung.cut_off) rung.cut_off = median_at(until, /*without=*/-1);
    if (!rung.is_last) {
      rung.rule = "best score so far against the median of the others' means (from " +
                  counted(options_.min_trials, "other trial") + " and " +
                  counted(options_.grace_steps, "update") + " on)";
    }
    all.push_back(std::move(rung));
  }
  return all;
}

std::vector<std::string> MedianStop::plan() const {
  return {trials_text(max_trials_, max_steps_) + ", each compared with the median every " +
          counted(options_.check_every, "update")};
}

}  // namespace stretto::search
