#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/recurrent/schedule.h"

/// The matrix product of one step.
namespace stretto::kernels {

/// Rows of a matrix that lie `stride` numbers apart.
template <class Number>
struct StepRows {
  Number* data;
  int64_t stride, count;
};

/// c = a b + bias (may be null) for the rows of a bundle; the team shares the columns. In half
/// precision c is rounded, and `bias` has to be already. Whoever reads c waits for the team first.
void multiply_step(const StepRows<const float>& a, const gemm::Packed& b, const float* bias,
                   const StepRows<float>& c, const ThreadTeam& team);

}  // namespace stretto::kernels
