#include "decoding/likeliest_tokens.h"

#include <algorithm>
#include <limits>

namespace stretto::decoding {
namespace {

constexpr size_t kBlock = 64;

/// Whether one of so many entries is above `bound`; compilers make vector instructions of it.
bool any_above(const float* row, float bound) {
  int found = 0;
  for (size_t i = 0; i < kBlock; ++i) found |= static_cast<int>(row[i] > bound);
  return found != 0;
}

}  // namespace

// Keeps the best in a heap whose front is the worst of them. Almost every block of entries has none
// above the front, so a row costs about as much as reading it.
std::vector<int64_t> likeliest_tokens(std::span<const float> row, size_t count) {
  const float* values = row.data();
  const size_t size = row.size();
  const auto likelier = [values](int64_t a, int64_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  std::vector<int64_t> heap;
  if (count == 0) return heap;
  heap.reserve(count + 1);
  float worst = -std::numeric_limits<float>::infinity();
  for (size_t token = 0; token < size; ++token) {
    while (token % kBlock == 0 && token + kBlock <= size && !any_above(values + token, worst)) {
      token += kBlock;
    }
    if (token == size || !(values[token] > worst)) continue;
    heap.push_back(static_cast<int64_t>(token));
    std::push_heap(heap.begin(), heap.end(), likelier);
    if (heap.size() > count) {
      std::pop_heap(heap.begin(), heap.end(), likelier);
      heap.pop_back();
    }
    if (heap.size() == count) worst = values[heap.front()];
  }
  std::sort_heap(heap.begin(), heap.end(), likelier);
  return heap;
}

}  // namespace stretto::decoding
