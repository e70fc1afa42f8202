#include "runs/taken_names.h"

#include <gtest/gtest.h>

namespace stretto::runs {
namespace {

std::optional<std::string> name_here(const std::string& entry, const std::string& stored) {
  TakenNames names;
  EXPECT_FALSE(read_taken_names(entry, names));
  const auto here = names.name_of_stored(stored);
  if (here) {
    EXPECT_EQ(names.name_in_source(*here), stored);
  }
  return here;
}

TEST(TakenNames, FindTheOwnNameOfAStoredTensor) {
  EXPECT_EQ(name_here("encoder.*", "encoder.norm.gain"), "encoder.norm.gain");
  EXPECT_EQ(name_here("encoder.*", "decoder.norm.gain"), std::nullopt);
  EXPECT_EQ(name_here("*.norm.?ain", "decoder.norm.gain"), "decoder.norm.gain");
  EXPECT_EQ(name_here("encoder.* = encoders.1.*", "encoders.1.norm.gain"), "encoder.norm.gain");
  EXPECT_EQ(name_here("encoder.* = encoders.1.*", "encoder.norm.gain"), std::nullopt);
  EXPECT_EQ(name_here("a.weight = b.weight", "b.weight"), "a.weight");
  EXPECT_EQ(name_here("a.weight = b.weight", "a.weight"), std::nullopt);
}

}  // namespace
}  // namespace stretto::runs
