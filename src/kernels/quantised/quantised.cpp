#include "kernels/quantised/quantised.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/large_pages.h"
#include "kernels/gemm/row_items.h"

namespace stretto::kernels {
namespace {

using gemm::divide_up;

constexpr int64_t kLineOfCache = 64;                // bytes
constexpr int64_t kMostInGroup = int64_t{1} << 16;  // whose sums of products fit int32
constexpr int64_t kLineOfPanel = cpu::kQuantisedLine;
constexpr int64_t kQuadsOfStep = QuantisedMatrix::kStep / 4;  // of a step

/// A row of codes and what it is scaled by.
struct CodeRow {
  const int8_t* codes;
  const float* scales;
  const int8_t* zeros;  // null: zeroes
};

/// The rows of weights to be laid out.
class CodeRows {
 public:
  explicit CodeRows(const QuantisedWeights& weights)
      : codes_(weights.codes.contiguous()),
        scales_(weights.scales.contiguous()),
        zeros_(weights.zeros.defined() ? weights.zeros.contiguous() : at::Tensor()) {}

  CodeRow row(int64_t output) const {
    const int64_t own = scales_.size(0) == 1 ? 0 : output * scales_.size(1);
    return {codes_.const_data_ptr<int8_t>() + output * codes_.size(1),
            scales_.const_data_ptr<float>() + own,
            zeros_.defined() ? zeros_.const_data_ptr<int8_t>() + own : nullptr};
  }

 private:
  at::Tensor codes_, scales_, zeros_;
};

/// Whether the weights of these outputs and inputs are all zero.
bool is_empty_block(const QuantisedWeights& weights, const CodeRows& rows, int64_t output,
                    int64_t input) {
  constexpr int64_t kPanel = QuantisedMatrix::kPanel, kBlock = QuantisedMatrix::kBlock;
  const int64_t outputs = weights.codes.size(0), inputs = weights.codes.size(1);
  const int64_t group = weights.group == 0 ? inputs : weights.group;
  for (int64_t o = output; o < std::min(output + kPanel, outputs); ++o) {
    const CodeRow row = rows.row(o);
    for (int64_t i = input; i < std::min(input + kBlock, inputs); ++i)
      if (row.codes[i] != (row.zeros == nullptr ? 0 : row.zeros[i / group])) return false;
  }
  return true;
}

/// Whether so many blocks are empty that leaving them out pays for the scales of smaller groups.
bool has_many_empty_blocks(const QuantisedWeights& weights) {
  constexpr int64_t kPanel = QuantisedMatrix::kPanel, kBlock = QuantisedMatrix::kBlock;
  const int64_t outputs = weights.codes.size(0), inputs = weights.codes.size(1);
  const bool fits = weights.group == 0 || weights.group >= inputs || weights.group % kBlock == 0;
  if (!fits) return false;
  const CodeRows rows(weights);
  const int64_t deep = divide_up(inputs, kBlock), blocks = divide_up(outputs, kPanel) * deep;
  std::atomic<int64_t> empty{0};
  at::parallel_for(0, blocks, kBlock, [&](int64_t begin, int64_t end) {
    int64_t own = 0;
    for (int64_t b = begin; b < end; ++b)
      own += is_empty_block(weights, rows, b / deep * kPanel, b % deep * kBlock) ? 1 : 0;
    empty += own;
  });
  // Smaller groups cost: measured, two thirds of empty blocks gain then.
  const bool has_such_groups = weights.group == kBlock;
  return blocks > 1 && (has_such_groups ? 4 * empty >= blocks : 3 * empty >= 2 * blocks);
}

void check_code_range(const at::Tensor& numbers, int bits, const char* what) {
  const at::Tensor whole = numbers.contiguous();
  const int8_t* at = whole.const_data_ptr<int8_t>();
  const int lowest = -(1 << (bits - 1)), highest = (1 << (bits - 1)) - 1;
  int8_t low = 0, high = 0;  // as wide as the codes: the loop has sixteen of them in a vector
  for (int64_t i = 0; i < whole.numel(); ++i) {
    low = std::min(low, at[i]);
    high = std::max(high, at[i]);
  }
  TORCH_CHECK(low >= lowest && high <= highest, "[quantised] ", what, " of ", bits,
              " bits must be in ", lowest, " … ", highest, ", got ", int{low}, " … ", int{high});
}

void check_codes(const QuantisedWeights& weights) {
  const at::Tensor &codes = weights.codes, &scales = weights.scales, &zeros = weights.zeros;
  TORCH_CHECK(codes.defined() && codes.is_cpu() && codes.scalar_type() == at::kChar &&
                  codes.dim() == 2 && codes.size(0) > 0 && codes.size(1) > 0,
              "[quantised] codes must be an int8 matrix on the CPU");
  const char* problem = QuantisedMatrix::problem(weights.bits, codes.size(1), weights.group);
  TORCH_CHECK(problem == nullptr, "[quantised] ", weights.bits, " bits, ", codes.size(1),
              " inputs in groups of ", weights.group, ": ", problem == nullptr ? "" : problem);
  const int64_t group = weights.group == 0 ? codes.size(1) : weights.group;
  TORCH_CHECK(scales.defined() && scales.is_cpu() && scales.scalar_type() == at::kFloat &&
                  scales.dim() == 2 && scales.size(1) == divide_up(codes.size(1), group) &&
                  (scales.size(0) == codes.size(0) || scales.size(0) == 1),
              "[quantised] codes ", codes.sizes(), " in groups of ", group,
              " need fp32 scales for each row, or for all, and each group, got ", scales.sizes());
  TORCH_CHECK(!zeros.defined() || (zeros.is_cpu() && zeros.scalar_type() == at::kChar &&
                                   zeros.sizes() == scales.sizes()),
              "[quantised] zeros must be int8 in the shape of the scales, ", scales.sizes());
  check_code_range(codes, weights.bits, "codes");
  if (zeros.defined()) check_code_range(zeros, weights.bits, "zeros");
}

bool has_zeros(const QuantisedWeights& weights) {
  return weights.zeros.defined() && weights.zeros.count_nonzero().item<int64_t>() > 0;
}

/// Rounded rows of x in one piece of memory: a decoding step asks for some hundred of them.
struct RoundedInput {
  at::Tensor memory;
  cpu::RoundedRows rows;

