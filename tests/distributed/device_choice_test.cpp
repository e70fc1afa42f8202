#include "distributed/device_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "distributed/watch/activity.h"
#include "tests/base/failure.h"
#include "tests/distributed/ranks.h"

namespace stretto::distributed {
namespace {

using Ids = std::vector<std::string>;

std::vector<VisibleDevices> on_one_machine(const std::vector<Ids>& lists) {
  std::vector<VisibleDevices> ranks;
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    ranks.push_back({"boot-a", "node7", static_cast<int>(rank), lists[rank]});
  }
  return ranks;
}

std::vector<int> chosen(const std::vector<Ids>& lists) {
  return choose_devices(on_one_machine(lists));
}

TEST(DeviceChoice, RanksThatSeeTheSameGpusTakeThatOfTheirLocalRank) {
  const Ids four{"a", "b", "c", "d"};
  EXPECT_EQ(chosen({four, four, four, four}), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(chosen({four, four}), (std::vector<int>{0, 1}));
}

TEST(DeviceChoice, RanksThatSeeTheirOwnGpuTakeIt) {
  EXPECT_EQ(chosen({{"a"}, {"b"}, {"c"}}), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(chosen({{"a", "b"}, {"c", "d"}, {"e", "f"}}), (std::vector<int>{0, 1, 0}));
}

TEST(DeviceChoice, ListsThatBeginWithTheirOwnGpuAreTakenByTheirFirst) {
  EXPECT_EQ(
      chosen(
          {{"a", "b", "c", "d"}, {"b", "c", "d", "a"}, {"c", "d", "a", "b"}, {"d", "a", "b", "c"}}),
      (std::vector<int>{0, 0, 0, 0}));
}

TEST(DeviceChoice, EachMachineChoosesForItself) {
  const Ids two{"a", "b"};
  std::vector<VisibleDevices> ranks{{"boot-a", "node7", 0, two},
                                    {"boot-b", "node7", 0, {"a"}},
                                    {"boot-a", "node7", 1, two},
                                    {"boot-b", "node7", 1, {"b"}}};
  EXPECT_EQ(choose_devices(ranks), (std::vector<int>{0, 0, 1, 0}));
}

TEST(DeviceChoice, TooFewGpusAreSaidWithHostAndRanks) {
  const Error shared = testing::failure(ExitCode::kUsage, [] {
    chosen({{"a", "b"}, {"a", "b"}, {"a", "b"}});
  });
  EXPECT_STREQ(shared.what(),
               "host node7: ranks 0 and 2 would share the GPU a; its 3 processes see 2 GPUs");
  EXPECT_NE(shared.advice().find("one process for each GPU"), std::string::npos);
  const Error blind = testing::failure(ExitCode::kUsage, [] { chosen({{"a"}, {}, {}}); });
  EXPECT_STREQ(blind.what(), "host node7: ranks 1, 2 see no GPU");
}

TEST(DeviceChoice, ARankHearsOfItsOwn) {
  testing::on_ranks(3, [](const ProcessGroup& group) {
    // Where local ranks are the wrong way round, and each sees one GPU of two.
    const VisibleDevices mine{.machine = "boot-a",
                              .host = "node7",
                              .local_rank = 2 - group.rank(),
                              .ids = {"a", "b", "c"}};
    EXPECT_EQ(choose_device(group, mine), 2 - group.rank());
  });
}

/// A channel of GPU 3.
class OnThree : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "three"; }
  bool on_device() const override { return true; }
  int device() const override { return 3; }
  void all_reduce(Buffer) override {}
  void reduce(Buffer, int) override {}
  void broadcast(Buffer, int) override {}
  void reduce_scatter(Buffer, std::span<const int64_t>) override {}
  void all_gather(Buffer, std::span<const int64_t>) override {}
  void exchange(Buffer, Buffer, std::span<const int64_t>) override {}
  std::vector<std::string> all_gather_bytes(const std::string& mine) override { return {mine}; }
  void barrier() override {}
  std::shared_ptr<Transport> duplicate() override { return nullptr; }
};

TEST(ProcessGroup, TellsItsGpuThroughWhatNotesItsCollectives) {
  const auto transport = noted(std::make_shared<OnThree>(), std::make_shared<Activity>());
  const ProcessGroup group(transport);
  EXPECT_TRUE(group.on_device());
  EXPECT_EQ(group.device(), 3);
  EXPECT_EQ(ProcessGroup().device(), -1);
}

}  // namespace
}  // namespace stretto::distributed
