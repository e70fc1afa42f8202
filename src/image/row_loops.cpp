#include "image/row_loops.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/system_info.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stretto::image {
namespace {

constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr auto kBlockSize = static_cast<size_t>(kBlock);

void weigh_plain(const uint8_t* pixels, int64_t stride, const int32_t* weights, int64_t count,
                 uint8_t* out) {
  std::array<int32_t, kBlockSize> sums;
  sums.fill(kHalf);
  for (int64_t t = 0; t < count; ++t) {
    const uint8_t* row = pixels + t * stride;
    for (size_t i = 0; i < kBlockSize; ++i) sums[i] += weights[t] * row[i];
  }
  for (size_t i = 0; i < kBlockSize; ++i) {
    out[i] = static_cast<uint8_t>(std::clamp(sums[i] >> kFractionBits, 0, 255));
  }
}

void transpose_plain(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride) {
  for (int64_t y = 0; y < kBlock; ++y) {
    for (int64_t x = 0; x < kBlock; ++x) to[x * to_stride + y] = from[y * from_stride + x];
  }
}

void split_plain(const uint8_t* rgb, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue) {
  for (int64_t i = 0; i < count; ++i) {
    red[i] = rgb[3 * i];
    green[i] = rgb[3 * i + 1];
    blue[i] = rgb[3 * i + 2];
  }
}

void reverse_plain(const uint8_t* from, int64_t count, uint8_t* to) {
  std::reverse_copy(from, from + count, to);
}

constexpr RowLoops kPlain{"plain", weigh_plain, transpose_plain, split_plain, reverse_plain};

#if defined(__x86_64__)
#define STRETTO_AVX2 __attribute__((target("avx2")))

STRETTO_AVX2 void weigh_avx2(const uint8_t* pixels, int64_t stride, const int32_t* weights,
                             int64_t count, uint8_t* out) {
  __m256i low = _mm256_set1_epi32(kHalf), high = low;
  for (int64_t t = 0; t < count; ++t) {
    const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + t * stride));
    const __m256i weight = _mm256_set1_epi32(weights[t]);
    low = _mm256_add_epi32(low, _mm256_mullo_epi32(weight, _mm256_cvtepu8_epi32(row)));
    high = _mm256_add_epi32(
        high, _mm256_mullo_epi32(weight, _mm256_cvtepu8_epi32(_mm_srli_si128(row, 8))));
  }
  // Saturating packs cut to bytes. They work within lanes of 128 bits.
  const __m256i words =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_srai_epi32(low, kFractionBits),
                                                  _mm256_srai_epi32(high, kFractionBits)),
                               0b11'01'10'00);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(out),
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

STRETTO_AVX2 void transpose_avx2(const uint8_t* from, int64_t from_stride, uint8_t* to,
                                 int64_t to_stride) {
  __m128i rows[kBlockSize], shuffled[kBlockSize];
  for (size_t y = 0; y < kBlockSize; ++y) {
    rows[y] = _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(from + static_cast<int64_t>(y) * from_stride));
  }
  // Each round moves one bit of the row's number into that of the column.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 8; ++i) {
      shuffled[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
      shuffled[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    for (size_t i = 0; i < 8; ++i) {
      rows[2 * i] = _mm_unpacklo_epi8(shuffled[i], shuffled[i + 8]);
      rows[2 * i + 1] = _mm_unpackhi_epi8(shuffled[i], shuffled[i + 8]);
    }
  }
  for (size_t x = 0; x < kBlockSize; ++x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + static_cast<int64_t>(x) * to_stride), rows[x]);
  }
}

/// Which bytes of the 16 at `first` belong to a channel: its places for a shuffle, 0x80 = none.
struct SplitPlaces {
  alignas(16) std::array<std::array<std::array<uint8_t, 16>, 3>, 3> of{};  ///< [channel][part]

  constexpr SplitPlaces() {
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t pixel = 0; pixel < 16; ++pixel) {
        const size_t place = 3 * pixel + channel;
        for (size_t part = 0; part < 3; ++part) {
          of[channel][part][pixel] =
              place / 16 == part ? static_cast<uint8_t>(place % 16) : uint8_t{0x80};
        }
      }
    }
  }
};
constexpr SplitPlaces kSplitPlaces;

STRETTO_AVX2 void split_avx2(const uint8_t* rgb, int64_t count, uint8_t* red, uint8_t* green,
                             uint8_t* blue) {
  uint8_t* const planes[] = {red, green, blue};
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    __m128i parts[3];
    for (int64_t p = 0; p < 3; ++p) {
      parts[p] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rgb + 3 * i + kBlock * p));
    }
    for (size_t c = 0; c < 3; ++c) {
      __m128i plane = _mm_setzero_si128();
      for (size_t p = 0; p < 3; ++p) {
        const auto* places = reinterpret_cast<const __m128i*>(kSplitPlaces.of[c][p].data());
        plane = _mm_or_si128(plane, _mm_shuffle_epi8(parts[p], _mm_loadu_si128(places)));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes[c] + i), plane);
    }
  }
  split_plain(rgb + 3 * i, count - i, red + i, green + i, blue + i);
}

STRETTO_AVX2 void reverse_avx2(const uint8_t* from, int64_t count, uint8_t* to) {
  const __m128i places = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + count - i - kBlock),
                     _mm_shuffle_epi8(bytes, places));
  }
  reverse_plain(from + i, count - i, to);
}

constexpr RowLoops kAvx2{"avx2", weigh_avx2, transpose_avx2, split_avx2, reverse_avx2};
#undef STRETTO_AVX2
#endif

}  // namespace

std::vector<const RowLoops*> all_row_loops() {
  std::vector<const RowLoops*> loops{&kPlain};
#if defined(__x86_64__)
  if (cpu_info().avx2) loops.push_back(&kAvx2);
#endif
  return loops;
}

const RowLoops& row_loops() {
  static const RowLoops& fastest = *all_row_loops().back();
  return fastest;
}

}  // namespace stretto::image
