#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "distributed/process_group.h"

namespace stretto::test {

/// A rank whose collectives return at once with its own numbers, for what ranks do between them.
class PlayedTransport : public distributed::Transport {
 public:
  PlayedTransport(int rank, int size, std::function<void()> look)
      : rank_(rank), size_(size), look_(std::move(look)) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "played"; }
  void all_reduce(distributed::Buffer) override {}
  void reduce(distributed::Buffer, int) override {}
  void broadcast(distributed::Buffer, int) override {}
  void reduce_scatter(distributed::Buffer, std::span<const int64_t>) override {}
  void all_gather(distributed::Buffer, std::span<const int64_t>) override {}
  void exchange(distributed::Buffer, distributed::Buffer, std::span<const int64_t>) override {}
  std::vector<std::string> all_gather_bytes(const std::string& mine) override { return {mine}; }
  void barrier() override {}
  std::shared_ptr<distributed::Transport> duplicate() override { return nullptr; }
  void check_peers() const override {
    if (look_) look_();
  }

 private:
  const int rank_, size_;
  const std::function<void()> look_;
};

/// @param look  what check_peers() does
inline distributed::ProcessGroup played_group(int rank, int size, std::function<void()> look = {}) {
  return distributed::ProcessGroup(std::make_shared<PlayedTransport>(rank, size, std::move(look)));
}

/// Rank 0 of 2, whose peer is lost: check_peers() throws std::runtime_error.
inline distributed::ProcessGroup group_that_lost_a_peer() {
  return played_group(0, 2, [] { throw std::runtime_error("rank 1 is lost"); });
}

}  // namespace stretto::test
