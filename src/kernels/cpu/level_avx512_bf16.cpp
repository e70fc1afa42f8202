// The matrix product on pairs of bfloat16, for processors with AVX512_BF16: one instruction adds
// two products to each of sixteen fp32 sums. Blocks, panels and the order of the sums are those of
// gemm/product.inc, with a word (two rows of depth) where that has a number. All other loops of
// this level are those of AVX-512 (table.cpp).
#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/table.h"

namespace stretto::kernels::cpu::avx512_bf16 {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kPanel = 2 * kLanes;
constexpr int kTileRows = 12;
constexpr int64_t kMostPairs = kProductDepth / 2;
constexpr int64_t kWordStride = kMostPairs + 16;  // of the copy of A, not a power of two

#include "kernels/cpu/transpose.inc"

struct Words {
  explicit Words(int64_t count)
      : data(static_cast<uint32_t*>(
            std::aligned_alloc(64, static_cast<size_t>((count + 15) / 16 * 64)))) {
    if (data == nullptr) std::abort();
  }
  ~Words() { std::free(data); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  uint32_t* data;
};

int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// The first `count` lanes, all when there are more.
__mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1 << (count > 0 ? count : 0)) - 1);
}

/// `count` numbers -> (count + 1) / 2 words of neighbours, zero past the end.
void pairs_of_line(const float* from, int64_t count, uint32_t* to) {
  for (int64_t k = 0; k < count; k += 2 * kLanes) {
    const __m512 low = _mm512_maskz_loadu_ps(first_lanes(count - k), from + k);
    const __m512 high = _mm512_maskz_loadu_ps(first_lanes(count - k - kLanes), from + k + kLanes);
    const __m512i words = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    _mm512_mask_storeu_epi32(to + k / 2, first_lanes((count - k + 1) / 2), words);
  }
}

/// Two lines of `count` numbers (null: zeroes) -> count words, one of each line.
void pairs_of_lines(const float* even, const float* odd, int64_t count, uint32_t* to) {
  for (int64_t j = 0; j < count; j += kLanes) {
    const __mmask16 lanes = first_lanes(count - j);
    const __m512 low =
        even == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, even + j);
    const __m512 high =
        odd == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, odd + j);
    const __m256i low16 = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(low));
    const __m256i high16 = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(high));
    // The forms with a mask: g++ 12 warns of what its headers leave undefined in the others.
    const __m512i words = _mm512_or_si512(
        _mm512_maskz_cvtepu16_epi32(lanes, low16),
        _mm512_maskz_slli_epi32(lanes, _mm512_maskz_cvtepu16_epi32(lanes, high16), 16));
    _mm512_mask_storeu_epi32(to + j, lanes, words);
  }
}

/// The copy of A is [rows, kWordStride], or [pairs, kProductRows] when `kTransposed`. `lanes` are
/// the columns of the panel's halves that C has.
template <int kRows, bool kTransposed>
void tile(int64_t pairs, const uint32_t* a, const uint32_t* b, const ProductItem& item, float* c,
          const float* bias, const __mmask16* lanes) {
  __m512 sum[kRows][2] = {};
  for (int64_t k = 0; k < pairs; ++k) {
    const auto left = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + k * kPanel));
    const auto right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + k * kPanel + kLanes));
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const uint32_t word = kTransposed ? a[k * kProductRows + i] : a[i * kWordStride + k];
      const auto one = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(word)));
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], one, left);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], one, right);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
    for (int half = 0; half < 2; ++half) {
      float* out = c + i * item.c_row + half * kLanes;
      __m512 value = sum[i][half];
      if (item.add) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes[half], out));
      if (bias != nullptr)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes[half], bias + half * kLanes));
      _mm512_mask_storeu_ps(out, lanes[half], value);
    }
}

template <int kRows, bool kTransposed>
void tile_of(int64_t rows, int64_t pairs, const uint32_t* a, const uint32_t* b,
             const ProductItem& item, float* c, const float* bias, const __mmask16* lanes) {
  if constexpr (kRows > 1) {
    if (rows < kRows)
      return tile_of<kRows - 1, kTransposed>(rows, pairs, a, b, item, c, bias, lanes);
  }
  tile<kRows, kTransposed>(pairs, a, b, item, c, bias, lanes);
}

