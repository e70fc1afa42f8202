// The process is killed, or a system call fails, at every step of a save and prune cycle.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/error.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;
using testing::CheckpointTest;
using testing::is_checkpoint;
using testing::TinyCheckpoint;

class Crash : public CheckpointTest {
 protected:
  // What training does at a checkpoint: keeps the newest two.
  void cycle(int64_t step) const {
    store().save(TinyCheckpoint(step).content);
    auto steps = store().steps();
    if (steps.size() > 2) steps.erase(steps.begin(), steps.end() - 2);
    store().prune(steps);
  }
  // What training does at its start.
  LoadedCheckpoint recover() const {
    store().remove_stale();
    auto loaded = store().load_newest(true);
    if (!loaded) throw std::runtime_error("no checkpoint");
    return std::move(*loaded);
  }
  void start_afresh() const {
    fs::remove_all(dir_ / "checkpoints");
    for (int64_t step = 1; step <= 3; ++step) cycle(step);
  }
  void expect_step_3_or_4(const std::string& where) const {
    std::optional<LoadedCheckpoint> loaded;
    ASSERT_NO_THROW(loaded = recover()) << where;
    EXPECT_TRUE(loaded->step == 3 || loaded->step == 4) << where;
    EXPECT_TRUE(is_checkpoint(*loaded, loaded->step)) << where;
    EXPECT_EQ(count(".") + count("bad-"), 0u) << where;
  }
};

TEST_F(Crash, AKillAnywhereLeavesTheOldOrTheNewCheckpoint) {
  int n = 1;
  std::set<int64_t> found;
  for (;; ++n) {
    start_afresh();
    const std::string rule = "*:kill:" + std::to_string(n);
    if (!killed(rule, [&] { cycle(4); })) break;
    // Before any cleaning, as eval and infer see it.
    const auto seen = store().load_newest(false);
    ASSERT_TRUE(seen) << rule;
    found.insert(seen->step);
    expect_step_3_or_4(rule);
  }
  EXPECT_GT(n, 25) << "so many failpoints must be passed";
  EXPECT_EQ(found, (std::set<int64_t>{3, 4}));
  EXPECT_TRUE(is_checkpoint(recover(), 4));
}

TEST_F(Crash, AKillWhileTheSameStepIsSavedAgainLosesNothing) {
  for (const char* extra : {"", ";checkpoint.exchange:einval"}) {
    for (int n = 1;; ++n) {
      start_afresh();
      const std::string rule = "*:kill:" + std::to_string(n) + extra;
      if (!killed(rule, [&] { cycle(3); })) break;
      ASSERT_LT(n, 200);
      EXPECT_TRUE(is_checkpoint(recover(), 3)) << rule;
    }
    EXPECT_EQ(store().steps(), (std::vector<int64_t>{2, 3}));
  }
}

// A kill at each point of the cycle, with a sound newest checkpoint and with a broken one; then up
// to five more, each during the recovery from the one before, at its first, second or third step.
TEST_F(Crash, KillsDuringRecoveryLoseNothing) {
  int in_recovery = 0, deepest = 0;
  std::set<int64_t> found;
  for (const bool broken : {false, true}) {
    for (int first = 1;; ++first) {
      start_afresh();
      if (broken) overwrite(dir_ / "checkpoints/step_00000003/state.json", "broken");
      if (!killed("*:kill:" + std::to_string(first), [&] { cycle(4); })) break;
      ASSERT_LT(first, 200);
      int deep = 0;
      for (int depth = 0; depth < 5; ++depth) {
        const int at = 1 + (first + depth) % 3;
        deep += killed("*:kill:" + std::to_string(at), [&] { recover(); }) ? 1 : 0;
      }
      in_recovery += deep;
      deepest = std::max(deepest, deep);
      std::optional<LoadedCheckpoint> loaded;
      ASSERT_NO_THROW(loaded = recover()) << first;
      EXPECT_GE(loaded->step, broken ? 2 : 3) << first;
      EXPECT_TRUE(is_checkpoint(*loaded, loaded->step)) << first;
      EXPECT_EQ(count("."), 0u) << first;
      found.insert(loaded->step);
    }
  }
  EXPECT_GE(in_recovery, 20) << "so many kills must have met a recovery at work";
  EXPECT_GE(deepest, 3);
  EXPECT_EQ(found, (std::set<int64_t>{2, 3, 4}));
}

