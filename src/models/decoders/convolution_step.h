#pragma once

#include <memory>
#include <vector>

#include "kernels/convolution/steps.h"
#include "models/decoders/convolution.h"
#include "models/lanes.h"

namespace stretto::models {

/// A ConvS2S decoder one token at a time, for L lanes of B sources.
///
/// Each layer remembers the rows that its taps will see again, kernel - 1 for each lane, so that a
/// step costs one row per lane whatever its number. Weights are normalised and laid out once.
/// Lanes of a source share the memory's rows.
class ConvStepDecoder : public StepDecoder {
 public:
  ConvStepDecoder(std::shared_ptr<ConvDecoder> decoder, const Encoded& memory,
                  int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& ids) override;
  void reorder(const std::vector<int64_t>& parents) override;

 private:
  /// One layer's weights and what it remembers.
  struct LayerState {
    ConvDecoderWeights weights;
    kernels::PackedConvolution convolution;
    kernels::RowCache rows;
  };

  std::shared_ptr<ConvDecoder> decoder_;
  Lanes lanes_;
  at::Tensor keys_, values_;  ///< [Nk, D], of the sources that still have lanes
  nn::TimeConvolutionWeights in_, out_;
  std::vector<LayerState> layers_;
  int64_t time_ = 0;  ///< steps taken
};

}  // namespace stretto::models
