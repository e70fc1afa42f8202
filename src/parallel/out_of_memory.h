#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "optim/arena.h"

/// Out of memory in a micro-batch: how it is recognised, and how a test brings it about.
namespace stretto::parallel {

/// Whether the computation failed for lack of memory, so that a smaller micro-batch may fit:
/// std::bad_alloc, libtorch's c10::OutOfMemoryError (CUDA's allocator), and those of its plain
/// c10::Error that say so in words (its CPU allocator, cuBLAS, cuDNN, the CUDA runtime). An Error
/// of Stretto never is, whatever its text quotes.
bool is_out_of_memory(const std::exception& error);

/// The failpoint `backward`: while it lives, it is passed each time that a backward pass has the
/// gradient of one of the arena's parameters and is about to add it to the arena.
/// `backward:enomem:n` fails the n-th of these as libtorch's CPU allocator fails, with its
/// exception, from inside autograd. Costs nothing unless failpoints are armed when it is made.
class BackwardFailpoint {
 public:
  explicit BackwardFailpoint(const optim::Arena& arena);
  ~BackwardFailpoint();
  BackwardFailpoint(const BackwardFailpoint&) = delete;
  BackwardFailpoint& operator=(const BackwardFailpoint&) = delete;

 private:
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;
};

}  // namespace stretto::parallel
