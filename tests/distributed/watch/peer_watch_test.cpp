#include "distributed/watch/peer_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "tests/distributed/ranks.h"

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;
using testing::verdict;

TEST(PeerWatch, TheFirstLossCountsAndWaitsForTheGrace) {
  PeerWatch watch;
  watch.set_peers({{"a", 1}, {"b", 2}});
  watch.left(0, 10s);
  EXPECT_NO_THROW(watch.check());  // patience
  watch.lost(1, "gone");
  watch.lost(0, "later");
  EXPECT_TRUE(watch.alarmed());
  EXPECT_NO_THROW(watch.check());  // grace
  EXPECT_EQ(verdict(watch, 3000ms), "rank 1 (host b, pid 2) is lost: gone");
}

TEST(PeerWatch, AWaitEndsWithTheLoss) {
  PeerWatch watch;
  std::thread thread([&] {
    std::this_thread::sleep_for(20ms);
    watch.lost(3, "gone");
  });
  EXPECT_THROW(wait_until(watch, [] { return false; }), Error);
  thread.join();
}

TEST(PeerWatch, AFailedCollectiveWaitsForTheNews) {
  PeerWatch watch;
  std::thread thread([&] {
    std::this_thread::sleep_for(100ms);
    watch.lost(3, "gone");
  });
  try {
    watch.wait_for_news();
    ADD_FAILURE() << "no news";
  } catch (const PeerLost& loss) {
    EXPECT_EQ(loss.rank(), 3);
  }
  thread.join();
  PeerWatch silent;
  EXPECT_NO_THROW(silent.wait_for_news());
  PeerWatch patient;  // nobody needs to wait any longer for one that has left
  patient.left(2, 1h);
  EXPECT_THROW(patient.wait_for_news(), PeerLost);
}

TEST(PeerWatch, KnowsWhetherTheNewsWereHeeded) {
  PeerWatch watch;
  watch.check();
  EXPECT_FALSE(watch.heeded());
  watch.lost(1, "gone");
  EXPECT_FALSE(watch.heeded());
  watch.check();
  EXPECT_TRUE(watch.heeded());
}

}  // namespace
}  // namespace stretto::distributed