  RoundedInput(int64_t count, const QuantisedMatrix& matrix) : rows{} {
    const int64_t depth = matrix.steps() * QuantisedMatrix::kStep;
    const int64_t of_codes = divide_up(count * depth, kLineOfCache) * kLineOfCache;
    const int64_t of_scales = divide_up(count * 4, kLineOfCache) * kLineOfCache;
    memory = at::empty({of_codes + of_scales + count * matrix.groups() * 4}, at::kByte);
    uint8_t* begin = memory.data_ptr<uint8_t>();
    rows = {.codes = reinterpret_cast<int8_t*>(begin),
            .scales = reinterpret_cast<float*>(begin + of_codes),
            .sums = reinterpret_cast<int32_t*>(begin + of_codes + of_scales),
            .inputs = matrix.inputs(),
            .depth = depth,
            .group = matrix.group(),
            .groups = matrix.groups()};
  }
};

/// How a product is cut into items that any thread may take. No result depends on it.
struct PanelCut {
  /// @param products  of numbers: few are left to one thread
  PanelCut(int64_t rows, int64_t panels, int64_t products)
      : row_blocks(divide_up(rows, cpu::kQuantisedRows)) {
    constexpr int64_t kFewProducts = int64_t{1} << 18;  // some microseconds: as waking a thread
    const int64_t threads = products < kFewProducts ? 1 : gemm::available_threads();
    // With many rows, threads have as many blocks of them each; with few, panels.
    const bool are_many = row_blocks >= threads;
    if (are_many) row_blocks = divide_up(row_blocks, threads) * threads;
    rows_of_block = divide_up(rows, row_blocks);
    panels_of_block = divide_up(panels, are_many ? 1 : std::min(panels, threads));
    column_blocks = divide_up(panels, panels_of_block);
    grain = threads == 1 ? items() : 1;
  }

  int64_t items() const { return row_blocks * column_blocks; }

