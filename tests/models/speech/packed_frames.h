#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "data/batch.h"
#include "models/packed.h"
#include "tests/kernels/gradcheck.h"

/// Batches for tests of models of speech.
namespace stretto::models::testing::speech {

/// Frames of an utterance, [length, width], by its id alone.
inline at::Tensor frames_of(int64_t id, int64_t length, int64_t width) {
  return stretto::testing::noise({length, width}, 1000 + static_cast<uint64_t>(id));
}

/// Ids 0, 1, … of so many utterances.
inline std::vector<int64_t> first_ids(size_t count) {
  std::vector<int64_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// Utterances of these lengths as one batch, with keys of dropout masks.
inline nn::PackedRows packed_frames(const std::vector<int64_t>& lengths, int64_t width,
                                    const std::vector<int64_t>& ids,
                                    at::ScalarType dtype = at::kDouble) {
  data::Ragged<float> frames;
  frames.width = width;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const at::Tensor values = frames_of(ids[i], lengths[i], width).contiguous();
    frames.append(std::span<const float>(values.const_data_ptr<float>(),
                                         static_cast<size_t>(values.numel())));
  }
  nn::PackedRows rows = pack(frames, &ids, at::kCPU);
  rows.values = rows.values.to(dtype);
  return rows;
}
inline nn::PackedRows packed_frames(const std::vector<int64_t>& lengths, int64_t width,
                                    at::ScalarType dtype = at::kDouble) {
  return packed_frames(lengths, width, first_ids(lengths.size()), dtype);
}

inline nn::PackedRows packed_labels(const std::vector<std::vector<int64_t>>& labels) {
  data::PackedTokens tokens;
  for (const auto& one : labels) tokens.append(one);
  return pack(tokens, nullptr, at::kCPU);
}

/// The rows of each sequence.
inline std::vector<at::Tensor> sequences_of(const at::Tensor& rows,
                                            const kernels::Offsets& offsets) {
  std::vector<at::Tensor> each;
  const int32_t* bounds = offsets.values.const_data_ptr<int32_t>();
  for (int64_t i = 0; i + 1 < offsets.values.size(0); ++i) {
    each.push_back(rows.slice(0, bounds[i], bounds[i + 1]));
  }
  return each;
}

}  // namespace stretto::models::testing::speech
