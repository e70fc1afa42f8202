#include "experiment/preflight_child.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"

namespace stretto::experiment {
namespace {

constexpr std::chrono::minutes kLong{1};  // more than any machine needs

TEST(PreflightChild, FindingsComeBackWhole) {
  const std::vector<std::string> details{"`a` is [2, 3]", "", std::string("with a \0 inside", 15)};
  Preflight found;
  found.unread.push_back({"data.valid", "of this process"});
  EXPECT_TRUE(look_in_child(
      kLong,
      [&](Preflight& own) {
        note_stop(own, Stage::kWeights, "train.init_from", [&] {
          throw Error(ExitCode::kBadData, "does not fit: 1:2\n3", "give others", details);
        });
        note_stop(own, Stage::kFiles, "", [] { throw Error(ExitCode::kIo, "cannot read"); });
        own.unread.push_back({"data.train", "a.en from line 1,234 on"});
        own.doubts.push_back({"data.train", "a.tsv:1 looks odd", "look at it"});
        own.most_batches = int64_t{1} << 40;
      },
      found));
  ASSERT_EQ(found.stops.size(), 2u);
  const Stop& stop = found.stops[0];
  EXPECT_EQ(stop.stage, Stage::kWeights);
  EXPECT_EQ(stop.key, "train.init_from");
  EXPECT_EQ(stop.code, ExitCode::kBadData);
  EXPECT_EQ(stop.what, "does not fit: 1:2\n3");
  EXPECT_EQ(stop.hint, "give others");
  EXPECT_EQ(stop.details, details);
  EXPECT_EQ(found.stops[1].what, "cannot read");
  EXPECT_TRUE(found.stops[1].details.empty());
  ASSERT_EQ(found.unread.size(), 2u);
  EXPECT_EQ(found.unread[1].key, "data.train");
  EXPECT_EQ(found.unread[1].what, "a.en from line 1,234 on");
  ASSERT_EQ(found.doubts.size(), 1u);
  EXPECT_EQ(found.doubts[0].key, "data.train");
  EXPECT_EQ(found.doubts[0].what, "a.tsv:1 looks odd");
  EXPECT_EQ(found.doubts[0].hint, "look at it");
  EXPECT_EQ(found.most_batches, int64_t{1} << 40);
}

TEST(PreflightChild, WhatFindsNothingChangesNothing) {
  Preflight found;
  found.most_batches = 7;
  EXPECT_TRUE(look_in_child(
      kLong, [](Preflight&) {}, found));
  EXPECT_TRUE(found.stops.empty());
  EXPECT_EQ(found.most_batches, 7);
  EXPECT_FALSE(look_in_child(
      std::chrono::milliseconds(0), [](Preflight& own) { own.most_batches = 1; }, found));
  EXPECT_EQ(found.most_batches, 7);
}

}  // namespace
}  // namespace stretto::experiment
