#include "kernels/ctc/alignments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace stretto::kernels::ctc {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();  // log 0

double log_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNothing ? a : a + std::log1p(std::exp(b - a));
}

double log_sum(double a, double b, double c) {
  if (a < b) std::swap(a, b);
  if (a < c) std::swap(a, c);
  return a == kNothing ? a : a + std::log1p(std::exp(b - a) + std::exp(c - a));
}

/// The logarithm of the sum of exp(scores) of a frame.
template <class T>
double log_normaliser(const T* scores, int64_t num_classes) {
  const T high = *std::max_element(scores, scores + num_classes);
  double sum = 0;
  for (int64_t k = 0; k < num_classes; ++k) sum += std::exp(scores[k] - high);
  return static_cast<double>(high) + std::log(sum);
}

/// The states of an alignment: a blank, a label, a blank, …, a label, a blank. From a frame to the
/// next, an alignment stays, or goes on by one state; or by two, over a blank between two labels
/// that differ.
template <class T>
class Lattice {
 public:
  explicit Lattice(const Sequence<T>& sequence)
      : sequence_(sequence),
        num_states_(2 * static_cast<int64_t>(sequence.labels.size()) + 1),
        normalisers_(static_cast<size_t>(sequence.num_frames)) {
    for (int64_t t = 0; t < sequence.num_frames; ++t) {
      normalisers_[static_cast<size_t>(t)] =
          log_normaliser(sequence.frame(t), sequence.num_classes);
    }
  }

  int64_t num_states() const { return num_states_; }
  int64_t class_of(int64_t state) const {
    return state % 2 == 0 ? sequence_.blank : sequence_.labels[static_cast<size_t>(state / 2)];
  }
  /// Whether an alignment may come to a state from two states before it.
  bool skips_to(int64_t state) const {
    return state >= 2 && state % 2 == 1 && class_of(state) != class_of(state - 2);
  }
  /// log p(class | frame)
  double log_p(int64_t t, int64_t label) const {
    return static_cast<double>(sequence_.frame(t)[label]) - normalisers_[static_cast<size_t>(t)];
  }
  /// The states that an alignment may be in at a frame: those that it can have reached, and from
  /// which the end can still be reached.
  int64_t first_state(int64_t t) const {
    return std::max<int64_t>(0, num_states_ - 2 * (sequence_.num_frames - t));
  }
  int64_t end_state(int64_t t) const { return std::min(num_states_, 2 * (t + 1)); }

 private:
  const Sequence<T>& sequence_;
  const int64_t num_states_;
  std::vector<double> normalisers_;
};

/// The probabilities of all beginnings: [T, S], log p(frames up to t, in state s at t).
template <class T>
std::vector<double> forward(const Lattice<T>& lattice, int64_t num_frames) {
  const int64_t states = lattice.num_states();
  std::vector<double> alpha(static_cast<size_t>(num_frames * states), kNothing);
  for (int64_t s = lattice.first_state(0); s < lattice.end_state(0); ++s) {
    alpha[static_cast<size_t>(s)] = lattice.log_p(0, lattice.class_of(s));
  }
  for (int64_t t = 1; t < num_frames; ++t) {
    const double* before = alpha.data() + (t - 1) * states;
    double* now = alpha.data() + t * states;
    for (int64_t s = lattice.first_state(t); s < lattice.end_state(t); ++s) {
      const double by_one = s > 0 ? before[s - 1] : kNothing;
      const double reached = lattice.skips_to(s) ? log_sum(before[s], by_one, before[s - 2])
                                                 : log_sum(before[s], by_one);
      now[s] = reached + lattice.log_p(t, lattice.class_of(s));
    }
  }
  return alpha;
}

/// One frame back: from log p(frames behind t + 1 | state s at t + 1) to the same of t. The state
/// of a frame is read before it is written, from the first on.
template <class T>
void go_back(const Lattice<T>& lattice, int64_t t, std::vector<double>& beta) {
  const int64_t end = lattice.end_state(t + 1);
  const auto onwards = [&](int64_t s) {
    return s < end ? beta[static_cast<size_t>(s)] + lattice.log_p(t + 1, lattice.class_of(s))
                   : kNothing;
  };
  for (int64_t s = lattice.first_state(t); s < lattice.end_state(t); ++s) {
    const double over = s + 2 < end && lattice.skips_to(s + 2) ? onwards(s + 2) : kNothing;
    beta[static_cast<size_t>(s)] = log_sum(onwards(s), onwards(s + 1), over);
  }
}

template <class T>
void write_slopes(const Lattice<T>& lattice, const Sequence<T>& sequence,
                  const std::vector<double>& alpha, double log_likelihood, T* slopes) {
  const int64_t states = lattice.num_states(), classes = sequence.num_classes;
  std::vector<double> beta(static_cast<size_t>(states), kNothing);
  for (int64_t s = std::max<int64_t>(0, states - 2); s < states; ++s) {
    beta[static_cast<size_t>(s)] = 0;
  }
  for (int64_t t = sequence.num_frames - 1; t >= 0; --t) {
    if (t + 1 < sequence.num_frames) go_back(lattice, t, beta);
    T* slope = slopes + t * classes;
    for (int64_t k = 0; k < classes; ++k) slope[k] = static_cast<T>(std::exp(lattice.log_p(t, k)));
    for (int64_t s = lattice.first_state(t); s < lattice.end_state(t); ++s) {
      const double here = alpha[static_cast<size_t>(t * states + s)];
      slope[lattice.class_of(s)] -=
          static_cast<T>(std::exp(here + beta[static_cast<size_t>(s)] - log_likelihood));
    }
  }
}

template <class T>
double loss(const Sequence<T>& sequence, T* slopes) {
  if (sequence.num_frames == 0) return 0;  // and no labels: there is one alignment, without frames
  const Lattice<T> lattice(sequence);
  const int64_t states = lattice.num_states();
  const std::vector<double> alpha = forward(lattice, sequence.num_frames);
  const double* last = alpha.data() + (sequence.num_frames - 1) * states;
  const double log_likelihood = log_sum(last[states - 1], states > 1 ? last[states - 2] : kNothing);
  if (slopes != nullptr) write_slopes(lattice, sequence, alpha, log_likelihood, slopes);
  return -log_likelihood;
}

}  // namespace

int64_t frames_needed(std::span<const int64_t> labels) {
  auto frames = static_cast<int64_t>(labels.size());
  for (size_t i = 1; i < labels.size(); ++i) frames += labels[i] == labels[i - 1] ? 1 : 0;
  return frames;
}

double loss_of(const Sequence<float>& sequence, float* slopes) {
  return loss(sequence, slopes);
}

double loss_of(const Sequence<double>& sequence, double* slopes) {
  return loss(sequence, slopes);
}

}  // namespace stretto::kernels::ctc
