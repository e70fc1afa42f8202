#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/encoder.h"
#include "models/synthesis/synthesis_model.h"
#include "nn/linear.h"
#include "nn/packed_rows.h"

namespace stretto::models {

struct PreNetOptions {
  int64_t in = 0;  ///< W
  int64_t num_layers = 2, dim = 256;
  double dropout = 0.5;
};

/// What a frame passes on its way into a step: dropout(relu(W x)), layer by layer, without biases.
/// It drops outside of training too (Shen et al. 2017, section 2.2).
class PreNetImpl : public torch::nn::Module {
 public:
  PreNetImpl(const nn::Init& init, const PreNetOptions& options);

  /// x [T, W] -> [T, dim]. @param masks  prenet_masks()
  at::Tensor forward(const at::Tensor& x, const nn::DropoutSource& masks) const;

  const std::vector<nn::Linear>& layers() const { return layers_; }
  /// The mask of a layer.
  kernels::Dropout mask(const nn::DropoutSource& masks, size_t layer) const;

 private:
  PreNetOptions options_;
  std::vector<nn::Linear> layers_;
};
TORCH_MODULE(PreNet);

/// Where the pre-net's masks come from: in training as any dropout, else a function of
/// (prenet_seed, sentence key, step), the same for a sentence in every batch.
/// @param steps  the decoder's steps. Throws c10::Error outside of training without sentence keys
nn::DropoutSource prenet_masks(const SynthesisInput& input, const nn::PackedRows& steps,
                               const ForwardContext& context);

/// Likewise of one step of free running. @param row_keys  prenet_step_key() of each lane
nn::DropoutSource prenet_masks_of_step(uint64_t prenet_seed, const at::Tensor& row_keys);

/// The key of a sentence's step outside of training.
int64_t prenet_step_key(int64_t sentence_key, int64_t step);

}  // namespace stretto::models
