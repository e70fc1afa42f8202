#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/pairs/corpus.h"

namespace stretto::data {

/// A fault of one pair of lines: of the line of one side. In a TSV file all sides are one line, and
/// the fault is the source's.
class PairFault : public SampleError {
 public:
  PairFault(const SampleError& error, Side side) : SampleError(error), side_(side) {}
  Side side() const { return side_; }

 private:
  Side side_;
};

/// BadSamples of pairs. What it throws is a TargetError or a SecondSourceError
/// (data/pairs/parallel_input.h) where the first fault is that of such a line.
class PairFaults {
 public:
  explicit PairFaults(BadSampleRule rule) : bad_(rule) {}

  void add(const PairFault& fault);
  /// At the end of each input.
  void end_input();

  bool is_stopping() const { return bad_.is_stopping(); }
  const LeftOut& left_out() const { return bad_.left_out(); }

 private:
  template <class Call>
  void on_its_side(const Call& call) const;

  BadSamples bad_;
  std::optional<Side> first_;  ///< of the input
};

}  // namespace stretto::data