  int64_t row_blocks, rows_of_block = 1, panels_of_block = 1, column_blocks = 1, grain = 1;
};

}  // namespace

const char* QuantisedMatrix::problem(int bits, int64_t inputs, int64_t group) {
  if (bits < 2 || bits > 8) return "2 to 8 bits are possible";
  if (inputs < 1) return "there are no inputs";
  if (group < 0) return "a group cannot be negative";
  if (group != 0 && group < inputs && group % kStep != 0)
    return "groups must be of a multiple of 8 inputs";
  if ((group == 0 ? inputs : group) > kMostInGroup) return "at most 65536 inputs can share a scale";
  return nullptr;
}

QuantisedMatrix::Form QuantisedMatrix::checked(const QuantisedWeights& weights) {
  check_codes(weights);
  const bool leaves_out = has_many_empty_blocks(weights);
  return {.bits = weights.bits,
          .outputs = weights.codes.size(0),
          .inputs = weights.codes.size(1),
          .group = leaves_out ? kBlock : weights.group,
          .is_symmetric = !has_zeros(weights),
          .leaves_out = leaves_out};
}

QuantisedMatrix::QuantisedMatrix(const Form& form)
    : bits_(form.bits),
      outputs_(form.outputs),
      inputs_(form.inputs),
      group_(form.group == 0 ? form.inputs : std::min(form.group, form.inputs)),
      groups_(divide_up(inputs_, group_)),
      steps_(divide_up(inputs_, kStep)),
      codes_(gemm::in_large_pages({panels() * panel_bytes()}, at::kByte)),
      scales_(at::zeros({panels(), groups_, kPanel}, at::kFloat)) {
  if (!form.is_symmetric) zeros_ = at::zeros({panels(), groups_, kPanel}, at::kInt);
  if (form.leaves_out) empty_ = at::zeros({panels(), groups_}, at::kByte);
  std::memset(codes_.data_ptr<uint8_t>(), 0, static_cast<size_t>(codes_.numel()));
}

QuantisedMatrix::QuantisedMatrix(const QuantisedWeights& weights)
    : QuantisedMatrix(checked(weights)) {
  lay_out(weights);
  if (empty_.defined()) find_empty_groups();
}

int64_t QuantisedMatrix::place(int64_t output, int64_t quad) const {
  const int64_t line = has_halves() ? quad / kQuadsOfStep : quad;
  return output / kPanel * panel_bytes() + line * kLineOfPanel + output % kPanel * 4;
}

void QuantisedMatrix::lay_out(const QuantisedWeights& weights) {
  const CodeRows from(weights);
  const int64_t given = weights.group == 0 ? inputs_ : weights.group;
  at::parallel_for(0, panels(), 1, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> bytes(static_cast<size_t>(steps_ * kStep));
    const int64_t last = std::min(end * kPanel, outputs_);
    for (int64_t o = begin * kPanel; o < last; ++o) {
      const CodeRow row = from.row(o);
      for (int64_t i = 0; i < inputs_; ++i)
        bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(row.codes[i] + zero());
      lay_out_codes(bytes.data(), o);
      lay_out_scales(row.scales, row.zeros, given, o);
    }
  });
}

/// @param bytes  [steps * kStep]: what is behind the inputs is zero
void QuantisedMatrix::lay_out_codes(const uint8_t* bytes, int64_t output) {
  uint8_t* to = codes_.data_ptr<uint8_t>() + place(output, 0);
  if (!has_halves()) {
    for (int64_t quad = 0; quad < steps_ * kQuadsOfStep; ++quad)
      std::memcpy(to + quad * kLineOfPanel, bytes + 4 * quad, 4);
    return;
  }
  for (int64_t step = 0; step < steps_; ++step) {
    uint32_t low, high;
    std::memcpy(&low, bytes + kStep * step, sizeof low);
    std::memcpy(&high, bytes + kStep * step + 4, sizeof high);
    const uint32_t both = low | high << 4;  // of four bytes below 16
    std::memcpy(to + step * kLineOfPanel, &both, sizeof both);
  }
}

/// @param group  inputs that share one of the given scales; ours may be smaller
void QuantisedMatrix::lay_out_scales(const float* scales, const int8_t* zeros, int64_t group,
                                     int64_t output) {
  const int64_t first = output / kPanel * groups_ * kPanel + output % kPanel;
  float* to = scales_.data_ptr<float>() + first;
  for (int64_t g = 0; g < groups_; ++g) to[g * kPanel] = scales[g * group_ / group];
  if (!zeros_.defined()) return;
  int32_t* to_zeros = zeros_.data_ptr<int32_t>() + first;
  for (int64_t g = 0; g < groups_; ++g) to_zeros[g * kPanel] = zeros[g * group_ / group] + zero();
}

void QuantisedMatrix::find_empty_groups() {
  uint8_t* empty = empty_.data_ptr<uint8_t>();
  std::vector<float> row(static_cast<size_t>(inputs_));
  for (int64_t p = 0; p < panels(); ++p) {
    uint8_t* own = empty + p * groups_;
    std::fill_n(own, groups_, uint8_t{1});
    for (int64_t o = p * kPanel; o < std::min((p + 1) * kPanel, outputs_); ++o) {
      dense_row(o, row.data());
      for (int64_t i = 0; i < inputs_; ++i)
        if (row[static_cast<size_t>(i)] != 0) own[i / group_] = 0;
    }
  }
}

