#pragma once

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>

/// libtorch's CPU allocator on a machine that is short of memory, for tests.
namespace stretto::test {

/// What is refused on the calling thread, and what was asked for since it was set.
struct Refusal {
  int64_t nth = 0;       ///< this allocation fails, from 1; 0 = none
  size_t above = kNone;  ///< every allocation of more bytes fails
  int64_t seen = 0;
  int64_t all = 0;  ///< small ones too
  size_t largest = 0;

  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
};

/// Allocations of the calling thread pass by this; small ones are neither refused nor `seen`.
inline Refusal& refusal() {
  thread_local Refusal mine;
  return mine;
}

class RefusingAllocator : public c10::Allocator {
 public:
  static constexpr size_t kSmall = 256;

  c10::DataPtr allocate(size_t bytes) override {
    Refusal& mine = refusal();
    ++mine.all;
    if (bytes >= kSmall) {
      ++mine.seen;
      mine.largest = std::max(mine.largest, bytes);
      // The real allocator is asked for more than there can be: the failure is its own.
      if (mine.seen == mine.nth || bytes > mine.above)
        bytes = std::numeric_limits<size_t>::max() / 4;
    }
    return base_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return base_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    base_->copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* base_ = c10::GetDefaultCPUAllocator();
};

/// Puts a RefusingAllocator into libtorch's place for as long as it lives.
class RefusingScope {
 public:
  RefusingScope() {
    static RefusingAllocator allocator;  // tensors may outlive the scope
    c10::SetCPUAllocator(&allocator, kPriority);
  }
  ~RefusingScope() {
    refusal() = {};
    c10::SetCPUAllocator(before_, kPriority);
  }
  RefusingScope(const RefusingScope&) = delete;
  RefusingScope& operator=(const RefusingScope&) = delete;

 private:
  static constexpr uint8_t kPriority = 255;
  c10::Allocator* before_ = c10::GetCPUAllocator();
};

}  // namespace stretto::test
