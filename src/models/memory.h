#pragma once

#include "models/encoder.h"
#include "nn/attention.h"

namespace stretto::models {

/// Keys and values of attention over an encoder's rows, [Nk, 2 D]: one product where they are made
/// of the same rows, two where the encoder has others for values (ConvS2S).
at::Tensor keys_and_values(const nn::CrossAttentionImpl& attention, const Encoded& memory);

}  // namespace stretto::models
