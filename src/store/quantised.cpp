#include "store/quantised.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "base/text.h"

namespace stretto::store {
namespace {

constexpr int64_t kBitsOfByte = 8;
constexpr int64_t kHalfBytes = 2;
// Weights of a tensor, so that no size of it overflows; far beyond any disk.
constexpr int64_t kMaxWeights = int64_t{1} << 56;

/// Rows and columns of a shape; columns 0 when it has no weights or too many.
struct MatrixShape {
  int64_t rows = 0, columns = 0;
};

MatrixShape matrix_of(const std::vector<int64_t>& shape) {
  MatrixShape matrix{.rows = shape[0], .columns = 1};
  int64_t weights = shape[0];
  for (size_t i = 1; i < shape.size(); ++i) {
    if (weights <= 0 || shape[i] <= 0 || shape[i] > kMaxWeights / weights) return {};
    matrix.columns *= shape[i];
    weights *= shape[i];
  }
  return matrix;
}

/// A row of codes into whole bytes; `offset` makes them numbers from 0 on.
void pack_row(std::span<const int8_t> codes, int64_t bits, char* out) {
  const int offset = 1 << (bits - 1);
  uint32_t waiting = 0;
  int64_t num_waiting = 0;
  for (const int8_t code : codes) {
    waiting |= static_cast<uint32_t>(code + offset) << num_waiting;
    num_waiting += bits;
    while (num_waiting >= kBitsOfByte) {
      *out++ = static_cast<char>(waiting & 0xFF);
      waiting >>= kBitsOfByte;
      num_waiting -= kBitsOfByte;
    }
  }
  if (num_waiting > 0) *out = static_cast<char>(waiting & 0xFF);
}

void unpack_row(const char* bytes, int64_t bits, std::span<int8_t> out) {
  const int offset = 1 << (bits - 1);
  const uint32_t mask = (1U << bits) - 1;
  // Eight codes are `bits` whole bytes, which one word holds.
  constexpr size_t kTogether = kBitsOfByte;
  const auto width = static_cast<size_t>(bits);
  size_t done = 0;
  for (; (out.size() - done) * width >= kTogether * sizeof(uint64_t); done += kTogether) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    bytes += bits;
    for (size_t i = 0; i < kTogether; ++i) {
      const auto code = static_cast<uint32_t>(word >> (i * width)) & mask;
      out[done + i] = static_cast<int8_t>(static_cast<int>(code) - offset);
    }
  }
  uint32_t waiting = 0;
  int64_t num_waiting = 0;
  for (int8_t& code : out.subspan(done)) {
    if (num_waiting < bits) {
      waiting |= static_cast<uint32_t>(static_cast<unsigned char>(*bytes++)) << num_waiting;
      num_waiting += kBitsOfByte;
    }
    code = static_cast<int8_t>(static_cast<int>(waiting & mask) - offset);
    waiting >>= bits;
    num_waiting -= bits;
  }
}

float scale_at(const QuantisedView& packed, int64_t index) {
  uint16_t half = 0;
  std::memcpy(&half, packed.scales.data() + index * kHalfBytes, sizeof half);
  return float_of_half(half);
}

int zero_at(const QuantisedView& packed, int64_t index) {
  if (packed.format.symmetric) return 0;
  const auto stored = static_cast<unsigned char>(packed.zeros[static_cast<size_t>(index)]);
  return static_cast<int>(stored) + static_cast<int>(packed.format.lowest());
}

[[noreturn]] void cannot(const std::string& what) {
  throw std::invalid_argument("[quantised] " + what);
}

void require_values(const QuantFormat& format, const QuantLayout& layout,
                    const QuantisedValues& values) {
  const auto scales = static_cast<size_t>(layout.num_scales());
  if (values.codes.size() != static_cast<size_t>(layout.rows * layout.columns) ||
      values.scales.size() != scales || values.zeros.size() != (format.symmetric ? 0 : scales)) {
    cannot("codes, scales or zeros are not as many as the format has");
  }
  const auto outside = [&](int64_t lowest) {
    return [&format, lowest](int8_t code) { return code < lowest || code > format.highest(); };
  };
  if (std::ranges::any_of(values.codes, outside(format.lowest_code())) ||
      std::ranges::any_of(values.zeros, outside(format.lowest()))) {
    cannot("a code or a zero is none of " + text_of(format));
  }
  const auto is_half = [](float scale) {
    return std::isfinite(scale) && float_of_half(half_of(scale)) == scale;
  };
  if (!std::ranges::all_of(values.scales, is_half)) cannot("a scale is no number of fp16");
}

void require_rows(const QuantLayout& layout, int64_t from, int64_t count, size_t out) {
  if (from < 0 || count < 0 || from > layout.rows - count ||
      out != static_cast<size_t>(count * layout.columns)) {
    cannot("rows outside of the matrix, or no room for them");
  }
}

std::string size_problem(const char* part, size_t found, uint64_t needed) {
  if (found == needed) return "";
  return std::string("`") + part + "` has " + counted(static_cast<int64_t>(found), "byte") + ", " +
         with_thousands(static_cast<int64_t>(needed)) + " are needed";
}

// Behind a row's last code, up to the end of its last byte.
bool has_bits_behind_rows(const QuantisedView& packed, const QuantLayout& layout) {
  const int64_t used = layout.columns * packed.format.bits % kBitsOfByte;
  if (used == 0) return false;
  for (int64_t row = 0; row < layout.rows; ++row) {
    const auto last = static_cast<size_t>((row + 1) * layout.row_bytes - 1);
    if (static_cast<unsigned char>(packed.codes[last]) >> used != 0) return true;
  }
  return false;
}

std::string contents_problem(const QuantisedView& packed, const QuantLayout& layout) {
  for (int64_t i = 0; i < layout.num_scales(); ++i) {
    if (!std::isfinite(scale_at(packed, i))) return "a scale is infinite or NaN";
  }
  const auto stored_highest =
      static_cast<unsigned char>(packed.format.highest() - packed.format.lowest());
  for (const char zero : packed.zeros) {
    if (static_cast<unsigned char>(zero) > stored_highest) return "a zero is beyond its bits";
  }
  const bool has_lowest = packed.format.lowest_code() != packed.format.lowest() &&
                          packed.codes.find('\0') != std::string_view::npos;
  if (has_lowest) return "a code is -128, which symmetric codes are not";
  return has_bits_behind_rows(packed, layout) ? "a row has bits behind its last code" : "";
}

}  // namespace

