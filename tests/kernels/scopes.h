#pragma once

#include <ATen/Context.h>
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

/// Memory that is handed out holds NaN for as long as this lives.
class PoisonedMemory {
 public:
  PoisonedMemory() { set(true); }
  ~PoisonedMemory() { set(false); }
  PoisonedMemory(const PoisonedMemory&) = delete;
  PoisonedMemory& operator=(const PoisonedMemory&) = delete;

 private:
  static void set(bool on) {
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/true);
    at::globalContext().setDeterministicFillUninitializedMemory(on);
  }
};

/// Our own product for every size, as dist.deterministic wants it.
using kernels::gemm::OwnProducts;

}  // namespace stretto::testing
