#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "kernels/gemm/gemm.h"
#include "kernels/quantised/quantised.h"
#include "kernels/recurrent/schedule.h"

/// The matrix product of one step.
namespace stretto::kernels {

/// Rows of a matrix that lie `stride` numbers apart.
template <class Number>
struct StepRows {
  Number* data;
  int64_t stride, count;
};

/// The right factor of a layer's steps, laid out once: numbers, or codes of few bits, with which
/// the rows of each step are rounded (kernels/quantised).
class StepFactor {
 public:
  /// @param weight  [N, K], transposed in products; may stand for codes, which must live on
  StepFactor(const at::Tensor& weight, Compute compute);

  int64_t columns() const { return columns_; }
  const gemm::Packed* packed() const { return packed_ ? &*packed_ : nullptr; }
  const std::optional<StoodFor>& codes() const { return codes_; }

 private:
  std::optional<StoodFor> codes_;
  std::optional<gemm::Packed> packed_;  ///< where there are no codes
  int64_t columns_;
};

/// c = a b + bias (may be null) for the rows of a bundle; the team shares the columns. In half
/// precision c is rounded, and `bias` has to be already. Whoever reads c waits for the team first.
void multiply_step(const StepRows<const float>& a, const gemm::Packed& b, const float* bias,
                   const StepRows<float>& c, const ThreadTeam& team);
void multiply_step(const StepRows<const float>& a, const StepFactor& b, const float* bias,
                   const StepRows<float>& c, const ThreadTeam& team);

}  // namespace stretto::kernels