std::string text_of(const QuantFormat& format) {
  const std::string scope = format.scope == QuantScope::kTensor ? "a tensor"
                            : format.scope == QuantScope::kRow
                                ? "a row"
                                : counted(format.group_size, "column");
  return counted(format.bits, "bit") + (format.symmetric ? ", symmetric" : ", asymmetric") +
         ", a scale for " + scope;
}

std::string format_problem(const QuantFormat& format) {
  constexpr int64_t kWidths[] = {2, 3, 4, 6, 8};
  if (std::ranges::find(kWidths, format.bits) == std::end(kWidths)) {
    return counted(format.bits, "bit") + ": 2, 3, 4, 6 or 8 are possible";
  }
  const bool grouped = format.scope == QuantScope::kGroup;
  if (grouped && format.group_size < 2) {
    return "groups of " + std::to_string(format.group_size) + ": a group has 2 columns or more";
  }
  if (!grouped && format.group_size != 0) return "a group size where there are no groups";
  return "";
}

std::string packing_problem(const QuantFormat& format, const std::vector<int64_t>& shape) {
  if (auto problem = format_problem(format); !problem.empty()) return problem;
  if (shape.size() < 2) return "a vector is not packed";
  const MatrixShape matrix = matrix_of(shape);
  if (matrix.columns == 0) return "it has no weights, or too many";
  if (format.scope == QuantScope::kGroup && matrix.columns % format.group_size != 0) {
    return "groups of " + std::to_string(format.group_size) + " do not divide its " +
           counted(matrix.columns, "column");
  }
  return "";
}

double QuantLayout::bits_per_weight() const {
  return static_cast<double>(kBitsOfByte) * static_cast<double>(bytes()) /
         (static_cast<double>(rows) * static_cast<double>(columns));
}

QuantLayout layout_of(const QuantFormat& format, const std::vector<int64_t>& shape) {
  if (const auto problem = packing_problem(format, shape); !problem.empty()) cannot(problem);
  const MatrixShape matrix = matrix_of(shape);
  QuantLayout layout;
  layout.rows = matrix.rows;
  layout.columns = matrix.columns;
  layout.row_bytes = (matrix.columns * format.bits + kBitsOfByte - 1) / kBitsOfByte;
  layout.scale_rows = format.scope == QuantScope::kTensor ? 1 : matrix.rows;
  layout.group_columns = format.scope == QuantScope::kGroup ? format.group_size : matrix.columns;
  layout.groups = matrix.columns / layout.group_columns;
  layout.codes_bytes = static_cast<uint64_t>(matrix.rows * layout.row_bytes);
  layout.scales_bytes = static_cast<uint64_t>(layout.num_scales() * kHalfBytes);
  layout.zeros_bytes = format.symmetric ? 0 : static_cast<uint64_t>(layout.num_scales());
  return layout;
}

