#pragma once

#include <memory>
#include <vector>

#include "kernels/convolution/steps.h"
#include "models/decoders/light_convolution.h"
#include "models/lanes.h"

namespace stretto::models {

/// A LightDecoder one token at a time, for L lanes of B sources.
///
/// Each layer remembers the rows that its taps will see again, kernel - 1 for each lane, and the
/// keys and values of the memory, which all lanes of a source share: a step costs one row per lane
/// whatever its number.
class LightStepDecoder : public StepDecoder {
 public:
  LightStepDecoder(std::shared_ptr<LightDecoder> decoder, const Encoded& memory,
                   int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& ids) override;
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  /// What one layer remembers.
  struct LayerState {
    at::Tensor cross_kv;  ///< [Nk, 2 D], of the sources that still have lanes
    kernels::RowCache rows;
  };

  LightDecoderPass pass_of(const LightDecoderLayerImpl& layer, LayerState& state);

  std::shared_ptr<LightDecoder> decoder_;
  Lanes lanes_;
  std::vector<LayerState> layers_;
  int64_t time_ = 0;  ///< steps taken
};

}  // namespace stretto::models
