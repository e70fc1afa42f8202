#include "nn/norm.h"

#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {

LayerNormImpl::LayerNormImpl(const Init& init, int64_t d_model) {
  weight = register_parameter("weight", init.constant(d_model, 1.0));
  bias = register_parameter("bias", init.constant(d_model, 0.0));
}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) const {
  return watch(*this, kernels::layer_norm(x, weight, bias));
}

}  // namespace stretto::nn
