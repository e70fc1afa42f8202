#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "models/encoder.h"
#include "models/parts.h"
#include "nn/attention.h"

namespace stretto::models {

/// The memory of a decoder that has none: `num_sources` sources without a row.
Encoded no_memory(int64_t num_sources, c10::Device device);

/// PartSetup::memory_width of a decoder that cannot do without. Throws c10::Error where it has
/// none.
/// @param decoder  its name, for the error
int64_t required_memory(const PartSetup& setup, const char* decoder);

/// Keys and values of attention over an encoder's rows, [Nk, 2 D]: one product where they are made
/// of the same rows, two where the encoder has others for values (ConvS2S).
at::Tensor keys_and_values(const nn::CrossAttentionImpl& attention, const Encoded& memory);

}  // namespace stretto::models