int64_t QuantisedMatrix::bytes() const {
  const auto size = [](const at::Tensor& x) {
    return x.defined() ? static_cast<int64_t>(x.nbytes()) : 0;
  };
  return size(codes_) + size(scales_) + size(zeros_) + size(empty_);
}

void QuantisedMatrix::dense_row(int64_t output, float* to) const {
  const uint8_t* from = codes() + place(output, 0);
  const bool halves = has_halves();
  for (int64_t quad = 0; 4 * quad < inputs_; ++quad) {
    const bool is_upper = halves && quad % kQuadsOfStep == 1;
    const int64_t count = std::min<int64_t>(4, inputs_ - 4 * quad);
    for (int64_t i = 0; i < count; ++i) {
      const int code = !halves ? from[i] : is_upper ? from[i] >> 4 : from[i] & 0xF;
      to[4 * quad + i] = static_cast<float>(code);
    }
    if (!halves || is_upper) from += kLineOfPanel;
  }
  for (int64_t g = 0; g < groups_; ++g) {
    const int64_t at = (output / kPanel * groups_ + g) * kPanel + output % kPanel;
    const float scale = scales()[at];
    const auto origin = static_cast<float>(zeros_.defined() ? zeros()[at] : zero());
    const int64_t end = std::min((g + 1) * group_, inputs_);
    for (int64_t i = g * group_; i < end; ++i) to[i] = scale * (to[i] - origin);
  }
}

at::Tensor QuantisedMatrix::dense(int64_t first, int64_t count) const {
  TORCH_CHECK(first >= 0 && count >= 0 && first + count <= outputs_, "[quantised] rows ", first,
              " … ", first + count, " of ", outputs_);
  at::Tensor out = at::empty({count, inputs_}, at::kFloat);
  float* to = out.data_ptr<float>();
  at::parallel_for(0, count, kPanel, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) dense_row(first + o, to + o * inputs_);
  });
  return out;
}

at::Tensor QuantisedMatrix::rows(const at::Tensor& ids) const {
  const at::Tensor wanted = ids.contiguous();
  TORCH_CHECK(wanted.is_cpu() && wanted.scalar_type() == at::kLong && wanted.dim() == 1,
              "[quantised] ids must be an int64 vector on the CPU");
  const int64_t* id = wanted.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < wanted.numel(); ++i)
    TORCH_CHECK(id[i] >= 0 && id[i] < outputs_, "[quantised] row ", id[i], " of ", outputs_);
  at::Tensor out = at::empty({wanted.numel(), inputs_}, at::kFloat);
  float* to = out.data_ptr<float>();
  at::parallel_for(0, wanted.numel(), kPanel, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dense_row(id[i], to + i * inputs_);
  });
  return out;
}

QuantisedMatrix QuantisedMatrix::selected(const at::Tensor& ids) const {
  const at::Tensor wanted = ids.contiguous();
  TORCH_CHECK(wanted.is_cpu() && wanted.scalar_type() == at::kLong && wanted.dim() == 1 &&
                  wanted.numel() > 0,
              "[quantised] ids must be an int64 vector on the CPU, and not empty");
  QuantisedMatrix some(Form{.bits = bits_,
                            .outputs = wanted.numel(),
                            .inputs = inputs_,
                            .group = group_,
                            .is_symmetric = is_symmetric(),
                            .leaves_out = false});
  const int64_t* id = wanted.const_data_ptr<int64_t>();
  uint8_t* to = some.codes_.data_ptr<uint8_t>();
  const int64_t lines = has_halves() ? steps_ : kQuadsOfStep * steps_,
                step = has_halves() ? kQuadsOfStep : 1;
  for (int64_t o = 0; o < wanted.numel(); ++o) {
    TORCH_CHECK(id[o] >= 0 && id[o] < outputs_, "[quantised] row ", id[o], " of ", outputs_);
    for (int64_t line = 0; line < lines; ++line)
      std::memcpy(to + some.place(o, line * step), codes() + place(id[o], line * step), 4);
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t here = (o / kPanel * groups_ + g) * kPanel + o % kPanel;
      const int64_t there = (id[o] / kPanel * groups_ + g) * kPanel + id[o] % kPanel;
      some.scales_.data_ptr<float>()[here] = scales()[there];
      if (zeros_.defined()) some.zeros_.data_ptr<int32_t>()[here] = zeros()[there];
    }
  }
  return some;
}