TEST_F(Crash, AFailingSystemCallLeavesThePreviousCheckpointWhole) {
  for (const std::string fault : {"enospc", "eio"}) {
    for (const std::string repeat : {"", "+"}) {
      for (int n = 1;; ++n) {
        start_afresh();
        set_failpoints("*:" + fault + ":" + std::to_string(n) + repeat);
        bool saved = true;
        try {
          store().save(TinyCheckpoint(4).content);
        } catch (const Error& error) {
          saved = false;
          EXPECT_EQ(error.code(), ExitCode::kIo);
        }
        const bool done = failpoint_passes() < static_cast<uint64_t>(n);
        set_failpoints("");
        EXPECT_TRUE(is_checkpoint(CheckpointStore::load(store().path_of(3)), 3));
        EXPECT_EQ(count(".tmp-"), 0u) << "a failed save cleans up: " << fault << " " << n;
        expect_step_3_or_4(fault + " " + std::to_string(n) + repeat);
        EXPECT_EQ(saved, done) << fault << " " << n << repeat;
        if (done) break;
        ASSERT_LT(n, 200);
      }
    }
  }
}

TEST_F(Crash, AFailingPruneLosesNoCheckpointThatIsKept) {
  for (int n = 1;; ++n) {
    start_afresh();
    store().save(TinyCheckpoint(4).content);
    set_failpoints("*:eio:" + std::to_string(n));
    bool done = true;
    try {
      store().prune({3, 4});
    } catch (const Error& error) {
      done = false;
      EXPECT_EQ(error.code(), ExitCode::kIo);
    }
    set_failpoints("");
    EXPECT_TRUE(is_checkpoint(CheckpointStore::load(store().path_of(3)), 3));
    expect_step_3_or_4("eio " + std::to_string(n));
    if (done) break;
    ASSERT_LT(n, 100);
  }
}

TEST_F(Crash, OutOfMemoryInTheMiddleLeavesNothingBehind) {
  start_afresh();
  set_failpoints("checkpoint.write:throw:2");
  EXPECT_THROW(store().save(TinyCheckpoint(4).content), std::bad_alloc);
  set_failpoints("");
  EXPECT_EQ(count("."), 0u);
  EXPECT_TRUE(is_checkpoint(recover(), 3));
}

TEST_F(Crash, ShortAndInterruptedWritesChangeNothing) {
  set_failpoints("checkpoint.write:short:1+");
  cycle(1);
  set_failpoints("checkpoint.write:eintr:2;checkpoint.open:eintr:1");
  cycle(2);
  set_failpoints("");
  for (const int64_t step : {1, 2}) {
    EXPECT_TRUE(is_checkpoint(CheckpointStore::load(store().path_of(step)), step));
  }
}

TEST_F(Crash, AnInterruptedCallIsMadeAgainWhereverItIs) {
  start_afresh();
  int n = 1;
  for (;; ++n) {
    set_failpoints("*:eintr:" + std::to_string(n));
    ASSERT_NO_THROW(cycle(4)) << "call " << n;
    const bool done = failpoint_passes() < static_cast<uint64_t>(n);
    set_failpoints("");
    EXPECT_TRUE(is_checkpoint(CheckpointStore::load(store().path_of(4)), 4)) << "call " << n;
    if (done) break;
    ASSERT_LT(n, 200);
  }
  EXPECT_GT(n, 25) << "so many calls must be passed";
}

}  // namespace
}  // namespace stretto::store
