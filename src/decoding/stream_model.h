#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/loss/top_classes.h"

namespace stretto::decoding {

/// A source that enters a stream.
struct EnteringSource {
  std::span<const int64_t> ids;  ///< with end-of-sentence
  /// The tokens that its outputs may have, ascending, each once, with the end of a sentence; empty
  /// = all. Probabilities are among them.
  std::vector<int64_t> candidates = {};
};

/// A model for search whose sources come and go: those that are done leave, and others begin while
/// the rest goes on. What a lane gets depends on its own source and history alone.
class StreamModel {
 public:
  virtual ~StreamModel() = default;

  /// Sources enter, with a lane each: these stand behind the lanes that are there, in this order,
  /// and begin in the next step. Of those that are alike at first, none is computed twice.
  virtual void enter(std::span<const EnteringSource> sources) = 0;

  /// The likeliest next tokens of each lane.
  /// @param tokens  [lanes]: the last token of each; beginning-of-sentence first
  /// @param query   rows are lanes
  virtual kernels::TopClasses step(const std::vector<int64_t>& tokens,
                                   const kernels::TopQuery& query) = 0;

  /// From now on lane i continues what lane parents[i] was. There may be more of them than before,
  /// and fewer: a source whose lanes are no one's parents leaves, and all may. Lanes stay in the
  /// order of their sources.
  virtual void reorder(const std::vector<int64_t>& parents) = 0;

  /// The most bytes that its keys and values have had.
  virtual int64_t most_cache_bytes() const { return 0; }
  virtual int64_t vocab_size() const = 0;
};

}  // namespace stretto::decoding
