// Products of few-bit weights for processors with AVX512_VNNI: one instruction adds four products
// of an unsigned and a signed byte to each of sixteen int32 sums. All other loops of this level are
// those of AVX-512 (table.cpp).
#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/table.h"

namespace stretto::kernels::cpu::avx512_vnni {
namespace {

using Form = CodeForm;

constexpr int64_t kTileColumns = kQuantisedPanel;
constexpr int64_t kHalf = 64;       // bytes: sixteen columns of four inputs
constexpr int64_t kFetched = 1024;  // bytes that weights are fetched ahead

constexpr int tile_rows(Form /*form*/) {
  return 12;
}

int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

__m512i four_codes(const int8_t* from) {
  int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}

/// The weights of sixteen columns in a step: inputs 0 … 3 and 4 … 7.
/// @tparam kTimes16  of half bytes the latter stay in the upper half, where they count 16 times
template <Form kForm, bool kTimes16>
void weights_of_step(const uint8_t* from, __m512i& low, __m512i& high) {
  if constexpr (kForm == Form::kHalves) {
    const __m512i both = _mm512_loadu_si512(from), lower = _mm512_set1_epi8(0xF);
    low = _mm512_and_si512(both, lower);
    if constexpr (kTimes16)
      high = _mm512_and_si512(both, _mm512_set1_epi8(static_cast<char>(0xF0)));
    else
      high = _mm512_and_si512(_mm512_srli_epi16(both, 4), lower);
  } else {
    low = _mm512_loadu_si512(from);
    high = _mm512_loadu_si512(from + kQuantisedLine);
  }
}

/// As dots.inc has it. An instruction waits four or five cycles for the one before it on the same
/// sums: few rows have two sets of them, and of half bytes one of them is divided by 16 at the end.
template <int kRows, Form kForm>
void group_sums(const uint8_t* weights, const int8_t* x, int64_t x_row, int64_t steps,
                int32_t* sums) {
  constexpr int64_t kStep = kForm == Form::kHalves ? kQuantisedLine : 2 * kQuantisedLine;
  constexpr int kSets = kRows <= 4 ? 2 : 1;
  constexpr bool kTimes16 = kForm == Form::kHalves && kSets == 2;
  __m512i sum[kRows][2][kSets];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
    for (int set = 0; set < kSets; ++set) sum[i][0][set] = sum[i][1][set] = _mm512_setzero_si512();
  for (int64_t s = 0; s < steps; ++s, weights += kStep) {
#pragma GCC unroll 4
    for (int64_t line = 0; line < kStep; line += kHalf)
      __builtin_prefetch(weights + kFetched + line);
    __m512i low[2], high[2];
    weights_of_step<kForm, kTimes16>(weights, low[0], high[0]);
    weights_of_step<kForm, kTimes16>(weights + kHalf, low[1], high[1]);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const __m512i first = four_codes(x + i * x_row + 8 * s);
      const __m512i second = four_codes(x + i * x_row + 8 * s + 4);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        sum[i][half][0] = _mm512_dpbusd_epi32(sum[i][half][0], low[half], first);
        sum[i][half][kSets - 1] = _mm512_dpbusd_epi32(sum[i][half][kSets - 1], high[half], second);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
    for (int half = 0; half < 2; ++half) {
      __m512i all = sum[i][half][0];
      if constexpr (kSets == 2) {
        __m512i other = sum[i][half][1];
        // With a mask: g++ 12 warns of what its headers leave undefined in the other form.
        if constexpr (kTimes16) other = _mm512_maskz_srai_epi32(0xFFFF, other, 4);
        all = _mm512_add_epi32(all, other);
      }
      _mm512_storeu_si512(sums + i * kTileColumns + 16 * half, all);
    }
}

// clang-format off
#include "kernels/quantised/rounding.inc"
#include "kernels/quantised/loops.inc"
// clang-format on

}  // namespace

const QuantisedLoops kQuantised = kLoops;

}  // namespace stretto::kernels::cpu::avx512_vnni
