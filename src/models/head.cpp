#include "models/head.h"

namespace stretto::models {

kernels::TopClasses Head::top(const at::Tensor& rows, const kernels::TopQuery& query) {
  at::Tensor all = log_probs(rows).to(at::kCPU, at::kFloat).contiguous();
  return kernels::top_of_logits(all, query);
}

std::shared_ptr<const kernels::ClassRows> Head::classes(const std::vector<int64_t>& /*ids*/) {
  TORCH_CHECK(false, "[head] this head has no classes of its own to choose from");
}

kernels::TopClasses Head::top(const at::Tensor& /*rows*/, const kernels::ClassRows& /*classes*/,
                              const kernels::TopQuery& /*query*/) {
  TORCH_CHECK(false, "[head] this head has no classes of its own to choose from");
}

}  // namespace stretto::models
