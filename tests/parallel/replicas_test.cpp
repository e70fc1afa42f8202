#include "parallel/replicas.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/distributed/thread_group.h"

namespace stretto::parallel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// What each rank hears; "" = nothing.
std::vector<std::string> said(const std::vector<Replica>& replicas) {
  std::vector<std::string> all(replicas.size());
  stretto::test::run_ranks(static_cast<int>(replicas.size()), [&](distributed::ProcessGroup group) {
    const auto rank = static_cast<size_t>(group.rank());
    try {
      require_equal_replicas(group, replicas[rank]);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kNumeric);
      EXPECT_NE(error.advice().find("checkpoint"), std::string::npos);
      all[rank] = error.what();
    }
  });
  return all;
}

std::vector<std::string> by_all(size_t ranks, const std::string& text) {
  return std::vector<std::string>(ranks, text);
}

constexpr const char* kDiffers = " differ from those of the other processes";

TEST(Replicas, EqualOnesPassAndSoDoesOneProcess) {
  EXPECT_EQ(said({{7, 1.5, 3}}), by_all(1, ""));
  EXPECT_EQ(said({{7, 1.5, 3}, {7, 1.5, 3}, {7, 1.5, 3}}), by_all(3, ""));
}

TEST(Replicas, TheMinorityIsNamedToAll) {
  const Replica sound{.step = 7, .grad_norm = 1.5, .weights = 3};
  Replica other_weights = sound, other_norm = sound;
  other_weights.weights = 4;
  other_norm.grad_norm = std::nextafter(1.5, 2);  // one bit
  const std::string begin = "step 7: gradient norm or weights of ";
  EXPECT_EQ(said({sound, sound, other_weights}), by_all(3, begin + "rank 2" + kDiffers));
  EXPECT_EQ(said({other_norm, sound, sound}), by_all(3, begin + "rank 0" + kDiffers));
  // Neither agrees with anybody; the three others are a majority.
  EXPECT_EQ(said({sound, other_norm, sound, other_weights, sound}),
            by_all(5, begin + "rank 1, 3" + kDiffers));
}

TEST(Replicas, WithoutAMajorityAllAreNamed) {
  const Replica a{.step = 12, .grad_norm = 1, .weights = 3}, b{12, 1, 4}, c{12, 2, 3};
  const std::string begin = "step 12: gradient norm or weights of ranks ",
                    end = " differ, and there is no majority";
  EXPECT_EQ(said({a, b}), by_all(2, begin + "0, 1" + end));
  EXPECT_EQ(said({a, b, a, b}), by_all(4, begin + "0-3" + end)) << "half is no majority";
  EXPECT_EQ(said({a, a, b, c}), by_all(4, begin + "0-3" + end)) << "the most are no majority";
}

// An update that is not finite is left out by all ranks alike.
TEST(Replicas, NormsAreComparedBitByBit) {
  EXPECT_EQ(said({{1, kNaN, 3}, {1, kNaN, 3}}), by_all(2, ""));
  const double other_nan = std::bit_cast<double>(std::bit_cast<uint64_t>(kNaN) | 1);
  EXPECT_NE(said({{1, kNaN, 3}, {1, other_nan, 3}}), by_all(2, ""));
  EXPECT_NE(said({{1, 0.0, 3}, {1, -0.0, 3}}), by_all(2, ""));
}

}  // namespace
}  // namespace stretto::parallel
