#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/decoders/transformer.h"
#include "models/lanes.h"

namespace stretto::models {

/// A Transformer's decoder one token at a time, for L lanes of B sources.
///
/// Keys and values of the memory are computed once per layer and shared by all lanes of a source; a
/// decoder without memory has none.
/// Self-attention keys and values are cached: a step costs one row per lane. Beams that move only
/// rewrite a table of integers (`lineage`); cached rows are copied only when lanes leave, which
/// keeps the caches as narrow as the lanes that live. prefill() computes the rows of a source once,
/// and all its lanes have their history in the slot of the first.
///
/// Prompts of different lengths end in the same step of the caches, and begin in others: each lane
/// counts its positions from its own first step, and reads nothing in front of it. Its rows are
/// those of the prompt alone, to the bit where products are (PackedWeightsScope).
///
/// Room for steps grows by half of what there is, so that a history of n steps is copied a number
/// of times that does not grow with n.
///
/// Where every layer has a window, the caches hold about two of the longest.
class TransformerStepDecoder : public StepDecoder {
 public:
  TransformerStepDecoder(std::shared_ptr<TransformerDecoder> decoder, const Encoded& memory,
                         int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& ids) override;
  /// Throws c10::Error behind a step, and for other numbers of lanes than the decoder has.
  at::Tensor prefill(const at::Tensor& ids, int64_t lanes_per_source) override;
  at::Tensor prefill_packed(const decoding::PackedPrompts& prompts,
                            int64_t lanes_per_source) override;
  bool takes_unequal_prompts() const override { return true; }
  void reorder(const std::vector<int64_t>& parents) override;
  /// Numbers that its caches hold, with the room for steps to come. Without memory: layers x 2 x E
  /// x lanes x room, where room is a multiple of 32 steps.
  int64_t cached_numbers() const;
  int64_t most_cache_bytes() const override { return most_cache_bytes_; }

 private:
  /// What one layer remembers.
  struct LayerCache {
    /// [Ns, 2E], E the width of keys: of fewer heads than queries, narrower; undefined without
    /// memory.
    at::Tensor cross_kv;
    at::Tensor k, v;  ///< [room, L, E]
  };

  /// Prompts as packed rows.
  struct Prompts {
    nn::PackedRows rows;
    at::Tensor places;           ///< int64 [N]: of each row in a cache as [room * L, E]
    at::Tensor last;             ///< int64 [B]: the last row of each
    kernels::DistanceBias bias;  ///< where all layers share one
  };

  void make_room(int64_t steps);
  void set_slots();
  void set_first();
  int64_t first_step() const;    ///< of all histories; below 0: the first ones are given up
  int64_t unread_steps() const;  ///< of the caches: in front of all histories and windows
  void forget();                 ///< what stands in front of all windows, from time to time
  void copy_history();
  /// @param ids  int64 [N]  @param lengths  [B], of the prompts
  at::Tensor take(const at::Tensor& ids, const std::vector<int64_t>& lengths,
                  int64_t lanes_per_source);
  at::Tensor attend_self(const TransformerDecoderLayerImpl& layer, LayerCache& cache,
                         const at::Tensor& x);
  /// The same of whole prompts, B rows a step of the cache.
  at::Tensor attend_prompts(const TransformerDecoderLayerImpl& layer, LayerCache& cache,
                            const at::Tensor& x, const Prompts& prompts);
  /// @param queries  bounds of the rows of each source in `x`
  at::Tensor attend_cross(const TransformerDecoderLayerImpl& layer, const LayerCache& cache,
                          const at::Tensor& x, const kernels::Offsets& queries) const;

  std::shared_ptr<TransformerDecoder> decoder_;
  Lanes lanes_;
  std::vector<LayerCache> caches_;
  at::Tensor lineage_;  ///< int32 [L, room]: whose slot holds step t of this lane's history
  at::Tensor slots_;    ///< int32 [L]: 0 … L - 1
  /// [L]: the step of the caches at which the history of a lane begins; below 0 where its first
  /// steps are given up.
  std::vector<int64_t> begins_;
  at::Tensor origins_;          ///< the same, int64 [L]; undefined: all begin at 0
  at::Tensor first_;            ///< int32 [L]: the first step to read; undefined: 0 for all lanes
  bool has_window_ = false;     ///< whether every layer has one
  int64_t window_ = 0;          ///< then the longest
  at::Tensor positions_;        ///< int64 [L]: the present step, counted from there
  int64_t time_ = 0;            ///< steps taken
  kernels::DistanceBias bias_;  ///< of `room` steps, where all layers share one
  int64_t most_cache_bytes_ = 0;
};

}  // namespace stretto::models
