#include "kernels/gemm/large_pages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace stretto::kernels::gemm {

at::Tensor in_large_pages(at::IntArrayRef sizes, const at::TensorOptions& options) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t bytes =
      static_cast<size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize();
  if (!options.device().is_cpu() || bytes < kPage) return at::empty(sizes, options);
  // Room for a page more, so that the first number can lie at the begin of one. What is not
  // touched takes no memory.
  const size_t reserved = bytes + kPage;
  void* begin =
      ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return at::empty(sizes, options);
  const size_t over = reinterpret_cast<uintptr_t>(begin) % kPage;
  char* first = static_cast<char*>(begin) + (over == 0 ? 0 : kPage - over);
  // Whole pages alone, lest the last one take more memory than is used of it. A system without them
  // refuses, and gives small ones.
  ::madvise(first, bytes / kPage * kPage, MADV_HUGEPAGE);
  return at::from_blob(
      first, sizes, [begin, reserved](void* /*first*/) { ::munmap(begin, reserved); }, options);
}

}  // namespace stretto::kernels::gemm
