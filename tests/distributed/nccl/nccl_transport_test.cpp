// What the NCCL backend asks of CUDA and NCCL, on a device that is played. What these make of it
// only a GPU can tell: benchmarks/gpu/nccl_check.cpp.
#include "distributed/nccl/nccl_transport.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "distributed/byte_rounds.h"
#include "tests/distributed/nccl/played_device.h"

namespace stretto::distributed {
namespace {

using Notes = std::vector<std::string>;

NcclTransport transport_of(int ranks) {
  played::restart(ranks);
  return {nullptr, 0, std::make_shared<PeerWatch>()};
}

// The words up to the last collective, in short: events have numbers as names.
Notes notes_of(Buffer data, void (*call)(NcclTransport&, Buffer)) {
  auto transport = transport_of(2);
  played::device().notes.clear();
  call(transport, data);
  return played::device().notes;
}

TEST(NcclTransport, WorksBesideTheDefaultStream) {
  const auto transport = transport_of(2);
  EXPECT_TRUE(played::device().blocking_streams.empty())
      << "a blocking stream waits for all that backward has queued, and backward for it";
}

TEST(NcclTransport, ACollectiveWaitsForTheStreamOfItsBuffer) {
  std::vector<float> values(4);
  const auto sum = [](NcclTransport& to, Buffer data) { to.all_reduce(data); };
  Buffer data = buffer(std::span(values));
  const Notes by_default = notes_of(data, sum);
  ASSERT_GE(by_default.size(), 4u);
  EXPECT_EQ(Notes(by_default.begin(), by_default.begin() + 3),
            (Notes{"record event0 on default", "own waits for event0", "all_reduce own"}));
  EXPECT_EQ(by_default.back(), "record event1 on own");
}

TEST(NcclTransport, ACollectiveWaitsForNoOtherStreamThanThatOfItsBuffer) {
  std::vector<float> values(4);
  const std::vector<int64_t> begins{0, 2, 4};
  auto transport = transport_of(2);
  void* const side = played::name_stream("side");
  Buffer data = buffer(std::span(values));
  data.stream = side;
  auto& notes = played::device().notes;
  const auto check = [&](const char* what, auto&& call) {
    notes.clear();
    call();
    EXPECT_EQ(notes[0], "record event0 on side") << what;
    EXPECT_EQ(notes[1], "own waits for event0") << what;
    EXPECT_EQ(std::count_if(notes.begin(), notes.end(),
                            [](const auto& note) { return note.find("default") != note.npos; }),
              0)
        << what;
  };
  check("all_reduce", [&] { transport.all_reduce(data); });
  check("reduce", [&] { transport.reduce(data, 0); });
  check("broadcast", [&] { transport.broadcast(data, 0); });
  check("reduce_scatter", [&] { transport.reduce_scatter(data, begins); });
  check("all_gather", [&] { transport.all_gather(data, begins); });
  check("exchange", [&] { transport.exchange(data, data, begins); });
}

TEST(NcclTransport, AWaitLeavesNoErrorBehindThatALaunchWouldTakeForItsOwn) {
  std::vector<float> values(4);
  auto transport = transport_of(2);
  played::device().unready = 2;
  transport.all_reduce(buffer(std::span(values)));
  EXPECT_EQ(played::device().unready, 0) << "the test is stale: nothing was waited for";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(NcclTransport, AnExchangeWaitsForBothOfItsBuffers) {
  std::vector<float> out(4), in(4);
  const std::vector<int64_t> begins{0, 2, 4};
  auto transport = transport_of(2);
  Buffer send = buffer(std::span(out)), receive = buffer(std::span(in));
  send.stream = played::name_stream("left");
  receive.stream = played::name_stream("right");
  played::device().notes.clear();
  transport.exchange(send, receive, begins);
  const auto& notes = played::device().notes;
  EXPECT_EQ(Notes(notes.begin(), notes.begin() + 4),
            (Notes{"record event0 on left", "own waits for event0", "record event0 on right",
                   "own waits for event0"}));
}

TEST(NcclTransport, WordsNeedNoMemoryOnceTheChannelStands) {
  for (const int ranks : {1, 2, 5}) {
    auto transport = transport_of(ranks);
    const int before = played::device().num_allocations;
    played::device().has_memory = false;
    for (const size_t length : {size_t{0}, size_t{7}, ByteRounds::kFirst, size_t{5'000'000}}) {
      const std::string mine(length, 'x');
      const auto all = transport.all_gather_bytes(mine);
      ASSERT_EQ(all.size(), static_cast<size_t>(ranks));
      for (const auto& words : all) EXPECT_EQ(words, mine);
    }
    transport.barrier();
    EXPECT_EQ(played::device().num_allocations, before);
  }
}

TEST(NcclTransport, WordsWaitForNoStreamThatComputes) {
  auto transport = transport_of(2);
  played::device().notes.clear();
  transport.all_gather_bytes("words");
  EXPECT_EQ(played::device().notes,
            (Notes{"copy in own", "all_gather own", "copy out own", "record event1 on own"}));
}

// A communicator that does not block hands work to the stream some time after the call.
TEST(NcclTransport, WordsAreReadBehindTheCollectiveThatBringsThem) {
  auto transport = transport_of(2);
  played::device().notes.clear();
  played::device().unsettled = 3;
  transport.all_gather_bytes("words");
  const auto& notes = played::device().notes;
  const auto at = [&](const char* what) { return std::find(notes.begin(), notes.end(), what); };
  EXPECT_LT(at("settled"), at("copy out own"));
  EXPECT_NE(at("settled"), notes.end());
}

TEST(NcclTransport, TheRehearsalSendsAShortAndALongMessage) {
  auto transport = transport_of(2);
  played::device().notes.clear();
  transport.rehearse();
  const auto& notes = played::device().notes;
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "all_gather own"), 3);
  EXPECT_EQ(transport.device(), 0);
}

TEST(NcclTransport, WithoutMemoryForItsSlotsItIsNotMade) {
  played::restart(2).has_memory = false;
  EXPECT_THROW(NcclTransport(nullptr, 0, std::make_shared<PeerWatch>()), Error);
}

}  // namespace
}  // namespace stretto::distributed
