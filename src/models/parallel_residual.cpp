#include "models/parallel_residual.h"

namespace stretto::models {

ParallelResidualImpl::ParallelResidualImpl(const nn::Init& init, const TransformerPart& options,
                                           int64_t d_model) {
  norm =
      register_module("norm", make_norm(init.child("norm"), options, d_model, options.zero_gamma));
}

at::Tensor ParallelResidualImpl::forward(const at::Tensor& x,
                                         const std::vector<ParallelPart>& parts) const {
  const at::Tensor normed = norm->forward(x);
  at::Tensor sum = x;
  for (const ParallelPart& part : parts) {
    sum = kernels::dropout_add(part.forward(normed), sum, part.dropout);
  }
  return nn::watch(*this, sum);
}

}  // namespace stretto::models
