#pragma once

#include <ATen/Parallel.h>

namespace stretto::kernels {

/// For as long as it lives, operators that this thread begins compute on one thread: for sums whose
/// order must not depend on the number of threads, and for watchers, which belong to a thread.
class OneThreadScope {
 public:
  OneThreadScope() { at::set_num_threads(1); }
  ~OneThreadScope() { at::set_num_threads(before_); }
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

}  // namespace stretto::kernels