template <bool kTransposed>
void product_of(const ProductItem& item, const uint32_t* copy) {
  const int64_t pairs = (item.depth + 1) / 2;
  const uint32_t* packed = reinterpret_cast<const uint32_t*>(item.b);
  for (int64_t j = 0; j < item.columns; j += kPanel) {
    const __mmask16 lanes[2] = {first_lanes(item.columns - j),
                                first_lanes(item.columns - j - kLanes)};
    for (int64_t i = 0; i < item.rows; i += kTileRows)
      tile_of<kTileRows, kTransposed>(smaller(kTileRows, item.rows - i), pairs,
                                      copy + (kTransposed ? i : i * kWordStride),
                                      packed + j * pairs, item, item.c + i * item.c_row + j,
                                      item.bias == nullptr ? nullptr : item.bias + j, lanes);
  }
}

/// Row `row` of A, dense; `buffer` [kProductDepth] holds it when it is put together from lines.
const float* row_of(const ProductItem& item, int64_t row, float* buffer) {
  const Lines& lines = item.lines;
  if (lines.table == nullptr) return item.a.data + row * item.a.row;
  const int32_t* entry = lines.table + row * lines.step + lines.begin / lines.width;
  int64_t column = lines.begin % lines.width;
  for (int64_t k = 0; k < item.depth; ++entry, column = 0) {
    const int64_t count = smaller(lines.width - column, item.depth - k);
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    if (*entry < 0)
      std::memset(buffer + k, 0, bytes);
    else
      std::memcpy(buffer + k, item.a.data + *entry * item.a.row + column, bytes);
    k += count;
  }
  return buffer;
}

/// Step `k` of depth of a transposed A; null: zeroes.
const float* step_of(const ProductItem& item, int64_t k) {
  if (k >= item.depth) return nullptr;
  const Lines& lines = item.lines;
  const int64_t line = lines.table == nullptr ? k : lines.table[k * lines.step];
  return line < 0 ? nullptr : item.a.data + line * item.a.column;
}

}  // namespace

void product(const ProductItem& item) {
  const bool gathered = item.lines.table != nullptr;
  const bool transposed = gathered ? item.lines.transposed : item.a.column != 1;
  const Words copy(transposed ? kMostPairs * kProductRows : kProductRows * kWordStride);
  if (!transposed) {
    float buffer[kProductDepth];
    for (int64_t i = 0; i < item.rows; ++i)
      pairs_of_line(row_of(item, i, buffer), item.depth, copy.data + i * kWordStride);
    return product_of<false>(item, copy.data);
  }
  for (int64_t k = 0; k < item.depth; k += 2)
    pairs_of_lines(step_of(item, k), step_of(item, k + 1), item.rows,
                   copy.data + k / 2 * kProductRows);
  product_of<true>(item, copy.data);
}

/// [kPanel, kMostPairs] -> [pairs, kPanel].
void words_of_lines(const uint32_t* lines, int64_t pairs, uint32_t* to) {
  for (int64_t k = 0; k < pairs; k += kLanes)
    for (int64_t j = 0; j < kPanel; j += kLanes) {
      SquareRow rows[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i)
        rows[i] = _mm512_loadu_ps(lines + (j + i) * kMostPairs + k);
      transpose(rows);
      for (int64_t i = 0; i < smaller(kLanes, pairs - k); ++i)
        _mm512_storeu_ps(to + (k + i) * kPanel + j, rows[i]);
    }
}

void pack(const PackItem& item) {
  const MatrixView& b = item.b;
  const int64_t pairs = (item.depth + 1) / 2;
  uint32_t* words = reinterpret_cast<uint32_t*>(item.out);
  for (int64_t panel = item.begin; panel < item.end; ++panel) {
    const int64_t first = panel * kPanel, count = smaller(kPanel, item.columns - first);
    const float* from = b.data + first * b.column;
    uint32_t* to = words + first * pairs;
    if (count < kPanel)
      for (int64_t i = 0; i < pairs * kPanel; ++i) to[i] = 0;
    if (b.column == 1) {
      for (int64_t k = 0; k < item.depth; k += 2) {
        const float* even = from + k * b.row;
        pairs_of_lines(even, k + 1 < item.depth ? even + b.row : nullptr, count,
                       to + k / 2 * kPanel);
      }
      continue;
    }
    uint32_t lines[kPanel * kMostPairs] = {};
    for (int64_t j = 0; j < count; ++j)
      pairs_of_line(from + j * b.column, item.depth, lines + j * kMostPairs);
    words_of_lines(lines, pairs, to);
  }
}

}  // namespace stretto::kernels::cpu::avx512_bf16