at::Tensor quantised_linear(const at::Tensor& x, const QuantisedMatrix& matrix,
                            const at::Tensor& bias, int64_t first, int64_t count) {
  check_rows(x, "quantised_linear");
  if (count < 0) count = std::max<int64_t>(matrix.outputs() - first, 0);
  at::Tensor out = at::empty({x.size(0), count}, at::kFloat);
  quantised_linear_out(x, matrix, bias, first, out);
  return out;
}

void quantised_linear_out(const at::Tensor& x, const QuantisedMatrix& matrix,
                          const at::Tensor& bias, int64_t first, at::Tensor& out) {
  const int64_t num_rows = x.size(0), count = out.size(1);
  TORCH_CHECK(x.dim() == 2 && is_fused(x) && x.size(1) == matrix.inputs(),
              "[quantised] x must be fp32 [N, ", matrix.inputs(), "] on the CPU, got ", x.sizes(),
              " of ", x.scalar_type());
  TORCH_CHECK(first >= 0 && first + count <= matrix.outputs(), "[quantised] outputs ", first, " … ",
              first + count, " of ", matrix.outputs());
  TORCH_CHECK(!bias.defined() || (is_fused(bias) && bias.dim() == 1 && bias.size(0) == count),
              "[quantised] bias must be fp32 [", count, "]");
  TORCH_CHECK(is_fused(out) && out.dim() == 2 && out.size(0) == num_rows && out.is_contiguous(),
              "[quantised] the result must be fp32 [", num_rows, ", ", count, "] and dense");
  if (num_rows == 0 || count == 0) return;

  const at::Tensor rows = x.contiguous(), shift = bias.defined() ? bias.contiguous() : bias;
  const float* from = rows.const_data_ptr<float>();
  const cpu::QuantisedLoops& loops = cpu::table().quantised;
  const RoundedInput rounded(num_rows, matrix);
  constexpr int64_t kGrain = int64_t{1} << 14;  // numbers to round that are worth a thread
  at::parallel_for(0, num_rows, divide_up(kGrain, matrix.inputs()),
                   [&](int64_t begin, int64_t end) {
                     loops.round_rows(from, matrix.inputs(), begin, end, rounded.rows);
                   });

  constexpr int64_t kPanel = QuantisedMatrix::kPanel;
  const int64_t panel = first / kPanel, panels = divide_up(first + count, kPanel) - panel;
  const PanelCut cut(num_rows, panels, num_rows * matrix.inputs() * count);
  float* to = out.data_ptr<float>();
  const float* shifts = bias.defined() ? shift.const_data_ptr<float>() : nullptr;
  at::parallel_for(0, cut.items(), cut.grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / cut.column_blocks * cut.rows_of_block;
      const int64_t at = panel + i % cut.column_blocks * cut.panels_of_block;
      const int64_t left = std::max(at * kPanel, first);
      const int64_t right = std::min((at + cut.panels_of_block) * kPanel, first + count);
      const int64_t height = std::min(cut.rows_of_block, num_rows - row);
      if (height <= 0 || right <= left) continue;
      loops.product({.x = rounded.rows.codes + row * rounded.rows.depth,
                     .x_scales = rounded.rows.scales + row,
                     .x_sums = rounded.rows.sums + row * rounded.rows.groups,
                     .rows = height,
                     .depth = rounded.rows.depth,
                     .group = rounded.rows.group,
                     .groups = rounded.rows.groups,
                     .weights = matrix.codes(),
                     .scales = matrix.scales(),
                     .zeros = matrix.zeros(),
                     .zero = matrix.zero(),
                     .bits = matrix.bits(),
                     .begin = left,
                     .columns = right - left,
                     .out = to + row * count + (left - first),
                     .out_row = count,
                     .bias = shifts == nullptr ? nullptr : shifts + (left - first),
                     .empty = matrix.empty()});
    }
  });
}

bool quantised_is_faster(int bits, int64_t group) {
  if (bits < 2 || bits > 8) return false;
  if (cpu::has_byte_product()) return true;
  const auto product = cpu::table().quantised.product;
  if (product == cpu::portable::kTable.quantised.product) return false;
  // A group ends with as many instructions as some inputs take: what gains less without it needs
  // larger ones.
  const int64_t least = bits > 6 ? 256 : bits > 4 ? 64 : 32;
  if (group != 0 && group < least) return false;
  // Vectors of fp32 are twice as wide in AVX-512, these are not.
  return product == cpu::avx2::kTable.quantised.product || bits <= 4;
}

}  // namespace stretto::kernels
