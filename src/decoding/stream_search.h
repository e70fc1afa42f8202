#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "decoding/decode_options.h"
#include "decoding/hypothesis.h"
#include "decoding/stream_model.h"

namespace stretto::decoding {

/// A source of a stream, and what its outputs must be.
struct StreamSource {
  size_t number = 0;                ///< by which its outputs are given back
  std::span<const int64_t> ids;     ///< with end-of-sentence; valid until it is done
  std::span<const int64_t> prefix;  ///< each output starts so; may be empty
  std::vector<int64_t> candidates;  ///< as EnteringSource has them; search adds prefix and ends
};

/// Where the sources of a search come from, and where their outputs go. Searches of several threads
/// may share one: which of them a source falls to changes nothing.
class StreamQueue {
 public:
  virtual ~StreamQueue() = default;
  /// The next source, or nothing where there is none any more, or none that costs at most so much.
  /// @param most  source tokens times lanes that there is room for; below 0: any
  virtual std::optional<StreamSource> next(int64_t most) = 0;
  /// The outputs of a source, as search() gives them.
  virtual void done(size_t number, std::vector<Hypothesis> found) = 0;
};

/// What a search of a stream must know beside its options.
struct StreamSetup {
  int64_t max_length = std::numeric_limits<int64_t>::max();  ///< as SearchInput has it
  int64_t pad = -1, bos = -1, eos = -1;                      ///< as SearchInput has them
  int64_t max_cost = 1;  ///< source tokens times lanes that are under way together
  std::function<void()> before_step = {};
};

/// Whether stream_search() decodes by these options: "beam" without penalties of repetition, which
/// need all probabilities of a step.
bool can_stream(const DecodeOptions& options);

/// Beam search as search() does it, with the same outputs for each source, but a source that is
/// done leaves at once, and the next ones enter while others go on: there are always as many lanes
/// as fit. New sources enter when a quarter of the room is free, so that they are read together.
void stream_search(StreamModel& model, StreamQueue& queue, const StreamSetup& setup,
                   const DecodeOptions& options);

}  // namespace stretto::decoding
