#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace stretto::data {

/// Calls work(0) … work(count - 1), several at once. The first failure, by number, is thrown when
/// all have ended.
template <class Work>
void for_each_on_threads(size_t count, int64_t threads, const Work& work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    const auto helpers = std::min<int64_t>(threads, static_cast<int64_t>(count)) - 1;
    std::vector<std::jthread> pool;
    for (int64_t i = 0; i < helpers; ++i) pool.emplace_back(take);
    take();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace stretto::data
