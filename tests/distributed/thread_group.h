#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "distributed/process_group.h"

/// A process group whose ranks are threads of this process, for tests without a launcher. What the
/// contract of a collective leaves unspecified is filled with NaN.
namespace stretto::test {

/// What the ranks of one channel share. A rank that waits for others longer than ten seconds
/// throws, so that a test of a hang fails instead of hanging.
class ThreadChannel {
 public:
  explicit ThreadChannel(int size) : pointers(static_cast<size_t>(size)), bytes(pointers.size()) {}

  void meet() {
    std::unique_lock lock(mutex_);
    const int64_t mine = generation_;
    if (++arrived_ == static_cast<int64_t>(pointers.size())) {
      arrived_ = 0;
      ++generation_;
      all_here_.notify_all();
    } else if (!all_here_.wait_for(lock, std::chrono::seconds(10),
                                   [&] { return generation_ != mine; })) {
      throw Error(ExitCode::kPeerLost, "a rank did not come to a collective");
    }
  }

  std::vector<void*> pointers;  // by rank
  std::vector<std::string> bytes;
  std::shared_ptr<ThreadChannel> next;            // made by rank 0 in duplicate()
  std::atomic<int64_t> gradient_collectives = 0;  // sums begun, over all ranks

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int64_t generation_ = 0, arrived_ = 0;
};

class ThreadTransport : public distributed::Transport {
 public:
  ThreadTransport(int rank, std::shared_ptr<ThreadChannel> channel)
      : rank_(rank), channel_(std::move(channel)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(channel_->pointers.size()); }
  const char* name() const override { return "threads"; }

  void all_reduce(distributed::Buffer data) override { sum(data, 0, data.count, true); }
  void reduce(distributed::Buffer data, int root) override {
    sum(data, 0, data.count, rank_ == root);
  }
  void reduce_scatter(distributed::Buffer data, std::span<const int64_t> begins) override {
    const auto r = static_cast<size_t>(rank_);
    sum(data, begins[r], begins[r + 1], true);
  }

  void broadcast(distributed::Buffer data, int root) override {
    post(data.data);
    const at::Tensor from = tensor(channel_->pointers[static_cast<size_t>(root)], data).clone();
    channel_->meet();
    tensor(data.data, data).copy_(from);
    channel_->meet();
  }

  void all_gather(distributed::Buffer data, std::span<const int64_t> begins) override {
    post(data.data);
    at::Tensor all = tensor(data.data, data).clone();
    for (size_t r = 0; r < channel_->pointers.size(); ++r) {
      part(all, begins, r).copy_(part(tensor(channel_->pointers[r], data), begins, r));
    }
    channel_->meet();
    tensor(data.data, data).copy_(all);
    channel_->meet();
  }

  void exchange(distributed::Buffer send, distributed::Buffer receive,
                std::span<const int64_t> begins) override {
    ++channel_->gradient_collectives;
    post(send.data);
    std::vector<at::Tensor> parts;
    for (void* pointer : channel_->pointers) {
      parts.push_back(part(tensor(pointer, send), begins, static_cast<size_t>(rank_)));
    }
    tensor(receive.data, receive).copy_(at::cat(parts));
    channel_->meet();
  }

  std::vector<std::string> all_gather_bytes(const std::string& mine) override {
    channel_->bytes[static_cast<size_t>(rank_)] = mine;
    channel_->meet();
    std::vector<std::string> all = channel_->bytes;
    channel_->meet();
    return all;
  }

  void barrier() override { channel_->meet(); }

  std::shared_ptr<distributed::Transport> duplicate() override {
    if (rank_ == 0) channel_->next = std::make_shared<ThreadChannel>(size());
    channel_->meet();
    auto copy = std::make_shared<ThreadTransport>(rank_, channel_->next);
    channel_->meet();
    return copy;
  }

 private:
  void post(void* data) {
    channel_->pointers[static_cast<size_t>(rank_)] = data;
    channel_->meet();
  }

  static at::Tensor tensor(void* data, const distributed::Buffer& shape) {
    constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16,
                                         at::kHalf,  at::kLong,   at::kByte};
    return at::from_blob(data, {shape.count}, kTypes[static_cast<size_t>(shape.element)]);
  }

  static at::Tensor part(const at::Tensor& all, std::span<const int64_t> begins, size_t r) {
    return all.narrow(0, begins[r], begins[r + 1] - begins[r]);
  }

  // Elements [begin, end) become the sum, if `wanted`; all others NaN.
  void sum(distributed::Buffer data, int64_t begin, int64_t end, bool wanted) {
    ++channel_->gradient_collectives;
    post(data.data);
    at::Tensor total = tensor(channel_->pointers[0], data).clone();
    for (size_t r = 1; r < channel_->pointers.size(); ++r) {
      total.add_(tensor(channel_->pointers[r], data));
    }
    channel_->meet();
    at::Tensor mine = tensor(data.data, data);
    mine.fill_(std::numeric_limits<double>::quiet_NaN());
    if (wanted) mine.narrow(0, begin, end - begin).copy_(total.narrow(0, begin, end - begin));
    channel_->meet();
  }

  int rank_;
  std::shared_ptr<ThreadChannel> channel_;
};

/// Runs `body(group)` on a thread for each rank; rethrows what the first rank to fail threw.
inline void run_ranks(const std::shared_ptr<ThreadChannel>& channel,
                      const std::function<void(distributed::ProcessGroup)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(channel->pointers.size()); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(distributed::ProcessGroup(std::make_shared<ThreadTransport>(rank, channel)));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

/// The same with a new channel; one rank runs on this thread with the default group.
inline void run_ranks(int size, const std::function<void(distributed::ProcessGroup)>& body) {
  if (size == 1) return body(distributed::ProcessGroup());
  run_ranks(std::make_shared<ThreadChannel>(size), body);
}

}  // namespace stretto::test
