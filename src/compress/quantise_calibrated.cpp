#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "compress/quantise.h"
#include "compress/quantise_scales.h"
#include "compress/quantise_values.h"
#include "kernels/one_thread.h"

// GPTQ, Frantar et al. 2023 (arXiv:2210.17323), algorithm 1, by whole rows: a row's columns are
// rounded from left to right, and what that changes in the outputs is made good by the columns that
// are still to be rounded. With H = X^T X and U upper triangular, U^T U = H^-1, rounding column i
// by e changes column j > i by -e U[i, j] / U[i, i].
namespace stretto::compress {
namespace {

constexpr int64_t kRowsAtOnce = 8;  // so that a line of U is read once for several
constexpr int kDampings = 4;        // each ten times the one before

/// Rows of a weight that see the same inputs.
struct RowBlock {
  int64_t begin = 0, end = 0;
  std::vector<const RowInputs*> inputs;
};

/// Inputs may have been seen of all rows and of some of them: rows are cut where they begin and
/// end.
std::vector<RowBlock> row_blocks(const std::vector<RowInputs>& inputs, int64_t rows) {
  std::set<int64_t> cuts{0, rows};
  for (const RowInputs& seen : inputs) {
    cuts.insert(seen.from);
    cuts.insert(seen.from + seen.count);
  }
  std::vector<RowBlock> blocks;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    RowBlock block{.begin = *cut, .end = *std::next(cut), .inputs = {}};
    for (const RowInputs& seen : inputs) {
      const bool covers = seen.from <= block.begin && block.end <= seen.from + seen.count;
      if (covers && seen.num_rows > 0) block.inputs.push_back(&seen);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// What compensation needs of the inputs of a row.
struct Curvature {
  at::Tensor factor;              ///< U, fp32 [in, in]; undefined: inputs are all zero
  std::vector<float> importance;  ///< diagonal of H; empty: the same for all
};

/// U of a damped H; nothing where H is not positive definite to the precision of fp64.
std::optional<at::Tensor> inverse_factor(const at::Tensor& hessian, double damping) {
  at::Tensor damped = hessian.clone();
  at::Tensor diagonal = damped.diagonal();
  const double mean = diagonal.mean().item<double>();
  diagonal.masked_fill_(diagonal == 0, mean);  // inputs that are always 0
  diagonal += damping * mean;
  const auto [lower, failed] = at::linalg_cholesky_ex(damped);
  if (failed.item<int>() != 0) return std::nullopt;
  const at::Tensor inverse = at::cholesky_inverse(lower);
  const auto [upper, failed_too] = at::linalg_cholesky_ex(inverse, /*upper=*/true);
  if (failed_too.item<int>() != 0) return std::nullopt;
  at::Tensor factor = upper.to(at::kFloat).contiguous();
  if (!at::isfinite(factor).all().item<bool>()) return std::nullopt;
  return factor;
}

Curvature curvature_of(const RowBlock& block, const CalibratedOptions& options, int64_t columns,
                       const std::string& name) {
  if (block.inputs.empty()) return {};
  at::Tensor hessian = at::zeros({columns, columns}, at::dtype(at::kDouble));
  for (const RowInputs* seen : block.inputs) {
    TORCH_CHECK(seen->moments.dim() == 2 && seen->moments.size(0) == columns &&
                    seen->moments.size(1) == columns,
                "[quantise] `", name, "` has ", columns, " inputs, calibration saw ",
                seen->moments.sizes());
    hessian += seen->moments.to(at::kDouble);
  }
  if (!at::isfinite(hessian).all().item<bool>()) {
    throw Error(ExitCode::kNumeric,
                "the inputs of `" + name + "` on the calibration data are infinite or NaN",
                "compress another checkpoint of the run");
  }
  const double mean = hessian.diagonal().mean().item<double>();
  if (mean <= 0) return {};
  hessian /= mean;  // its size changes nothing, and U stays within fp32
  // LAPACK's sums depend on the number of threads.
  const kernels::OneThreadScope one_thread;
  double damping = options.damping;
  for (int i = 0; i < kDampings; ++i, damping *= 10) {
    auto factor = inverse_factor(hessian, damping);
    if (!factor) continue;
    const at::Tensor diagonal = hessian.diagonal().to(at::kFloat).contiguous();
    const auto* first = diagonal.const_data_ptr<float>();
    Curvature curvature;
    curvature.factor = *factor;
    curvature.importance.assign(first, first + columns);
    return curvature;
  }
  throw Error(ExitCode::kNumeric,
              "the inputs of `" + name + "` on the calibration data depend on each other too much",
              "calibrate with more texts, or round without calibration");
}

/// A weight on its way to codes.
class CalibratedRounding {
 public:
  CalibratedRounding(const at::Tensor& matrix, const store::QuantFormat& format,
                     const store::QuantLayout& layout)
      : matrix_(matrix.const_data_ptr<float>()),
        format_(format),
        layout_(layout),
        values_(empty_values(format, layout)) {
    if (format.scope != store::QuantScope::kTensor) return;
    const std::span all(matrix_, static_cast<size_t>(layout.rows * layout.columns));
    set_choice(values_, 0, least_error_scale(all, {}, format));
  }

  void round(const RowBlock& block, const Curvature& curvature) {
    at::parallel_for(block.begin, block.end, kRowsAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row += kRowsAtOnce) {
        round_rows(row, std::min(end, row + kRowsAtOnce), curvature);
      }
    });
  }

  const store::QuantisedValues& values() const { return values_; }

 private:
  void round_rows(int64_t begin, int64_t end, const Curvature& curvature) {
    const int64_t columns = layout_.columns;
    std::vector<float> rows(matrix_ + begin * columns, matrix_ + end * columns);
    for (int64_t column = 0; column < columns; ++column) {
      if (column % layout_.group_columns == 0) choose_scales(begin, end, column, rows, curvature);
      for (int64_t row = begin; row < end; ++row) {
        float* weights = rows.data() + (row - begin) * columns;
        const float error = round_one(row, column, weights[column]);
        if (curvature.factor.defined()) compensate(curvature, column, error, weights);
      }
    }
  }

  // From what the columns are by now, as they make good what was rounded before them.
  void choose_scales(int64_t begin, int64_t end, int64_t column, const std::vector<float>& rows,
                     const Curvature& curvature) {
    if (format_.scope == store::QuantScope::kTensor) return;
    const auto count = static_cast<size_t>(layout_.group_columns);
    std::span<const float> importance(curvature.importance);
    if (!importance.empty()) importance = importance.subspan(static_cast<size_t>(column), count);
    for (int64_t row = begin; row < end; ++row) {
      const auto first = static_cast<size_t>((row - begin) * layout_.columns + column);
      const auto weights = std::span(rows).subspan(first, count);
      set_choice(values_, layout_.scale_index(row, column),
                 least_error_scale(weights, importance, format_));
    }
  }

  /// What was pruned stays 0, and is made good like other changes (Frantar and Alistarh 2023,
  /// arXiv:2301.00774).
  /// @return by how much the weight is larger than its code
  float round_one(int64_t row, int64_t column, float weight) {
    const ScaleAndZero choice = choice_at(values_, layout_.scale_index(row, column));
    if (!std::isfinite(choice.scale)) return 0;  // refused when it is packed
    int8_t& code = values_.codes[static_cast<size_t>(row * layout_.columns + column)];
    if (matrix_[row * layout_.columns + column] == 0) {
      code = choice.zero;
      return weight;
    }
    round_to_codes({&weight, 1}, choice, format_, {&code, 1});
    return weight - weight_of(code, choice);
  }

  void compensate(const Curvature& curvature, int64_t column, float error, float* weights) const {
    const int64_t columns = layout_.columns;
    const float* line = curvature.factor.const_data_ptr<float>() + column * columns;
    const float share = error / line[column];
    for (int64_t next = column + 1; next < columns; ++next) weights[next] -= share * line[next];
  }

  const float* matrix_;
  const store::QuantFormat& format_;
  const store::QuantLayout& layout_;
  store::QuantisedValues values_;
};

}  // namespace

store::QuantisedTensor quantise_calibrated(const at::Tensor& weight,
                                           const store::QuantFormat& format,
                                           const std::vector<RowInputs>& inputs,
                                           const CalibratedOptions& options,
                                           const std::string& name) {
  const at::Tensor matrix = dense_matrix(weight, format, name);
  const std::vector<int64_t> shape = weight.sizes().vec();
  const store::QuantLayout layout = store::layout_of(format, shape);
  for (const RowInputs& seen : inputs) {
    TORCH_CHECK(seen.from >= 0 && seen.count >= 0 && seen.from + seen.count <= layout.rows,
                "[quantise] `", name, "` has ", layout.rows, " rows, calibration saw others");
  }
  CalibratedRounding rounding(matrix, format, layout);
  for (const RowBlock& block : row_blocks(inputs, layout.rows)) {
    rounding.round(block, curvature_of(block, options, layout.columns, name));
  }
  return packed_values(format, shape, rounding.values(), name);
}

}  // namespace stretto::compress
