#include "audio/fft_tables.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <stdexcept>
#include <string>

namespace stretto::audio {
namespace {

std::vector<FftTables::Factor> unit_roots(int64_t count, int64_t period) {
  std::vector<FftTables::Factor> roots;
  for (int64_t k = 0; k < count; ++k) {
    const double angle =
        -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(period);
    roots.push_back(
        {.re = static_cast<float>(std::cos(angle)), .im = static_cast<float>(std::sin(angle))});
  }
  return roots;
}

/// Each step of a quarter leaves the numbers k with k mod 4 = q in the q-th quarter.
int64_t place_of(int64_t k, int64_t size) {
  if (size < 4) return k;
  const int64_t quarter = size / 4;
  return (k % 4) * quarter + place_of(k / 4, quarter);
}

}  // namespace

bool has_fft_tables(int64_t size) {
  return size >= 2 && std::has_single_bit(static_cast<uint64_t>(size));
}

FftTables make_fft_tables(int64_t size) {
  if (!has_fft_tables(size)) {
    throw std::invalid_argument("fft tables: " + std::to_string(size) + " is no power of two");
  }
  FftTables tables;
  tables.size = size;
  const int64_t complex_size = tables.complex_size();
  tables.roots = unit_roots(complex_size, complex_size);
  tables.halves = unit_roots(complex_size / 2 + 1, size);
  for (int64_t k = 0; k < complex_size; ++k) {
    tables.places.push_back(static_cast<int32_t>(place_of(k, complex_size)));
  }
  return tables;
}

}  // namespace stretto::audio
