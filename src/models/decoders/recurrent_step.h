#pragma once

#include <memory>
#include <vector>

#include "models/decoders/recurrent_lanes.h"
#include "models/lanes.h"

namespace stretto::models {

/// A recurrent decoder one token at a time, for L lanes of B sources. See RecurrentLanes for what
/// moves with a lane.
class RecurrentStepDecoder : public StepDecoder {
 public:
  RecurrentStepDecoder(std::shared_ptr<RecurrentDecoder> decoder, const Encoded& memory,
                       int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& ids) override;
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  Lanes lanes_;
  RecurrentLanes recurrence_;
};

}  // namespace stretto::models
