#include "nn/linear.h"

#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {

LinearImpl::LinearImpl(const Init& init, int64_t in, int64_t out, const LinearOptions& options) {
  weight = register_parameter(
      "weight", options.part_rows.empty()
                    ? init.xavier_uniform("weight", out, in, options.parts, options.gain)
                    : init.xavier_uniform("weight", options.part_rows, in, options.gain));
  if (options.bias) bias = register_parameter("bias", init.constant("bias", out, 0.0));
}

at::Tensor LinearImpl::forward(const at::Tensor& x) const {
  return watch(*this, kernels::linear(x, weight, bias));
}

}  // namespace stretto::nn
