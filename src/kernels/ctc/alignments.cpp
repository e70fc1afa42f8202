#include "kernels/ctc/alignments.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace stretto::kernels::ctc {
namespace {

constexpr int64_t kExponentOfZero = -(int64_t{1} << 60);

/// m 2^e. Probabilities of alignments lie far below the least double. Their sums and products need
/// no logarithm this way, which would take most of the time.
struct Scaled {
  double m = 0;                 ///< in [1, 2) or 0; of numbers on their way in [1e-270, 8)
  int64_t e = kExponentOfZero;  ///< of 0 this one
};

/// 2^d for d up to 1023; 0 where that is too little to change what it is added to.
double power_of_two(int64_t d) {
  return d < -1022 ? 0 : std::bit_cast<double>(static_cast<uint64_t>(d + 1023) << 52);
}

Scaled normed(double m, int64_t e) {
  if (m == 0) return {};
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1, kOne = uint64_t{1023} << 52;
  const auto bits = std::bit_cast<uint64_t>(m);
  return {.m = std::bit_cast<double>((bits & kFraction) | kOne),
          .e = e + static_cast<int64_t>(bits >> 52) - 1023};
}

Scaled sum_of(const Scaled& a, const Scaled& b) {
  const int64_t e = std::max(a.e, b.e);
  return {.m = a.m * power_of_two(a.e - e) + b.m * power_of_two(b.e - e), .e = e};
}

Scaled product_of(const Scaled& a, const Scaled& b) {
  return {.m = a.m * b.m, .e = a.e + b.e};
}

double log_of(const Scaled& x) {
  if (x.m == 0) return -std::numeric_limits<double>::infinity();
  return std::log(x.m) + static_cast<double>(x.e) * std::numbers::ln2;
}

/// From a natural logarithm; what is below 2^-2^50 is 0.
Scaled exp_of(double log_p) {
  const double bits = log_p / std::numbers::ln2, whole = std::floor(bits);
  if (!(whole > -0x1p50)) return {};
  return {.m = std::exp2(bits - whole), .e = static_cast<int64_t>(whole)};
}

/// The logarithm of the sum of exp(scores) of a frame.
template <class T>
double log_normaliser(const T* scores, int64_t num_classes) {
  const double high = *std::max_element(scores, scores + num_classes);
  double sum = 0;
  for (int64_t k = 0; k < num_classes; ++k) sum += std::exp(static_cast<double>(scores[k]) - high);
  return high + std::log(sum);
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
        classes_(static_cast<size_t>(num_states_), sequence.blank),
        skips_(static_cast<size_t>(num_states_), false),
        normalisers_(static_cast<size_t>(sequence.num_frames),
                     std::numeric_limits<double>::quiet_NaN()) {
    for (size_t i = 0; i < sequence.labels.size(); ++i) {
      classes_[2 * i + 1] = sequence.labels[i];
      skips_[2 * i + 1] = i > 0 && sequence.labels[i] != sequence.labels[i - 1];
    }
  }

  int64_t num_states() const { return num_states_; }
  int64_t class_of(int64_t state) const { return classes_[static_cast<size_t>(state)]; }
  /// Whether an alignment may come to a state from two states before it.
  bool skips_to(int64_t state) const { return skips_[static_cast<size_t>(state)]; }
  /// The states that an alignment may be in at a frame: those that it can have reached, and from
  /// which the end can still be reached.
  int64_t first_state(int64_t t) const {
    return std::max<int64_t>(0, num_states_ - 2 * (sequence_.num_frames - t));
  }
  int64_t end_state(int64_t t) const { return std::min(num_states_, 2 * (t + 1)); }

  /// p(class of a state | frame).
  Scaled emission(int64_t t, int64_t state) const {
    constexpr T kSmall = static_cast<T>(1e-30);
    const T share = sequence_.shares_at(t)[class_of(state)];
    if (share >= kSmall) return {.m = static_cast<double>(share), .e = 0};
    double& normaliser = normalisers_[static_cast<size_t>(t)];
    const T* scores = sequence_.scores_at(t);
    if (std::isnan(normaliser)) normaliser = log_normaliser(scores, sequence_.num_classes);
    return exp_of(static_cast<double>(scores[class_of(state)]) - normaliser);
  }

 private:
  const Sequence<T>& sequence_;
  const int64_t num_states_;
  std::vector<int64_t> classes_;
  std::vector<char> skips_;
  mutable std::vector<double> normalisers_;  // of frames in which a state's class is far below 1
};

/// The probabilities of all beginnings: [T, S], p(frames up to t, in state s at t).
template <class T>
std::vector<Scaled> forward(const Lattice<T>& lattice, int64_t num_frames) {
  const int64_t states = lattice.num_states();
  std::vector<Scaled> alpha(static_cast<size_t>(num_frames * states));
  const auto reach = [&](Scaled& state, const Scaled& before, int64_t t, int64_t s) {
    const Scaled p = product_of(before, lattice.emission(t, s));
    state = normed(p.m, p.e);
  };
  for (int64_t s = lattice.first_state(0); s < lattice.end_state(0); ++s) {
    reach(alpha[static_cast<size_t>(s)], {.m = 1, .e = 0}, 0, s);
  }
  for (int64_t t = 1; t < num_frames; ++t) {
    const Scaled* before = alpha.data() + (t - 1) * states;
    Scaled* now = alpha.data() + t * states;
    for (int64_t s = lattice.first_state(t); s < lattice.end_state(t); ++s) {
      Scaled sum = s > 0 ? sum_of(before[s], before[s - 1]) : before[s];
      if (lattice.skips_to(s)) sum = sum_of(sum, before[s - 2]);
      reach(now[s], sum, t, s);
    }
  }
  return alpha;
}

/// The probabilities of all ends, from the last frame to the first.
template <class T>
class Ends {
 public:
  Ends(const Lattice<T>& lattice, int64_t num_frames)
      : lattice_(lattice),
        last_frame_(num_frames - 1),
        beta_(static_cast<size_t>(lattice.num_states())),
        onwards_(static_cast<size_t>(lattice.num_states()) + 2) {
    for (size_t s = beta_.size() - std::min<size_t>(2, beta_.size()); s < beta_.size(); ++s) {
      beta_[s] = {.m = 1, .e = 0};
    }
  }

