#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/recurrent/step.h"
#include "models/decoders/recurrent.h"

namespace stretto::models {

/// A recurrent decoder one token at a time, for sources that come and go. Weights are packed once
/// for all of them. See RecurrentStepDecoder for what a lane's history is.
class RecurrentStreamDecoder : public StreamDecoder {
 public:
  explicit RecurrentStreamDecoder(std::shared_ptr<RecurrentDecoder> decoder);

  void enter(const Encoded& memory) override;
  /// Throws c10::Error for another number of ids than there are lanes.
  at::Tensor step(const at::Tensor& ids) override;
  /// Throws c10::Error for a parent that there is not, or lanes out of the order of their sources.
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  kernels::RecurrentState& state(int64_t layer) { return states_[static_cast<size_t>(layer)]; }
  void leave(const std::vector<int64_t>& lanes);
  void set_offsets();

  std::shared_ptr<RecurrentDecoder> decoder_;
  kernels::AttentiveStep first_;
  std::vector<kernels::RecurrentStep> upper_;  ///< of layers 1, 2, …
  std::vector<int64_t> lengths_, lanes_;       ///< of each source that is there
  int64_t num_lanes_ = 0;
  kernels::Memory memory_;                       ///< of the sources, one behind the other
  kernels::AttentiveStep::Source source_;        ///< `memory_` as steps read it
  kernels::Offsets query_offsets_;               ///< lanes of each source
  std::vector<kernels::RecurrentState> states_;  ///< of each layer, [L, H] or undefined
  at::Tensor context_;                           ///< [L, M], undefined: zero
};

}  // namespace stretto::models
