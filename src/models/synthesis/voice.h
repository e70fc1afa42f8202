#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "models/synthesis/style_tokens.h"
#include "models/synthesis/synthesis_model.h"
#include "models/synthesis/synthesis_part.h"
#include "nn/embedding.h"

namespace stretto::models {

/// Who speaks, and how: what stands beside every row of a text.
class VoiceImpl : public torch::nn::Module {
 public:
  VoiceImpl(const nn::Init& init, const SynthesisKeys& keys, const SynthesisPart& part);

  /// Width of what is added to rows; 0 for one speaker without style.
  int64_t width() const { return width_; }
  /// rows [S, D] of input.text -> [S, D + width()]. Throws c10::Error without the speakers of a
  /// model that has several.
  at::Tensor beside(const at::Tensor& rows, const SynthesisInput& input) const;

 private:
  int64_t width_ = 0;
  StyleTokens style_{nullptr};
  nn::Embedding speakers_{nullptr};
};
TORCH_MODULE(Voice);

}  // namespace stretto::models
