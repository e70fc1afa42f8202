#include "audio/windows.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stretto::audio {
namespace {

void expect_window(Window window, WindowSymmetry symmetry, const std::vector<double>& wanted) {
  const auto got = window_of(window, symmetry, static_cast<int64_t>(wanted.size()));
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

TEST(Windows, PeriodicOnesLackTheirLastSample) {
  expect_window(Window::kHann, WindowSymmetry::kPeriodic, {0, 0.5, 1, 0.5});
  expect_window(Window::kHann, WindowSymmetry::kSymmetric, {0, 0.5, 1, 0.5, 0});
  expect_window(Window::kHamming, WindowSymmetry::kSymmetric, {0.08, 0.54, 1, 0.54, 0.08});
  expect_window(Window::kBlackman, WindowSymmetry::kSymmetric, {0, 0.34, 1, 0.34, 0});
  expect_window(Window::kPovey, WindowSymmetry::kSymmetric,
                {0, std::pow(0.5, 0.85), 1, std::pow(0.5, 0.85), 0});
  expect_window(Window::kRectangular, WindowSymmetry::kPeriodic, {1, 1, 1});
}

TEST(Windows, OneSampleStays) {
  expect_window(Window::kHann, WindowSymmetry::kSymmetric, {1});
}

}  // namespace
}  // namespace stretto::audio
