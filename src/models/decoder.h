#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "decoding/step_model.h"
#include "models/encoder.h"

namespace stretto::models {

/// A decoder one token at a time, for L lanes (hypotheses). See decoding::StepModel for the order
/// of lanes.
class StepDecoder {
 public:
  virtual ~StepDecoder() = default;
  /// ids int64 [L]: the last token of each lane -> [L, D]: the row behind the next one.
  virtual at::Tensor step(const at::Tensor& ids) = 0;
  /// The same for prompts of one length, before any step: ids int64 [B, T], T > 0, what all lanes
  /// of each source begin with -> [L, D], the rows that T steps would end with. See
  /// decoding::StepModel::prefill.
  virtual at::Tensor prefill(const at::Tensor& ids, int64_t lanes_per_source) {
    return decoding::prefill_by_steps(ids, lanes_per_source,
                                      [this](const at::Tensor& tokens) { return step(tokens); });
  }
  /// The same for prompts of any lengths, each in positions of its own (decoding::StepModel::
  /// prefill_packed). By itself a decoder takes prompts of one length.
  virtual at::Tensor prefill_packed(const decoding::PackedPrompts& prompts,
                                    int64_t lanes_per_source);
  virtual bool takes_unequal_prompts() const { return false; }
  /// As decoding::StepModel::most_cache_bytes.
  virtual int64_t most_cache_bytes() const { return 0; }
  /// From now on lane i continues what lane parents[i] was; there may be fewer than before.
  virtual void reorder(const std::vector<int64_t>& parents) = 0;
};

/// A decoder one token at a time, for sources that come and go. See decoding::StreamModel.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  /// The sources of this memory enter, with a lane each behind those that are there.
  virtual void enter(const Encoded& memory) = 0;
  /// ids int64 [L]: the last token of each lane -> [L, D]: the row behind the next one.
  virtual at::Tensor step(const at::Tensor& ids) = 0;
  /// From now on lane i continues what lane parents[i] was; sources without a lane leave.
  virtual void reorder(const std::vector<int64_t>& parents) = 0;
  virtual int64_t most_cache_bytes() const { return 0; }
};

/// From the tokens so far and an encoder's output to the row that predicts the next token.
///
/// A decoder whose PartSetup has no memory_width attends to its own tokens alone: it is a language
/// model. forward() does not read its `memory` then, which is {}, and start() takes no_memory()
/// (models/memory.h), which says how many sources there are. Kinds of decoders that need a memory
/// refuse such a setup.
///
/// Nt rows of targets, D the decoder's width.
class Decoder : public torch::nn::Module {
 public:
  /// Teacher-forced: row t of `input` is the token before target t -> [Nt, D].
  virtual at::Tensor forward(const nn::PackedRows& input, const Encoded& memory,
                             const ForwardContext& context) = 0;
  /// A view for incremental decoding; weights are shared. Lanes of a source stand together.
  virtual std::unique_ptr<StepDecoder> start(const Encoded& memory, int64_t lanes_per_source) = 0;
  /// The same for sources that come and go, of which there is none yet; null = it cannot, or not
  /// where its parameters lie. A lane has the bits that start() gives it where products are such
  /// (PackedWeightsScope).
  virtual std::unique_ptr<StreamDecoder> start_stream() { return nullptr; }

  /// Mean over heads of the attention of one layer (-1 = the last that attends), teacher-forced:
  /// for each sequence a [target rows, memory rows] matrix. Throws c10::Error for a layer that does
  /// not attend, and without a memory.
  virtual std::vector<at::Tensor> attention(const nn::PackedRows& input, const Encoded& memory,
                                            int64_t layer) = 0;

  virtual int64_t width() const = 0;
  /// Multiplications and additions of forward for one row of its own, in sequences of `length` rows
  /// that attend to `memory_length` rows; models/operations.h says what counts.
  virtual double operations(double length, double memory_length) const = 0;
  /// The same for one row of the memory, before anybody attends to it: keys and values, say.
  virtual double memory_operations() const = 0;
  /// The table that turns tokens into rows, for others to share; null when there is none.
  virtual nn::Embedding embedding() const { return nullptr; }
  /// Longest output, in tokens with end-of-sequence, that there are positions for.
  virtual int64_t max_length() const { return std::numeric_limits<int64_t>::max(); }
};

}  // namespace stretto::models