  /// Of state s at the frame that go_to() was called with last: p(frames behind it | s).
  const Scaled& operator[](int64_t s) const { return beta_[static_cast<size_t>(s)]; }

  /// Called with the last frame, the one before it, and so on.
  void go_to(int64_t t) {
    if (t == last_frame_) return;
    for (int64_t s = lattice_.first_state(t + 1); s < lattice_.end_state(t + 1); ++s) {
      onwards_[static_cast<size_t>(s)] =
          product_of(beta_[static_cast<size_t>(s)], lattice_.emission(t + 1, s));
    }
    // States that no alignment reaches at t + 1 are none that one of t goes on to; from those that
    // do not reach the end nothing was written.
    for (int64_t s = lattice_.first_state(t); s < lattice_.end_state(t); ++s) {
      const auto at_state = static_cast<size_t>(s);
      Scaled sum = sum_of(onwards_[at_state], onwards_[at_state + 1]);
      const bool skips = s + 2 < lattice_.num_states() && lattice_.skips_to(s + 2);
      if (skips) sum = sum_of(sum, onwards_[at_state + 2]);
      beta_[at_state] = normed(sum.m, sum.e);
    }
  }

 private:
  const Lattice<T>& lattice_;
  const int64_t last_frame_;
  std::vector<Scaled> beta_;
  std::vector<Scaled> onwards_;  // two more than there are states, of 0
};

template <class T>
void write_slopes(const Lattice<T>& lattice, const Sequence<T>& sequence,
                  const std::vector<Scaled>& alpha, const Scaled& likelihood, T* slopes) {
  const int64_t states = lattice.num_states(), classes = sequence.num_classes;
  Ends<T> ends(lattice, sequence.num_frames);
  std::vector<double> posteriors(static_cast<size_t>(classes));
  for (int64_t t = sequence.num_frames - 1; t >= 0; --t) {
    ends.go_to(t);
    std::fill(posteriors.begin(), posteriors.end(), 0.0);
    for (int64_t s = lattice.first_state(t); s < lattice.end_state(t); ++s) {
      const Scaled both = product_of(alpha[static_cast<size_t>(t * states + s)], ends[s]);
      posteriors[static_cast<size_t>(lattice.class_of(s))] +=
          both.m / likelihood.m * power_of_two(both.e - likelihood.e);
    }
    const T* shares = sequence.shares_at(t);
    T* slope = slopes + t * classes;
    for (int64_t k = 0; k < classes; ++k) {
      slope[k] =
          static_cast<T>(static_cast<double>(shares[k]) - posteriors[static_cast<size_t>(k)]);
    }
  }
}

/// Scores that are not finite have a softmax of NaN; -infinity is the score of what cannot be.
template <class T>
bool has_nan(const Sequence<T>& sequence) {
  for (int64_t t = 0; t < sequence.num_frames; ++t) {
    if (std::isnan(sequence.shares_at(t)[sequence.blank])) return true;
  }
  return false;
}

template <class T>
void fill_with_nan(const Sequence<T>& sequence, T* slopes) {
  if (slopes == nullptr) return;
  std::fill_n(slopes, sequence.num_frames * sequence.num_classes,
              std::numeric_limits<T>::quiet_NaN());
}

template <class T>
double loss(const Sequence<T>& sequence, T* slopes) {
  if (sequence.num_frames == 0) return 0;  // and no labels: there is one alignment, without frames
  if (has_nan(sequence)) {
    fill_with_nan(sequence, slopes);
    return std::numeric_limits<double>::quiet_NaN();
  }
  const Lattice<T> lattice(sequence);
  const int64_t states = lattice.num_states();
  const std::vector<Scaled> alpha = forward(lattice, sequence.num_frames);
  const Scaled* last = alpha.data() + (sequence.num_frames - 1) * states;
  const Scaled sum = states > 1 ? sum_of(last[states - 1], last[states - 2]) : last[states - 1];
  const Scaled likelihood = normed(sum.m, sum.e);
  if (likelihood.m == 0) {
    fill_with_nan(sequence, slopes);
  } else if (slopes != nullptr) {
    write_slopes(lattice, sequence, alpha, likelihood, slopes);
  }
  return -log_of(likelihood);
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
