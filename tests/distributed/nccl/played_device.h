#pragma once

#include <set>
#include <string>
#include <vector>

/// A GPU and an NCCL that are only played, so that what `NcclTransport` asks of them can be tested
/// without either: every call that matters is noted, in order. Buffers are host memory, and what
/// another rank would send is what this one sends.
namespace stretto::distributed::played {

struct Device {
  std::vector<std::string> notes;  ///< "wait own filled", "all_reduce own", …
  int num_allocations = 0;         ///< on the device and pinned
  bool has_memory = true;
  int unsettled = 0;  ///< times that a communicator still says "in progress"
  int unready = 0;    ///< times that an event is still waited for
  int ranks = 1;
  std::set<const void*> blocking_streams;
};

/// The one that all calls go to.
Device& device();
/// A fresh one.
Device& restart(int ranks);
/// A stream of the test's own, by this name in the notes.
void* name_stream(const std::string& name);

}  // namespace stretto::distributed::played
