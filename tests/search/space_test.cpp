#include "search/space.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "search/sampler.h"

namespace stretto::search {
namespace {

using Kind = Parameter::Kind;
using Texts = std::vector<std::string>;

Parameter categorical(std::string key, Texts values, std::vector<Condition> when = {}) {
  return {.key = std::move(key), .values = std::move(values), .when = std::move(when)};
}

Parameter interval(std::string key, Kind kind, double min, double max) {
  return {
      .key = std::move(key), .kind = kind, .min = min, .max = max, .integer = kind == Kind::kInt};
}

// optim.name = adam has beta1, sgd has momentum, and nesterov with a momentum of 0.9 alone.
Space conditional() {
  return {{categorical("optim.name", {"adam", "sgd"}),
           categorical("optim.beta1", {"0.8", "0.9"}, {{0, {"adam"}}}),
           categorical("optim.momentum", {"0", "0.9"}, {{0, {"sgd"}}}),
           categorical("optim.nesterov", {"true", "false"}, {{2, {"0.9"}}})}};
}

TEST(Space, HasTheValuesOfItsIntervals) {
  const auto whole = interval("a.b", Kind::kInt, 2, 5);
  EXPECT_EQ(whole.at(0), "2");
  EXPECT_EQ(whole.at(0.24), "2");
  EXPECT_EQ(whole.at(0.26), "3");
  EXPECT_EQ(whole.at(0.999), "5");
  EXPECT_EQ(interval("a.b", Kind::kDouble, 0, 1).at(0.123456789), "0.12346");
  EXPECT_EQ(interval("a.b", Kind::kLog, 1e-4, 1e-2).at(0.5), "0.001");
  EXPECT_EQ(interval("a.b", Kind::kLog, 1e-4, 1e-2).at(0), "0.0001");
  Parameter rounded = interval("a.b", Kind::kLog, 16, 1024);
  rounded.integer = true;
  EXPECT_EQ(rounded.at(0.5), "128");
}

TEST(Space, WritesWholeNumbersAsAnIntegerKeyTakesThem) {
  EXPECT_EQ(interval("a.b", Kind::kInt, 1e6, 1e6).at(0), "1000000");
  Parameter rounded = interval("a.b", Kind::kLog, 64.2, 70.8);
  rounded.integer = true;
  EXPECT_EQ(rounded.at(0), "65");
  EXPECT_EQ(rounded.at(0.999), "70");
}

TEST(Space, KeepsAllDigitsOfANarrowInterval) {
  const std::string value = interval("a.b", Kind::kDouble, 1, 1.0001).at(0.5);
  EXPECT_EQ(value, "1.00005");
  EXPECT_TRUE(interval("a.b", Kind::kDouble, 1, 1.0001).contains(value));
}

TEST(Space, DrawsUniformlyOnEachScale) {
  const Space space{{interval("a.x", Kind::kLog, 1e-4, 1), categorical("a.y", {"p", "q", "r"})}};
  int below = 0;
  std::map<std::string, int> counts;
  constexpr int kDraws = 3000;
  for (uint64_t trial = 0; trial < kDraws; ++trial) {
    const Point point = space.draw(7, trial, 0);
    below += std::stod(*point[0]) < 1e-2 ? 1 : 0;
    ++counts[*point[1]];
  }
  EXPECT_NEAR(below, kDraws / 2, 4 * std::sqrt(kDraws / 4.0));
  for (const auto& [value, count] : counts) {
    EXPECT_NEAR(count, kDraws / 3, 4 * std::sqrt(kDraws * 2 / 9.0)) << value;
  }
}

TEST(Space, DrawsAFunctionOfSeedTrialAndAttempt) {
  const Space space{{interval("a.x", Kind::kDouble, 0, 1), interval("a.y", Kind::kDouble, 0, 1)}};
  EXPECT_EQ(space.draw(1, 2, 3), space.draw(1, 2, 3));
  std::set<std::string> texts;
  for (uint64_t i = 0; i < 4; ++i) {
    for (uint64_t j = 0; j < 4; ++j) {
      for (uint64_t k = 0; k < 4; ++k) texts.insert(space.text(space.draw(i, j, k)));
    }
  }
  EXPECT_EQ(texts.size(), 64u);
}

TEST(Space, DrawsTheOthersAsBeforeWhenOneIsNarrowed) {
  const Space wide{{interval("a.x", Kind::kDouble, 0, 1), interval("a.y", Kind::kDouble, 0, 1)}};
  Space narrow = wide;
  narrow.parameters[0].max = 0.5;
  for (uint64_t trial = 0; trial < 10; ++trial) {
    EXPECT_EQ(wide.draw(1, trial, 0)[1], narrow.draw(1, trial, 0)[1]);
  }
}

TEST(Space, HasAConditionalParameterOnlyWhereItsConditionsHold) {
  const Space space = conditional();
  std::set<std::string> seen;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const Point point = space.draw(3, trial, 0);
    EXPECT_TRUE(space.contains(point)) << space.text(point);
    seen.insert(space.text(point));
  }
  EXPECT_EQ(seen, (std::set<std::string>{
                      "optim.name=adam optim.beta1=0.8",
                      "optim.name=adam optim.beta1=0.9",
                      "optim.name=sgd optim.momentum=0",
                      "optim.name=sgd optim.momentum=0.9 optim.nesterov=false",
                      "optim.name=sgd optim.momentum=0.9 optim.nesterov=true",
                  }));
  EXPECT_FALSE(space.contains({"adam", std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_FALSE(space.contains({"adam", "0.8", "0", std::nullopt}));
  EXPECT_FALSE(space.contains({"adam", "0.7", std::nullopt, std::nullopt}));
}

TEST(Space, CountsTheGridWithoutWalkingIt) {
  const auto walked = [](const Space& space) {
    uint64_t points = 0;
    const Grid grid(space);
    for (auto point = grid.first(); point; point = grid.next(*point)) ++points;
    return points;
  };
  EXPECT_EQ(Grid(conditional()).size(100), 5u);
  EXPECT_EQ(walked(conditional()), 5u);
  // Of six values two have two points each, and the others one.
  const Space whole{
      {interval("a.x", Kind::kInt, 1, 6), categorical("a.y", {"p", "q"}, {{0, {"2", "3"}}})}};
  EXPECT_EQ(Grid(whole).size(100), 8u);
  EXPECT_EQ(walked(whole), 8u);
  EXPECT_EQ(Grid(whole).size(7), 8u);
  EXPECT_EQ(Grid(whole).size(3), 4u) << "more than three";
  Space large;
  for (int i = 0; i < 7; ++i) {
    large.parameters.push_back(interval("a.b" + std::to_string(i), Kind::kInt, 1, 1000));
  }
  EXPECT_EQ(Grid(large).size(1'000'000), 1'000'001u);
}

TEST(Space, WalksTheGridWithTheLastParameterFastest) {
  const Space space = conditional();
  Texts texts;
  const Grid grid(space);
  for (auto point = grid.first(); point; point = grid.next(*point)) {
    texts.push_back(space.text(*point));
  }
  EXPECT_EQ(texts, (Texts{"optim.name=adam optim.beta1=0.8", "optim.name=adam optim.beta1=0.9",
                          "optim.name=sgd optim.momentum=0",
                          "optim.name=sgd optim.momentum=0.9 optim.nesterov=true",
                          "optim.name=sgd optim.momentum=0.9 optim.nesterov=false"}));
}

TEST(Space, HasBothBoundsInAGrid) {
  Parameter log = interval("optim.lr", Kind::kLog, 1e-4, 1e-1);
  log.count = 4;
  EXPECT_EQ(log.grid(), (Texts{"0.0001", "0.001", "0.01", "0.1"}));
  log.count = 1;
  EXPECT_EQ(log.grid(), (Texts{"0.00316228"})) << "the middle";
  Parameter whole = interval("model.num_layers", Kind::kInt, 1, 4);
  EXPECT_EQ(whole.grid(), (Texts{"1", "2", "3", "4"}));
  whole.count = 2;
  EXPECT_EQ(whole.grid(), (Texts{"1", "4"}));
  whole.count = 40;
  EXPECT_EQ(whole.grid(), (Texts{"1", "2", "3", "4"}));
  EXPECT_TRUE(interval("a.b", Kind::kDouble, 0, 1).grid().empty());
  EXPECT_TRUE(interval("a.b", Kind::kInt, 0, 1e15).grid().empty());
}

TEST(Space, PlacesValuesOnTheirScale) {
  EXPECT_NEAR(interval("a.b", Kind::kLog, 1e-4, 1e-2).position("0.001"), 0.5, 1e-9);
  EXPECT_EQ(categorical("a.b", {"p", "q", "r"}).position("q"), 0.5);
  Parameter numbers = categorical("a.b", {"64", "128", "256"});
  numbers.kind = Kind::kNumbers;
  EXPECT_NEAR(numbers.position("128"), 1.0 / 3, 1e-12);
  EXPECT_EQ(categorical("a.b", {"p"}).position("p"), 0.5);
}

bool always(const Point&) {
  return true;
}

TEST(Sampler, MakesEachPointOnceAndKnowsTheEnd) {
  const Sampler sampler{.space = conditional()};
  std::set<std::string> known;
  while (const auto choice = sampler.next(known, 0, always)) {
    EXPECT_TRUE(known.insert(sampler.space.text(choice->point)).second);
  }
  EXPECT_EQ(known.size(), 5u);
}

TEST(Sampler, WalksAGridPastWhatIsThere) {
  const Sampler sampler{.space = conditional(), .grid = true};
  const auto choice = sampler.next({"optim.name=adam optim.beta1=0.8"}, 0, always);
  ASSERT_TRUE(choice);
  EXPECT_EQ(sampler.space.text(choice->point), "optim.name=adam optim.beta1=0.9");
}

TEST(Sampler, TakesEnqueuedPointsFirstAndDrawsWhatTheyLeaveOut) {
  Sampler sampler{.space = conditional()};
  sampler.enqueued = {{"sgd", std::nullopt, "0", std::nullopt}, {"adam", {}, {}, {}}};
  const auto first = sampler.next({}, 0, always);
  ASSERT_TRUE(first);
  EXPECT_EQ(sampler.space.text(first->point), "optim.name=sgd optim.momentum=0");
  EXPECT_EQ(first->num_enqueued, 1u);
  const auto second = sampler.next({sampler.space.text(first->point)}, 1, always);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->point[0], "adam");
  EXPECT_TRUE(second->point[1].has_value());
  EXPECT_EQ(second->num_enqueued, 2u);
}

TEST(Sampler, DrawsTheRestOfAnEnqueuedPointAgainUntilItIsSound) {
  Sampler sampler{.space = conditional()};
  sampler.enqueued = {{"adam", {}, {}, {}}};
  const auto small_beta = [](const Point& point) { return point[1] == "0.8"; };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    sampler.seed = seed;
    std::vector<Sampler::SkippedPoint> skipped_points;
    const auto choice = sampler.next({}, 0, small_beta, &skipped_points);
    ASSERT_TRUE(choice);
    EXPECT_EQ(sampler.space.text(choice->point), "optim.name=adam optim.beta1=0.8");
    EXPECT_EQ(choice->num_enqueued, 1u);
    EXPECT_TRUE(skipped_points.empty());
  }
}

TEST(Sampler, NamesEnqueuedPointsThatItPassesOver) {
  using Reason = Sampler::SkippedPoint::Reason;
  Sampler sampler{.space = conditional()};
  const Point known{"sgd", {}, "0", {}}, unsound{"adam", "0.9", {}, {}},
      outside{"adam", "0.7", {}, {}};
  sampler.enqueued = {known, unsound, outside, {"adam", "0.8", {}, {}}};
  int asked = 0;
  const auto check = [&](const Point& point) {
    ++asked;
    return point != unsound;
  };
  std::vector<Sampler::SkippedPoint> skipped_points;
  const auto choice = sampler.next({sampler.space.text(known)}, 0, check, &skipped_points);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->num_enqueued, 4u);
  ASSERT_EQ(skipped_points.size(), 3u);
  EXPECT_EQ(skipped_points[0].reason, Reason::kKnown);
  EXPECT_EQ(skipped_points[1].reason, Reason::kNotSound);
  EXPECT_EQ(skipped_points[1].number, 1u);
  EXPECT_EQ(skipped_points[1].point, unsound);
  EXPECT_EQ(skipped_points[2].reason, Reason::kNotInSpace);
  EXPECT_EQ(asked, 2) << "a whole point is not drawn again";
}

TEST(Sampler, PassesOverPointsThatARuleRefuses) {
  const Sampler sampler{.space = conditional()};
  const auto no_adam = [](const Point& point) { return point[0] != "adam"; };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto choice = Sampler{.space = sampler.space, .seed = seed}.next({}, 0, no_adam);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->point[0], "sgd");
  }
  EXPECT_FALSE(sampler.next({}, 0, [](const Point&) { return false; }));
}

TEST(Sampler, MakesTheSamePointsWhenTheSearchGoesOn) {
  const Sampler sampler{.space = {{interval("a.x", Kind::kDouble, 0, 1)}}, .seed = 9};
  std::set<std::string> known;
  Texts whole, in_parts;
  for (int i = 0; i < 6; ++i) {
    const auto choice = sampler.next(known, 0, always);
    known.insert(sampler.space.text(choice->point));
    whole.push_back(sampler.space.text(choice->point));
  }
  for (const auto& text : whole) {
    const auto again = sampler.next({in_parts.begin(), in_parts.end()}, 0, always);
    in_parts.push_back(sampler.space.text(again->point));
    EXPECT_EQ(in_parts.back(), text);
  }
}

}  // namespace
}  // namespace stretto::search
