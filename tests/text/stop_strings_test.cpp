#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace stretto::text {
namespace {

using Stops = std::vector<std::string>;

/// The text up to the stop string that is complete first, and whether there is one.
std::pair<std::string, bool> cut_at_stop(const std::string& text, const Stops& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (!stop.empty() && text.substr(0, end).ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopStrings, NothingOfAStopStringIsGiven) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.add("a line\n"), "a line");
  EXPECT_EQ(stops.add("E"), "\n");
  EXPECT_EQ(stops.add("N"), "");
  EXPECT_EQ(stops.add("TER EN"), "ENTER ");
  EXPECT_EQ(stops.add("D and more"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.add("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, WhatOnlyBeginsAStopStringIsGivenAtTheEnd) {
  StopStrings stops({"stop"});
  EXPECT_EQ(stops.add("st"), "");
  EXPECT_EQ(stops.finish(), "st");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, WithoutAnyTextGoesThrough) {
  StopStrings none({}), empty({""});
  EXPECT_EQ(none.add("text"), "text");
  EXPECT_EQ(empty.add("text"), "text");
  EXPECT_FALSE(empty.stopped());
}

TEST(StopStrings, AreFoundWhereverTheTextIsCut) {
  RandomStream random(3);
  const auto below = [&](int bound) {
    return static_cast<int>(random.below(static_cast<uint64_t>(bound)));
  };
  const auto any_text = [&](int length, const char* letters, int count) {
    std::string text;
    for (int i = 0; i < length; ++i) text += letters[below(count)];
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 5000; ++round) {
    Stops texts;
    for (int i = below(4); i > 0; --i) texts.push_back(any_text(below(5), "ab", 2));
    const std::string text = any_text(below(14), "abc", 3);
    const auto [wanted, is_stopped] = cut_at_stop(text, texts);
    StopStrings stops(texts);
    std::string given;
    for (size_t at = 0; at < text.size();) {
      const auto size = static_cast<size_t>(1 + below(4));
      given += stops.add(std::string_view(text).substr(at, size));
      ASSERT_TRUE(wanted.starts_with(given)) << text;
      at += size;
    }
    given += stops.finish();
    ASSERT_EQ(given, wanted) << text;
    ASSERT_EQ(stops.stopped(), is_stopped) << text;
    stopped += is_stopped ? 1 : 0;
  }
  EXPECT_GT(stopped, 500);
  EXPECT_LT(stopped, 4500);
}

}  // namespace
}  // namespace stretto::text
