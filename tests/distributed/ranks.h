#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "distributed/process_group.h"
#include "distributed/rendezvous.h"
#include "distributed/socket.h"
#include "distributed/watch/peer_watch.h"

/// Ranks as threads of one process that meet by the rendezvous, and what their watches say.
namespace stretto::testing {

/// A port that nobody has at this moment.
inline int free_port() {
  return distributed::port_of(distributed::listen_on("127.0.0.1", 0));
}

inline distributed::RendezvousPlace place(int rank, int size, int port) {
  return {.rank = rank, .size = size, .address = "127.0.0.1", .port = port, .wait_seconds = 20};
}

/// Runs body(group) for each rank of a rendezvous, on a thread of its own.
template <class Body>
void on_ranks(int size, Body body) {
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([=] {
      try {
        body(distributed::ProcessGroup(distributed::meet(place(rank, size, port))));
      } catch (const std::exception& error) {
        ADD_FAILURE() << rank << ": " << error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

/// What a watch says in the end; empty when it says nothing for `time`.
inline std::string verdict(const distributed::PeerWatch& watch, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    try {
      watch.check();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPeerLost);
      return error.what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return "";
}

}  // namespace stretto::testing
