#include "data/batch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace stretto::data {
namespace {

void append(const PackedTokens& part, PackedTokens& whole) {
  const int64_t base = whole.num_tokens();
  if (base + part.num_tokens() > std::numeric_limits<int32_t>::max()) {
    throw std::length_error("concatenate: more than 2^31 - 1 tokens in one batch");
  }
  whole.ids.insert(whole.ids.end(), part.ids.begin(), part.ids.end());
  for (size_t i = 1; i < part.offsets.size(); ++i) {
    whole.offsets.push_back(static_cast<int32_t>(base + part.offsets[i]));
  }
}

PackedTokens cut(const PackedTokens& whole, int64_t begin, int64_t end) {
  const auto first = static_cast<size_t>(begin), last = static_cast<size_t>(end);
  const int32_t base = whole.offsets[first];
  PackedTokens piece;
  piece.ids.assign(whole.ids.begin() + base, whole.ids.begin() + whole.offsets[last]);
  for (size_t i = first + 1; i <= last; ++i) piece.offsets.push_back(whole.offsets[i] - base);
  return piece;
}

}  // namespace

int64_t PackedTokens::max_length() const {
  int64_t longest = 0;
  for (int64_t i = 0; i < num_sequences(); ++i) longest = std::max(longest, length(i));
  return longest;
}

Batch concatenate(const std::vector<Batch>& parts) {
  Batch whole;
  for (const Batch& part : parts) {
    whole.sample_ids.insert(whole.sample_ids.end(), part.sample_ids.begin(), part.sample_ids.end());
    append(part.src, whole.src);
    append(part.tgt, whole.tgt);
  }
  return whole;
}

Batch part(const Batch& batch, int64_t begin, int64_t end) {
  return {.sample_ids = {batch.sample_ids.begin() + begin, batch.sample_ids.begin() + end},
          .src = cut(batch.src, begin, end),
          .tgt = cut(batch.tgt, begin, end)};
}

Batch even_part(const Batch& batch, int64_t number, int64_t parts) {
  const int64_t sequences = batch.num_sequences();
  const auto tokens_before = [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    return int64_t{batch.src.offsets[at]} + batch.tgt.offsets[at];
  };
  const int64_t total = tokens_before(sequences);
  // The boundary that comes nearest to an even cut, but with a sequence for each part if possible.
  const auto boundary = [&](int64_t before) {
    if (sequences < parts) return std::min(before, sequences);
    int64_t at = before;
    const int64_t last = sequences - (parts - before);
    const auto distance = [&](int64_t i) {
      return std::abs(tokens_before(i) * parts - total * before);
    };
    while (at < last && distance(at + 1) < distance(at)) ++at;
    return at;
  };
  return part(batch, boundary(number), boundary(number + 1));
}

}  // namespace stretto::data
