#include "parallel/out_of_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <new>
#include <string_view>
#include <tuple>

#include "base/failpoint.h"

namespace stretto::parallel {
namespace {

// What libtorch says where it has no type of its own for it. Whole phrases: "memory" alone also
// stands in errors of shape and layout ("unsupported memory format").
constexpr std::array<std::string_view, 7> kPhrases{
    "DefaultCPUAllocator: can't allocate memory",  // c10, POSIX
    "DefaultCPUAllocator: not enough memory",      // c10, elsewhere
    "Could not allocate memory for Tensor",        // c10, sizes of many dimensions
    "CUDA out of memory",                          // c10::cuda, handed on without its type
    "CUDA error: out of memory",                   // the CUDA runtime
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
};

// More than any machine has: the allocator itself makes the exception.
constexpr size_t kTooMuch = std::numeric_limits<size_t>::max() / 4;

void fail_as_asked() {
  if (failpoint("backward") == ENOMEM)
    std::ignore = c10::GetDefaultCPUAllocator()->allocate(kTooMuch);
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const auto* plain = dynamic_cast<const c10::Error*>(&error);
  if (plain == nullptr) return false;
  const std::string_view what = plain->what_without_backtrace();
  return std::any_of(kPhrases.begin(), kPhrases.end(), [&](std::string_view phrase) {
    return what.find(phrase) != std::string_view::npos;
  });
}

BackwardFailpoint::BackwardFailpoint(const optim::Arena& arena) {
  if (!failpoints_armed()) return;
  for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
    const at::Tensor& parameter = arena.parameter(slot);
    const auto hook = [](const at::Tensor&) { fail_as_asked(); };
    hooks_.emplace_back(parameter, parameter.register_hook(hook));
  }
}

BackwardFailpoint::~BackwardFailpoint() {
  for (const auto& [parameter, hook] : hooks_) parameter.remove_hook(hook);
}

}  // namespace stretto::parallel
