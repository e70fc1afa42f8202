#include "ctc/prefix_arena.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "base/random.h"

namespace stretto::ctc {
namespace {

uint32_t add_child(PrefixArena& arena, uint32_t parent, int32_t label) {
  Prefix prefix;
  prefix.parent = parent;
  prefix.label = label;
  prefix.depth = arena[parent].depth + 1;
  return arena.add(prefix);
}

std::vector<int32_t> labels_of(const PrefixArena& arena, uint32_t prefix) {
  std::vector<int32_t> labels;
  for (const uint32_t number : arena.chain(prefix)) labels.push_back(arena[number].label);
  return labels;
}

TEST(PrefixArena, APrefixIsFoundByItsParentLabelAndWord) {
  PrefixArena arena;
  const uint32_t a = add_child(arena, 0, 4), b = add_child(arena, a, 4);
  EXPECT_EQ(arena.find(0, 4, kNone), a);
  EXPECT_EQ(arena.find(a, 4, kNone), b);
  EXPECT_EQ(arena.find(b, 4, kNone), kNone);
  EXPECT_EQ(arena.find(0, 4, 7), kNone);
  EXPECT_EQ(labels_of(arena, b), (std::vector<int32_t>{4, 4}));
}

TEST(PrefixArena, CompactingKeepsWhatIsKeptAndWhatItBeginsWith) {
  PrefixArena arena;
  RandomStream random(3);
  std::vector<uint32_t> all = {0};
  std::map<std::pair<uint32_t, int32_t>, bool> known;
  while (all.size() < 5000) {
    const uint32_t parent = all[random.below(all.size())];
    const auto label = static_cast<int32_t>(random.below(3));
    if (known.emplace(std::pair(parent, label), true).second)
      all.push_back(add_child(arena, parent, label));
  }
  std::vector<uint32_t> kept = {all[4000], all[17], all[4999], all[2500]};
  std::vector<std::vector<int32_t>> labels;
  for (const uint32_t prefix : kept) labels.push_back(labels_of(arena, prefix));
  const std::vector<int32_t> common = labels_of(arena, arena.common(kept[0], kept[2]));
  arena.compact(kept);
  EXPECT_LT(arena.size(), 500U);
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(labels_of(arena, kept[i]), labels[i]);
    const Prefix& prefix = arena[kept[i]];
    EXPECT_EQ(arena.find(prefix.parent, prefix.label, kNone), kept[i]);
    EXPECT_EQ(prefix.depth, labels[i].size());
  }
  EXPECT_EQ(labels_of(arena, arena.common(kept[0], kept[2])), common);
}

}  // namespace
}  // namespace stretto::ctc