QuantisedTensor pack(const QuantFormat& format, const std::vector<int64_t>& shape,
                     const QuantisedValues& values) {
  const QuantLayout layout = layout_of(format, shape);
  require_values(format, layout, values);
  QuantisedTensor packed{.format = format, .shape = shape, .codes = {}, .scales = {}, .zeros = {}};
  packed.codes.resize(layout.codes_bytes);
  const std::span<const int8_t> codes(values.codes);
  const auto columns = static_cast<size_t>(layout.columns);
  for (int64_t row = 0; row < layout.rows; ++row) {
    pack_row(codes.subspan(static_cast<size_t>(row) * columns, columns), format.bits,
             packed.codes.data() + row * layout.row_bytes);
  }
  packed.scales.resize(layout.scales_bytes);
  for (size_t i = 0; i < values.scales.size(); ++i) {
    const uint16_t half = half_of(values.scales[i]);
    std::memcpy(packed.scales.data() + i * kHalfBytes, &half, sizeof half);
  }
  for (const int8_t zero : values.zeros) {
    packed.zeros += static_cast<char>(zero - static_cast<int>(format.lowest()));
  }
  return packed;
}

void unpack_rows(const QuantisedView& packed, int64_t from, int64_t count, std::span<int8_t> out) {
  const QuantLayout layout = packed.layout();
  require_rows(layout, from, count, out.size());
  const auto columns = static_cast<size_t>(layout.columns);
  for (int64_t i = 0; i < count; ++i) {
    unpack_row(packed.codes.data() + (from + i) * layout.row_bytes, packed.format.bits,
               out.subspan(static_cast<size_t>(i) * columns, columns));
  }
}

QuantisedValues unpack(const QuantisedView& packed) {
  const QuantLayout layout = packed.layout();
  QuantisedValues values;
  values.codes.resize(static_cast<size_t>(layout.rows * layout.columns));
  unpack_rows(packed, 0, layout.rows, values.codes);
  for (int64_t i = 0; i < layout.num_scales(); ++i) {
    values.scales.push_back(scale_at(packed, i));
    if (!packed.format.symmetric) values.zeros.push_back(static_cast<int8_t>(zero_at(packed, i)));
  }
  return values;
}

void dequantise_rows(const QuantisedView& packed, int64_t from, int64_t count,
                     std::span<float> out) {
  const QuantLayout layout = packed.layout();
  require_rows(layout, from, count, out.size());
  std::vector<int8_t> codes(static_cast<size_t>(layout.columns));
  size_t next = 0;
  for (int64_t row = from; row < from + count; ++row) {
    unpack_row(packed.codes.data() + row * layout.row_bytes, packed.format.bits, codes);
    for (int64_t first = 0; first < layout.columns; first += layout.group_columns) {
      const int64_t index = layout.scale_index(row, first);
      const float scale = scale_at(packed, index);
      const int zero = zero_at(packed, index);
      for (int64_t column = first; column < first + layout.group_columns; ++column) {
        // Exact: the scale has 11 bits, the difference 9.
        out[next++] = scale * static_cast<float>(codes[static_cast<size_t>(column)] - zero);
      }
    }
  }
}

uint16_t half_of(float value) {
  constexpr uint32_t kInfinity = 0x7F800000, kRoundsToInfinity = 0x477FF000;  // 65520
  constexpr uint32_t kSmallestNormal = 0x38800000;                            // 2^-14
  constexpr uint32_t kBiasChange = 0x38000000;                                // 127 - 15
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  uint32_t half = 0;
  if (magnitude > kInfinity) {
    half = 0x7E00;
  } else if (magnitude >= kRoundsToInfinity) {
    half = 0x7C00;
  } else if (magnitude < kSmallestNormal) {
    half = static_cast<uint32_t>(std::lrint(std::bit_cast<float>(magnitude) * 0x1p24F));
  } else {
    half = (magnitude + 0xFFF + (magnitude >> 13 & 1) - kBiasChange) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 0x1F, fraction = half & 0x3FF;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1F ? 0x7F800000 : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | fraction << 13);
}

std::string bytes_problem(const QuantisedView& packed) {
  if (auto problem = packing_problem(packed.format, packed.shape); !problem.empty()) return problem;
  const QuantLayout layout = packed.layout();
  for (const auto& problem : {size_problem("codes", packed.codes.size(), layout.codes_bytes),
                              size_problem("scales", packed.scales.size(), layout.scales_bytes),
                              size_problem("zeros", packed.zeros.size(), layout.zeros_bytes)}) {
    if (!problem.empty()) return problem;
  }
  return contents_problem(packed, layout);
}

}  // namespace stretto::store
