#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/recurrent/step.h"
#include "models/decoders/recurrent.h"

namespace stretto::models {

/// A recurrent decoder's layers one token at a time, for L lanes. A lane's history is its state: h
/// and c of each layer and what it attended to last, which move with the lane. The caller knows
/// which lanes read which source.
///
/// Weights are packed once, when it is made, in the arithmetic of that moment; keys of the memory
/// are computed once and shared by all lanes of a source.
class RecurrentLanes {
 public:
  explicit RecurrentLanes(std::shared_ptr<RecurrentDecoder> decoder);

  /// A lane for each of these sources, behind the lanes that are there.
  /// @param key_offsets  rows of all sources, the new ones behind the others
  void enter(const Encoded& memory, const kernels::Offsets& key_offsets);
  /// The token of each lane, int64 [L] -> rows [L, D].
  /// @param query_offsets  lanes of each source
  at::Tensor step(const at::Tensor& ids, const kernels::Offsets& query_offsets);
  /// Lane i continues lane parents[i], int64.
  void take_lanes(const at::Tensor& parents);
  /// Of the sources' memory these rows stay, int64.
  /// @param key_offsets  rows of each source that stays
  void take_memory(const at::Tensor& rows, const kernels::Offsets& key_offsets);

  int64_t size() const { return size_; }

 private:
  kernels::RecurrentState& state(int64_t layer) { return states_[static_cast<size_t>(layer)]; }
  void set_offsets(const kernels::Offsets& key_offsets);

  std::shared_ptr<RecurrentDecoder> decoder_;
  kernels::AttentiveStep first_;
  std::vector<kernels::RecurrentStep> upper_;    ///< of layers 1, 2, …
  int64_t size_ = 0;                             ///< L
  kernels::Memory memory_;                       ///< of the sources, one behind the other
  kernels::AttentiveStep::Source source_;        ///< `memory_` as steps read it
  std::vector<kernels::RecurrentState> states_;  ///< of each layer, [L, H] or undefined: zero
  at::Tensor context_;                           ///< [L, M], undefined: zero
};

}  // namespace stretto::models
