#pragma once

#include <cstdint>

#include "models/parts.h"
#include "models/synthesis/synthesis_options.h"
#include "nn/init.h"

namespace stretto::models {

/// What a model of one kind is built from beside its options.
struct SynthesisPart {
  nn::Init init;  ///< at the root
  int64_t num_symbols = 0;
  int64_t pad = -1;
  int64_t num_speakers = 1;
  FrameParts parts;
};

/// Sites of dropout, each the first of a range.
enum SynthesisSite : uint64_t {
  kSynthesisEncoder = kSynthesisSites,
  kSynthesisEncoderLstm = kSynthesisSites + 1'000,
  kSynthesisPrenet = kSynthesisSites + 2'000,
  kSynthesisDecoder = kSynthesisSites + 3'000,
  kSynthesisDecoderOutput = kSynthesisSites + 4'000,
  kSynthesisPostnet = kSynthesisSites + 5'000,
  kSynthesisMagnitude = kSynthesisSites + 6'000,
  kSynthesisCausal = kSynthesisSites + 7'000,
};

}  // namespace stretto::models
