#pragma once

#include <cstdint>

/// Loops of products with few-bit weights (quantised.h has the rules), as part of cpu::Table.
namespace stretto::kernels::cpu {

/// Rows rounded to 8 bits.
struct RoundedRows {
  int8_t* codes;   ///< [rows, depth], zero behind the inputs
  float* scales;   ///< [rows]
  int32_t* sums;   ///< [rows, groups]: of the codes of a group
  int64_t inputs;  ///< numbers of a row
  int64_t depth;   ///< the same, rounded up to whole steps of 8
  int64_t group;   ///< inputs of a group, a multiple of 8 unless it is all of them
  int64_t groups;
};

/// Rows of x times columns [begin, begin + columns) of a laid out matrix.
struct QuantisedItem {
  const int8_t* x;        ///< [rows, depth]
  const float* x_scales;  ///< [rows]
  const int32_t* x_sums;  ///< [rows, groups]
  int64_t rows, depth, group, groups;
  const uint8_t*
      weights;  ///< of the whole matrix, as QuantisedMatrix has them; so are the next two
  const float* scales;
  const int32_t* zeros;  ///< null: `zero` for all
  int32_t zero;
  int bits;
  int64_t begin, columns;
  float* out;  ///< of column `begin`
  int64_t out_row;
  const float* bias;  ///< of column `begin`; null: none
  /// [panels, groups]: not 0 where all weights of a group are zero, in each output of a panel;
  /// null: nobody looked.
  const uint8_t* empty = nullptr;
};

/// The rows of one item, at most.
constexpr int64_t kQuantisedRows = 96;
constexpr int64_t kQuantisedPanel = 32;                  ///< outputs of a panel
constexpr int64_t kQuantisedLine = kQuantisedPanel * 4;  ///< codes of a panel that lie together

/// How the codes of weights come to a product.
enum class CodeForm : uint8_t {
  kBytes,       ///< any of 0 … 255
  kSmallBytes,  ///< below 64: four products with -127 … 127 add up in 16 bits
  kTinyBytes,   ///< below 16: sixteen of them do
  kHalves,      ///< the same, two in a byte
};

struct QuantisedLoops {
  /// Rows [begin, end) of x, which lie `stride` numbers apart.
  void (*round_rows)(const float* x, int64_t stride, int64_t begin, int64_t end,
                     const RoundedRows& rounded);
  void (*product)(const QuantisedItem& item);
};

}  // namespace stretto::kernels::cpu
