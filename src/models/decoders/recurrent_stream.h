#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/decoders/recurrent_lanes.h"

namespace stretto::models {

/// A recurrent decoder one token at a time, for sources that come and go. Weights are packed once
/// for all of them. See RecurrentLanes for what moves with a lane.
class RecurrentStreamDecoder : public StreamDecoder {
 public:
  explicit RecurrentStreamDecoder(std::shared_ptr<RecurrentDecoder> decoder);

  void enter(const Encoded& memory) override;
  /// Throws c10::Error for another number of ids than there are lanes.
  at::Tensor step(const at::Tensor& ids) override;
  /// Throws c10::Error for a parent that there is not, or lanes out of the order of their sources.
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  void leave(const std::vector<int64_t>& lanes);

  RecurrentLanes recurrence_;
  std::vector<int64_t> lengths_, lanes_;  ///< of each source that is there
  kernels::Offsets query_offsets_;        ///< lanes of each source
};

}  // namespace stretto::models
