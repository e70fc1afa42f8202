#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/compute.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_weights.h"
#include "kernels/quantised/quantised.h"
#include "kernels/rounding.h"

/// What the losses behind an output projection share on a CPU in fp32.
namespace stretto::kernels::fused {

/// Rows of logits at a time: few enough for the last cache.
constexpr int64_t kLossRows = 512;

/// A sum as an fp32 scalar: beyond the range of fp32 infinite. at::scalar_tensor() to fp32 would
/// throw there.
inline at::Tensor scalar_of(double sum) {
  return at::scalar_tensor(sum, at::kDouble).to(at::kFloat);
}

/// The three products of a block of rows with the classes; the packed tables are kept over blocks,
/// and that of a loss without gradients over batches, within a PackedWeightsScope.
class Projection {
 public:
  struct Use {
    int64_t rows;       ///< of the whole batch: they choose the product
    float slope_scale;  ///< under kFp16 slopes are multiplied by it before they are rounded
    bool backward;      ///< whether gradients() will be called
  };
  /// @param classes  [V, D]; may stand for codes where there is no backward
  Projection(const at::Tensor& classes, const Use& use)
      : classes_(classes),
        slope_scale_(use.slope_scale),
        compute_(ComputeScope::current()),
        codes_(stood_for(classes)) {
    if (codes_) return;
    if (auto* kept = use.backward ? nullptr : PackedWeightsScope::current(); kept != nullptr) {
      columns_ = kept->shared(classes, compute_);
      return;
    }
    if (!gemm::is_taken(use.rows, classes.size(1), classes.size(0))) return;
    columns_ = std::make_shared<const gemm::Packed>(gemm::Operand{classes, true}, compute_);
    if (use.backward) rows_.emplace(gemm::Operand{classes}, compute_);
  }
  /// @param bias  [V], may be undefined
  void logits(const at::Tensor& x, const at::Tensor& bias, at::Tensor& out) const {
    if (codes_) return quantised_linear_out(x, *codes_->matrix, bias, codes_->first, out);
    if (columns_) return gemm::multiply({x}, *columns_, bias, false, out);
    gemm::multiply_by_libtorch({x}, {classes_, true}, false, compute_, out);
    if (bias.defined()) out.add_(bias);
    round_(out, compute_);
  }
  /// Adds to dweight, and to dx, which must be zero, in half precision: their products are rounded
  /// when the scale of the loss is known.
  void gradients(at::Tensor& slopes, const at::Tensor& x, at::Tensor& dx,
                 at::Tensor& dweight) const {
    if (compute_ == Compute::kFp16) slopes.mul_(slope_scale_);
    if (rows_) {
      gemm::multiply({slopes}, *rows_, {}, is_half(compute_), dx);
      const auto factor = gemm::Packed::for_one_product({x}, slopes.size(1), compute_);
      gemm::multiply({slopes, true}, factor, {}, true, dweight);
    } else {
      gemm::multiply_by_libtorch({slopes}, {classes_}, false, compute_, dx);
      gemm::multiply_by_libtorch({slopes, true}, {x}, true, compute_, dweight);
    }
  }

 private:
  at::Tensor classes_;
  float slope_scale_;
  Compute compute_;
  std::optional<StoodFor> codes_;
  std::shared_ptr<const gemm::Packed> columns_;
  std::optional<gemm::Packed> rows_;
};

}  // namespace stretto::kernels::fused
