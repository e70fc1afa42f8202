#include "ctc/prefix_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "ctc/log_add.h"

namespace stretto::ctc {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

}  // namespace

PrefixScores::PrefixScores(std::span<const float> log_probs, int64_t num_classes)
    : num_classes_(num_classes),
      num_frames_(std::ssize(log_probs) / num_classes),
      log_probs_(log_probs.begin(), log_probs.end()) {
  if (num_frames_ * num_classes != std::ssize(log_probs)) {
    throw std::invalid_argument("[prefix_scores] frames of another number of classes");
  }
  probs_.reserve(log_probs_.size());
  for (const double one : log_probs_) probs_.push_back(std::exp(one));
}

PrefixScores::State PrefixScores::start() const {
  State state;
  state.ends_with_label.assign(static_cast<size_t>(num_frames_) + 1, kNothing);
  state.ends_with_blank.assign(1, 0.0);
  for (int64_t t = 0; t < num_frames_; ++t) {
    state.ends_with_blank.push_back(state.ends_with_blank.back() + log_prob(t, num_classes_ - 1));
  }
  return state;
}

PrefixScores::State PrefixScores::extended(const State& state, int64_t label) const {
  const auto size = static_cast<size_t>(num_frames_) + 1;
  State next;
  next.last = label;
  next.prefix = kNothing;
  next.ends_with_label.assign(size, kNothing);
  next.ends_with_blank.assign(size, kNothing);
  for (size_t t = 1; t < size; ++t) {
    const auto frame = static_cast<int64_t>(t) - 1;
    // A label that repeats the last one needs a blank in between.
    double before = state.ends_with_blank[t - 1];
    if (label != state.last) before = log_add(before, state.ends_with_label[t - 1]);
    const double begins = before + log_prob(frame, label);
    next.ends_with_label[t] = log_add(begins, next.ends_with_label[t - 1] + log_prob(frame, label));
    next.ends_with_blank[t] = log_add(next.ends_with_blank[t - 1], next.ends_with_label[t - 1]) +
                              log_prob(frame, num_classes_ - 1);
    next.prefix = log_add(next.prefix, begins);
  }
  return next;
}

void PrefixScores::gains(const State& state, std::span<double> gains) const {
  const auto frames = static_cast<size_t>(num_frames_);
  const auto width = static_cast<size_t>(num_classes_);
  // Where a label may begin: behind any alignment, or for the last label behind a blank.
  std::vector<double> any(frames);
  double most = kNothing;
  for (size_t t = 0; t < frames; ++t) {
    any[t] = log_add(state.ends_with_blank[t], state.ends_with_label[t]);
    most = std::max(most, any[t]);
  }
  const auto gain_of = [&](double log_sum) {
    const double gain = log_sum - state.prefix;
    return std::isnan(gain) || gain < kImpossible ? kImpossible : gain;
  };
  std::vector<double> sums(width, 0.0);
  double of_last = 0;
  if (most > kNothing) {
    for (size_t t = 0; t < frames; ++t) {
      const double weight = std::exp(any[t] - most);
      for (size_t c = 0; c + 1 < width; ++c) sums[c] += weight * probs_[t * width + c];
      if (state.last < 0) continue;
      of_last += std::exp(state.ends_with_blank[t] - most) *
                 probs_[t * width + static_cast<size_t>(state.last)];
    }
  }
  if (state.last >= 0) sums[static_cast<size_t>(state.last)] = of_last;
  for (size_t c = 0; c + 1 < width; ++c) gains[c] = gain_of(most + std::log(sums[c]));
  gains[width - 1] = gain_of(log_add(state.ends_with_blank.back(), state.ends_with_label.back()));
}

}  // namespace stretto::ctc
