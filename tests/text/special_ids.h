#pragma once

#include <cstdint>

#include "text/special_ids.h"

namespace stretto::testing {

/// For tests without a tokenizer, whose ordinary ids begin at 4.
inline constexpr text::SpecialIds kSpecials{.pad = 0, .unk = 1, .bos = 2, .eos = 3};
inline constexpr int64_t kPad = kSpecials.pad, kUnk = kSpecials.unk, kBos = kSpecials.bos,
                         kEos = kSpecials.eos;

}  // namespace stretto::testing
