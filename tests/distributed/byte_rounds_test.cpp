#include "distributed/byte_rounds.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>

#include "tests/distributed/ranks.h"

namespace stretto::distributed {
namespace {

std::string words_of(int rank, size_t length) {
  std::string text(length, '\0');
  for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>('a' + (i * 7 + rank) % 26);
  return text;
}

/// Slots in memory, whose other parts come by the rendezvous.
class Slots {
 public:
  Slots(const ProcessGroup& group, size_t capacity)
      : group_(group), bytes_(capacity * static_cast<size_t>(group.size()), '?') {}

  std::vector<std::string> gather(const std::string& mine) {
    return ByteRounds(group_.rank(), group_.size(), bytes_, [this](size_t bytes) { round(bytes); })
        .run(mine);
  }
  std::vector<size_t> rounds;  // bytes of a slot

 private:
  void round(size_t bytes) {
    rounds.push_back(bytes);
    ASSERT_LE(bytes * static_cast<size_t>(group_.size()), bytes_.size());
    const auto own = static_cast<size_t>(group_.rank()) * bytes;
    const auto all = group_.all_gather_bytes({bytes_.data() + own, bytes});
    for (size_t r = 0; r < all.size(); ++r) {
      ASSERT_EQ(all[r].size(), bytes) << "slots of unequal length";
      std::memcpy(bytes_.data() + r * bytes, all[r].data(), bytes);
    }
  }

  const ProcessGroup& group_;
  std::vector<char> bytes_;
};

TEST(ByteRounds, BringsWhatEachRankSaysWhateverItsLength) {
  constexpr size_t kCapacity = 2 * ByteRounds::kFirst, kHead = ByteRounds::kFirst - 8;
  testing::on_ranks(3, [](const ProcessGroup& group) {
    Slots slots(group, kCapacity);
    const auto check = [&](const std::function<size_t(int)>& length) {
      const auto all = slots.gather(words_of(group.rank(), length(group.rank())));
      ASSERT_EQ(all.size(), 3u);
      for (int r = 0; r < 3; ++r) {
        EXPECT_EQ(all[static_cast<size_t>(r)], words_of(r, length(r))) << "rank " << r;
      }
    };
    check([](int) { return 0; });
    check([](int rank) { return static_cast<size_t>(rank); });
    for (const size_t length :
         {kHead - 1, kHead, kHead + 1, kHead + kCapacity, kHead + kCapacity + 1, 10 * kCapacity}) {
      check([&](int) { return length; });
      check([&](int rank) { return rank == 1 ? length : 5; });
    }
  });
}

TEST(ByteRounds, WhatAControlMessageSaysGoesInOneRound) {
  testing::on_ranks(2, [](const ProcessGroup& group) {
    Slots slots(group, ByteRounds::capacity_for(2));
    slots.gather(words_of(group.rank(), 4000));
    EXPECT_EQ(slots.rounds, std::vector<size_t>{ByteRounds::kFirst});
  });
}

TEST(ByteRounds, SlotsOfManyRanksTakeLittleMemory) {
  EXPECT_EQ(ByteRounds::capacity_for(1), size_t{1} << 20);
  EXPECT_EQ(ByteRounds::capacity_for(8), size_t{256} << 10);
  EXPECT_EQ(ByteRounds::capacity_for(4096), ByteRounds::kFirst);
  for (const int size : {1, 2, 3, 7, 100, 1000}) {
    EXPECT_LE(ByteRounds::capacity_for(size) * static_cast<size_t>(size), size_t{4} << 20) << size;
    EXPECT_EQ(ByteRounds::capacity_for(size) % 256, 0u) << size;
  }
}

}  // namespace
}  // namespace stretto::distributed
