#pragma once

#include <ATen/Parallel.h>

#include "kernels/gemm/gemm.h"

/// Settings of this process that tests of kernels change for a while.
namespace stretto::testing {

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// Our own product for every size, as dist.deterministic wants it.
using kernels::gemm::OwnProducts;

}  // namespace stretto::testing
