#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "decoding/frame_model.h"
#include "kernels/recurrent/attentive.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// What a step of Tacotron 2 multiplies by. H units, P width of the pre-net, M of the memory, W of
/// a frame, R frames of a step; the first LSTM reads [p, context], the second [h1, context], the
/// output [h2, context].
struct Tacotron2StepWeights {
  std::vector<at::Tensor> prenet;   ///< [P, W], then [P, P]
  kernels::AttentiveWeights lower;  ///< of the first LSTM and its attention
  at::Tensor lower_input;           ///< [4 H, P]
  at::Tensor lower_bias;            ///< [4 H]
  at::Tensor upper_input;           ///< [4 H, H + M]
  at::Tensor upper_bias;            ///< [4 H]
  at::Tensor upper_hidden;          ///< [4 H, H]
  at::Tensor output;                ///< [R * W + R, H + M]: frames, then logits to stop
  at::Tensor output_bias;           ///< [R * W + R]
  double prenet_dropout = 0, zoneout = 0;
  int64_t frame_width = 0, frames_per_step = 1;
};

/// Free running of Tacotron 2 on a memory, a lane for each of its sequences.
///
/// On a CPU in fp32 the products' weights are laid out once, what they read lies side by side in
/// one line of a lane, and a step makes no tensor. A lane has the same bits in every batch and for
/// any number of threads. All else (fp64, GPUs, half precision) is composed of plain operators.
/// @param sentence_keys  int64 [lanes], see prenet_masks()
std::unique_ptr<decoding::FrameModel> make_tacotron2_steps(const Tacotron2StepWeights& weights,
                                                           const kernels::Memory& memory,
                                                           const at::Tensor& sentence_keys,
                                                           uint64_t prenet_seed);

/// The form of plain operators, whatever the dtype and device.
std::unique_ptr<decoding::FrameModel> make_plain_tacotron2_steps(
    const Tacotron2StepWeights& weights, const kernels::Memory& memory,
    const at::Tensor& sentence_keys, uint64_t prenet_seed);

}  // namespace stretto::models
