#include "models/decoder.h"

namespace stretto::models {

at::Tensor StepDecoder::prefill_packed(const decoding::PackedPrompts& prompts,
                                       int64_t lanes_per_source) {
  return prefill(decoding::rectangle_of(prompts), lanes_per_source);
}

}  // namespace stretto::models
