#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stretto::optim {

/// When weights begin to be averaged (Merity et al. 2017, arXiv:1708.02182, algorithm 1, NT-ASGD):
/// at the first validation whose loss is above the best of all earlier ones but the last n. It
/// never ends.
class NonMonotone {
 public:
  /// @param looks  n: train.average_nonmono; 0 = averaging never begins
  explicit NonMonotone(int64_t looks) : looks_(looks) {}

  /// A validation after so many updates. One that is not finite is not counted.
  void look(double loss, int64_t updates);

  /// Compares later losses with none from before; what has begun goes on.
  void forget();

  /// The updates behind which weights are averaged; nothing: not yet.
  std::optional<int64_t> begin() const { return begin_; }

  /// What a checkpoint keeps; empty before the first validation.
  std::map<std::string, double> state() const;
  /// What is missing in `state` starts afresh.
  void restore(const std::map<std::string, double>& state);

 private:
  int64_t looks_;
  double best_ = std::numeric_limits<double>::infinity();  // of all but the last n
  std::vector<double> recent_;                             // at most n, oldest first
  std::optional<int64_t> begin_;
};

}  // namespace stretto::optim
