#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/fused.h"
#include "kernels/fused_common.h"

namespace stretto::kernels::fused {
namespace {

struct EmbedNode : torch::autograd::Function<EmbedNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& table, const at::Tensor& ids,
                            double scale, const std::optional<at::Tensor>& position) {
    const at::Tensor from = table.contiguous(), rows = ids.contiguous();
    const at::Tensor places = position ? position->contiguous() : at::Tensor();
    at::Tensor out = at::empty({rows.size(0), from.size(1)}, from.options());
    const float* values = from.const_data_ptr<float>();
    const float* add = position ? places.const_data_ptr<float>() : nullptr;
    const int64_t* which = rows.const_data_ptr<int64_t>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
      cpu::table().embed(values, which, static_cast<float>(scale), add, to,
                         {begin, end, from.size(1)});
    });
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["rows"] = from.size(0);
    ctx->saved_data["position"] = position.has_value();
    ctx->save_for_backward({rows});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    constexpr int64_t kColumnGrain = 32;  // threads take columns: each sums tokens in their order
    const at::Tensor ids = ctx->get_saved_variables()[0], dy = grads[0].contiguous();
    const at::Tensor of_position = ctx->saved_data["position"].toBool() ? dy : at::Tensor();
    if (!ctx->needs_input_grad(0)) return {{}, {}, {}, of_position};  // a frozen table
    at::Tensor slopes = at::zeros({ctx->saved_data["rows"].toInt(), dy.size(1)}, dy.options());
    const auto scale = static_cast<float>(ctx->saved_data["scale"].toDouble());
    const float* from = dy.const_data_ptr<float>();
    const int64_t* which = ids.const_data_ptr<int64_t>();
    float* to = slopes.data_ptr<float>();
    at::parallel_for(0, dy.size(1), kColumnGrain, [&](int64_t begin, int64_t end) {
      cpu::table().embed_backward(from, which, ids.size(0), scale, to, begin, end, dy.size(1));
    });
    return {slopes, {}, {}, of_position};
  }
};

/// Cosine and sine [2, P, width / 2] at positions fp64 [P], from angles in double, times the
/// factor.
at::Tensor table_of(const RotaryAngles& angles, const at::Tensor& positions, int64_t width) {
  const at::Tensor power = at::arange(0, width, 2, at::kDouble) / static_cast<double>(width);
  const at::Tensor frequencies =
      angles.frequencies.defined() ? angles.frequencies : at::pow(10000.0, -power);
  const at::Tensor angle = at::outer(positions, frequencies);
  const at::Tensor both = at::stack({at::cos(angle), at::sin(angle)});
  return (angles.factor == 1 ? both : both * angles.factor).to(at::kFloat);
}

/// Tables of the first positions, made once for each kind of angles: those of one model, as a rule.
/// Threads may share it.
class KeptTables {
 public:
  /// At positions 0 … P - 1, P >= count; undefined where that is too much to keep.
  at::Tensor find(const RotaryAngles& angles, int64_t count, int64_t width) {
    const int64_t rows = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
    if (rows * width > kMostNumbers) return {};
    const std::lock_guard lock(mutex_);
    const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const Kept& one) { return one.is_of(angles, width); });
    if (kept != kept_.end() && kept->table.size(1) >= count) return kept->table;
    const at::Tensor table = first_rows(angles, std::max(rows, kLeastRows), width);
    if (kept != kept_.end()) return kept->table = table;
    if (static_cast<int64_t>(kept_.size()) == kMostTables) kept_.erase(kept_.begin());
    RotaryAngles own = angles;
    if (own.frequencies.defined()) own.frequencies = own.frequencies.clone();
    kept_.push_back({own, table});
    return table;
  }

 private:
  static constexpr int64_t kMostNumbers = int64_t{1} << 22;  // 16 MiB a table
  static constexpr int64_t kMostTables = 4;
  static constexpr int64_t kLeastRows = 256;

  struct Kept {
    RotaryAngles angles;
    at::Tensor table;

    bool is_of(const RotaryAngles& other, int64_t width) const {
      if (table.size(2) != width / 2 || angles.factor != other.factor) return false;
      if (angles.frequencies.defined() != other.frequencies.defined()) return false;
      if (!angles.frequencies.defined()) return true;
      const at::Tensor theirs = other.frequencies.contiguous();  // as many, of checked arguments
      const double* begin = theirs.const_data_ptr<double>();
      return std::equal(begin, begin + width / 2, angles.frequencies.const_data_ptr<double>());
    }
  };

  /// In parts of as many rows whatever their number is, so that a position has the same numbers in
  /// each table: libtorch's functions are other ones at the end of a range than within it.
  static at::Tensor first_rows(const RotaryAngles& angles, int64_t rows, int64_t width) {
    const c10::InferenceMode off(false);  // a node may keep the table
    std::vector<at::Tensor> parts;
    for (int64_t first = 0; first < rows; first += kLeastRows)
      parts.push_back(table_of(angles, at::arange(first, first + kLeastRows, at::kDouble), width));
    return at::cat(parts, 1);
  }

  std::mutex mutex_;
  std::vector<Kept> kept_;
};

/// A table of angles, and which of its rows each row of x takes.
struct AnglesOfRows {
  at::Tensor table;  // as table_of
  at::Tensor rows;   // int64 [N]
};

/// @param positions  int64 [N], dense
AnglesOfRows angles_of(const at::Tensor& positions, int64_t width, const RotaryAngles& angles) {
  static KeptTables tables;
  const int64_t* begin = positions.const_data_ptr<int64_t>();
  const int64_t* end = begin + positions.numel();
  const int64_t count = begin == end ? 0 : *std::max_element(begin, end) + 1;
  if (at::Tensor kept = tables.find(angles, count, width); kept.defined()) return {kept, positions};
  // Far positions have a table of their own.
  return {table_of(angles, positions.to(at::kDouble), width), at::arange(positions.numel())};
}

at::Tensor turn(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& table,
                int64_t blocks, float direction) {
  const at::Tensor rows = x.contiguous();
  at::Tensor out = at::empty_like(rows);
  const int64_t half = table.size(2);
  const float* cos = table.const_data_ptr<float>();
  const cpu::Rotation rotation{.cos = cos,
                               .sin = cos + table.size(1) * half,
                               .positions = positions.const_data_ptr<int64_t>(),
                               .blocks = blocks,
                               .width = 2 * half,
                               .direction = direction};
  const float* from = rows.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, rows.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
    cpu::table().rotate(from, to, {begin, end, rows.size(1)}, rotation);
  });
  return out;
}

struct RotaryNode : torch::autograd::Function<RotaryNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& positions,
                            int64_t blocks, int64_t width, const RotaryAngles& angles) {
    const auto [table, rows] = angles_of(positions.contiguous(), width, angles);
    ctx->saved_data["blocks"] = blocks;
    ctx->save_for_backward({rows, table});
    return turn(x, rows, table, blocks, 1.0f);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const int64_t blocks = ctx->saved_data["blocks"].toInt();
    return {turn(grads[0], saved[0], saved[1], blocks, -1.0f), {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position) {
  return EmbedNode::apply(table, ids, scale,
                          position.defined() ? std::optional<at::Tensor>(position) : std::nullopt);
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, int64_t num_heads,
                  int64_t d_model, int64_t num_parts, const RotaryAngles& angles) {
  return RotaryNode::apply(x, positions, num_parts * num_heads, d_model / num_heads, angles);
}

}  // namespace stretto::kernels::fused
