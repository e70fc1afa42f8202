#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Matrices of few bits a weight: the format, and how they are packed into bytes.
///
/// A tensor of two dimensions or more is a matrix [rows, columns]: rows are its first dimension,
/// columns the product of all others. Each weight is a code q of `bits` bits, and
///
///     weight = scale * (q - zero),   -2^(bits - 1) <= q, zero <= 2^(bits - 1) - 1
///
/// with one scale (and, unless symmetric, one zero) for the tensor, a row, or `group_size` columns
/// of a row. A symmetric format has no zeros (0), and at 8 bits no code -128: the products of int8
/// need that. Scales are fp16; they may be negative, so that the one code more below zero is of use
/// on either side. A scale is 0 where all of its weights are.
///
/// How they stand in a file: store/quantised_file.h.
namespace stretto::store {

/// Which weights share a scale.
enum class QuantScope : uint8_t { kTensor, kRow, kGroup };

struct QuantFormat {
  int64_t bits = 8;  ///< 2, 3, 4, 6 or 8
  bool symmetric = true;
  QuantScope scope = QuantScope::kRow;
  int64_t group_size = 0;  ///< columns that share a scale: kGroup alone, else 0

  int64_t lowest() const { return -(int64_t{1} << (bits - 1)); }  ///< a zero may be that
  /// The lowest code.
  int64_t lowest_code() const { return symmetric && bits == 8 ? -127 : lowest(); }
  int64_t highest() const { return (int64_t{1} << (bits - 1)) - 1; }

  bool operator==(const QuantFormat&) const = default;
};

/// "4 bits, symmetric, a scale for 64 columns"
std::string text_of(const QuantFormat& format);

/// Why there is no such format, such as "5 bits: 2, 3, 4, 6 or 8 are possible"; empty when there
/// is.
std::string format_problem(const QuantFormat& format);

/// Why a tensor of this shape cannot be packed so, such as "groups of 32 do not divide its 100
/// columns"; empty when it can. A tensor is never packed with more bits than were asked for.
std::string packing_problem(const QuantFormat& format, const std::vector<int64_t>& shape);

/// The sizes of a packed tensor, known before anything is computed.
struct QuantLayout {
  int64_t rows = 0, columns = 0;
  int64_t row_bytes = 0;               ///< of a row's codes
  int64_t scale_rows = 0, groups = 0;  ///< shape of the scales
  int64_t group_columns = 0;           ///< weights of a row that share a scale
  uint64_t codes_bytes = 0, scales_bytes = 0, zeros_bytes = 0;

  uint64_t bytes() const { return codes_bytes + scales_bytes + zeros_bytes; }
  double bits_per_weight() const;
  int64_t num_scales() const { return scale_rows * groups; }
  /// Of the scale of a weight.
  int64_t scale_index(int64_t row, int64_t column) const {
    return (scale_rows == 1 ? 0 : row) * groups + column / group_columns;
  }
};

/// Throws std::invalid_argument where there is a packing_problem().
QuantLayout layout_of(const QuantFormat& format, const std::vector<int64_t>& shape);

/// A packed tensor whose bytes lie elsewhere, in a mapped file for instance.
struct QuantisedView {
  QuantFormat format;
  std::vector<int64_t> shape;
  std::string_view codes, scales, zeros;  ///< as quantised_file.h has them

  QuantLayout layout() const { return layout_of(format, shape); }
};

/// A packed tensor.
struct QuantisedTensor {
  QuantFormat format;
  std::vector<int64_t> shape;
  std::string codes, scales, zeros;

  QuantisedView view() const { return {format, shape, codes, scales, zeros}; }
};

/// What is packed: a byte a code, as products take them.
struct QuantisedValues {
  std::vector<int8_t> codes;  ///< q [rows, columns]
  std::vector<float> scales;  ///< [scale_rows, groups], each a number of fp16
  std::vector<int8_t> zeros;  ///< [scale_rows, groups]; empty of a symmetric format
};

/// Throws std::invalid_argument for codes, scales or zeros that the format does not have.
QuantisedTensor pack(const QuantFormat& format, const std::vector<int64_t>& shape,
                     const QuantisedValues& values);
QuantisedValues unpack(const QuantisedView& packed);
/// Codes q of `count` rows from `from` on, into out [count, columns].
void unpack_rows(const QuantisedView& packed, int64_t from, int64_t count, std::span<int8_t> out);

/// The weights of rows [from, from + count), into out [count, columns]. Equal bits on any machine.
void dequantise_rows(const QuantisedView& packed, int64_t from, int64_t count,
                     std::span<float> out);

/// fp16 as bytes have it, and back; to nearest, ties to even. Too large a number is infinite.
uint16_t half_of(float value);
float float_of_half(uint16_t half);

/// What is wrong with the bytes of a packed tensor, such as "`scales` has 12 bytes, 16 are needed":
/// their number, scales that are not finite, codes and zeros that the format does not have. Empty
/// when nothing is.
std::string bytes_problem(const QuantisedView& packed);

}  // namespace stretto::store
