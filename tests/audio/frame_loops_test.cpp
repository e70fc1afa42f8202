#include "audio/frame_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "audio/fft_tables.h"
#include "base/random.h"

namespace stretto::audio {
namespace {

constexpr int64_t kSizes[] = {2, 4, 8, 16, 32, 64, 128, 512, 1024};

/// Random numbers in [-0.5, 0.5).
LaneBuffer random_rows(int64_t rows, int64_t lanes, uint64_t key) {
  LaneBuffer buffer(rows * lanes);
  RandomStream random(key);
  for (int64_t i = 0; i < rows * lanes; ++i) {
    buffer.data()[i] = static_cast<float>(random.uniform() - 0.5);
  }
  return buffer;
}

std::complex<double> bin_of(const LaneBuffer& rows, int64_t size, int64_t lanes, int64_t lane,
                            int64_t k) {
  std::complex<double> sum = 0;
  for (int64_t n = 0; n < size; ++n) {
    const double angle =
        -2 * std::numbers::pi * static_cast<double>(k * n % size) / static_cast<double>(size);
    sum += static_cast<double>(rows.data()[n * lanes + lane]) * std::polar(1.0, angle);
  }
  return sum;
}

TEST(FrameLoops, SpectraAreTheSumsOfTheDefinition) {
  for (const FrameLoops* loops : all_frame_loops()) {
    const int64_t lanes = loops->lanes;
    for (const int64_t size : kSizes) {
      const FftTables tables = make_fft_tables(size);
      const LaneBuffer samples = random_rows(size, lanes, 7);
      LaneBuffer rows = samples;
      LaneBuffer spectrum(2 * tables.num_bins() * lanes), powers(tables.num_bins() * lanes);
      loops->transform(rows.data(), tables);
      loops->untangle(rows.data(), tables, spectrum.data());
      loops->powers(rows.data(), tables, powers.data());
      for (const int64_t lane : {int64_t{0}, lanes - 1}) {
        for (int64_t k = 0; k < tables.num_bins(); ++k) {
          const auto wanted = bin_of(samples, size, lanes, lane, k);
          EXPECT_NEAR(spectrum.data()[2 * k * lanes + lane], wanted.real(), 1e-4)
              << loops->name << ", " << size << ", " << k;
          EXPECT_NEAR(spectrum.data()[(2 * k + 1) * lanes + lane], wanted.imag(), 1e-4)
              << loops->name << ", " << size << ", " << k;
          EXPECT_NEAR(powers.data()[k * lanes + lane], std::norm(wanted),
                      1e-4 * std::max(1.0, std::norm(wanted)));
        }
      }
    }
  }
}

TEST(FrameLoops, SamplesComeBackFromTheirSpectrum) {
  for (const FrameLoops* loops : all_frame_loops()) {
    const int64_t lanes = loops->lanes;
    for (const int64_t size : kSizes) {
      const FftTables tables = make_fft_tables(size);
      const LaneBuffer samples = random_rows(size, lanes, 8);
      LaneBuffer rows = samples, spectrum(2 * tables.num_bins() * lanes), back(size * lanes);
      loops->transform(rows.data(), tables);
      loops->untangle(rows.data(), tables, spectrum.data());
      loops->tangle(spectrum.data(), tables, rows.data());
      loops->transform(rows.data(), tables);
      loops->arrange(rows.data(), tables, back.data());
      for (int64_t i = 0; i < size * lanes; ++i) {
        ASSERT_NEAR(back.data()[i], samples.data()[i], 1e-5) << loops->name << ", " << size;
      }
    }
  }
}

TEST(FrameLoops, OnlyPowersOfTwoHaveTables) {
  EXPECT_TRUE(has_fft_tables(2));
  EXPECT_TRUE(has_fft_tables(4096));
  for (const int64_t size : {-4, 0, 1, 6, 400}) {
    EXPECT_FALSE(has_fft_tables(size));
    EXPECT_THROW(make_fft_tables(size), std::invalid_argument);
  }
}

/// `count` numbers in the first rows, in all lanes.
LaneBuffer all_lanes(const std::vector<float>& numbers, int64_t lanes) {
  LaneBuffer buffer(static_cast<int64_t>(numbers.size()) * lanes);
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      buffer.data()[static_cast<int64_t>(i) * lanes + lane] = numbers[i];
    }
  }
  return buffer;
}

std::vector<float> sizes_of_all_kinds() {
  std::vector<float> numbers{1, 2, 0.5F, 0.70710678F, 1.4142135F, 1e-30F, 3e37F};
  RandomStream random(4);
  for (int i = 0; i < 2000; ++i) {
    numbers.push_back(static_cast<float>(std::exp(160 * random.uniform() - 80)));
  }
  for (float near = 0.9F; near < 1.1F; near += 0.0007F) numbers.push_back(near);
  return numbers;
}

TEST(FrameLoops, LogarithmsAreThoseOfTheLibrary) {
  const auto numbers = sizes_of_all_kinds();
  const auto count = static_cast<int64_t>(numbers.size());
  for (const FrameLoops* loops : all_frame_loops()) {
    LaneBuffer rows = all_lanes(numbers, loops->lanes);
    loops->logarithms(rows.data(), count, 1e-20F, /*adds=*/false, 2);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double wanted = 2 * std::log(std::max(static_cast<double>(numbers[i]), 1e-20));
      EXPECT_NEAR(rows.data()[static_cast<int64_t>(i) * loops->lanes + 1], wanted,
                  4e-7 * std::max(1.0, std::abs(wanted)))
          << loops->name << ", " << numbers[i];
    }
    LaneBuffer sums = all_lanes({0, 0.25F}, loops->lanes);
    loops->logarithms(sums.data(), 2, 0.5F, /*adds=*/true, 1);
    EXPECT_NEAR(sums.data()[0], std::log(0.5), 1e-6);
    EXPECT_NEAR(sums.data()[loops->lanes], std::log(0.75), 1e-6);
    LaneBuffer odd = all_lanes({0, -1, 1e-45F}, loops->lanes);
    loops->logarithms(odd.data(), 3, 1e-45F, /*adds=*/false, 1);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(odd.data()[i * loops->lanes], std::log(std::numeric_limits<float>::min()), 1e-4);
    }
  }
}

TEST(FrameLoops, RootsAreThoseOfTheLibrary) {
  auto numbers = sizes_of_all_kinds();
  numbers.push_back(0);
  const auto count = static_cast<int64_t>(numbers.size());
  for (const FrameLoops* loops : all_frame_loops()) {
    LaneBuffer rows = all_lanes(numbers, loops->lanes);
    loops->roots(rows.data(), count);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double wanted = std::sqrt(static_cast<double>(numbers[i]));
      EXPECT_NEAR(rows.data()[static_cast<int64_t>(i) * loops->lanes], wanted, 5e-7 * wanted)
          << loops->name << ", " << numbers[i];
    }
  }
}

TEST(FrameLoops, RowsAreSamplesOfAllFrames) {
  std::vector<float> sound;
  for (int i = 0; i < 100; ++i) sound.push_back(static_cast<float>(i));
  for (const FrameLoops* loops : all_frame_loops()) {
    const int64_t lanes = loops->lanes;
    std::vector<const float*> starts;
    for (int64_t lane = 0; lane < lanes; ++lane) starts.push_back(sound.data() + 3 * lane);
    LaneBuffer rows(10 * lanes);
    loops->gather(starts.data(), 10, rows.data());
    for (int64_t i = 0; i < 10; ++i) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        EXPECT_EQ(rows.data()[i * lanes + lane], static_cast<float>(3 * lane + i)) << loops->name;
      }
    }
  }
}

TEST(FrameLoops, NoiseIsNormalAndAFunctionOfItsPlace) {
  for (const FrameLoops* loops : all_frame_loops()) {
    constexpr int64_t kCount = 100'000;
    std::vector<float> noise(kCount);
    loops->noise(5, kCount, 1, noise.data());
    double sum = 0, squares = 0, fourths = 0, neighbours = 0;
    int64_t far = 0;
    for (size_t i = 0; i < noise.size(); ++i) {
      const double value = noise[i];
      sum += value;
      squares += value * value;
      fourths += value * value * value * value;
      if (i > 0) neighbours += value * noise[i - 1];
      far += std::abs(value) > 1.959964 ? 1 : 0;
    }
    EXPECT_NEAR(sum / kCount, 0, 0.015) << loops->name;
    EXPECT_NEAR(squares / kCount, 1, 0.02) << loops->name;
    EXPECT_NEAR(fourths / kCount, 3, 0.15) << loops->name;
    EXPECT_NEAR(neighbours / kCount, 0, 0.015) << loops->name;
    EXPECT_NEAR(static_cast<double>(far) / kCount, 0.05, 0.003) << loops->name;

    std::vector<float> some(77, 2);
    loops->noise(5, 77, 3, some.data());
    for (size_t i = 0; i < some.size(); ++i) EXPECT_NEAR(some[i], 2 + 3 * noise[i], 1e-5);
    std::vector<float> other(77);
    loops->noise(6, 77, 1, other.data());
    EXPECT_NE(other[0], noise[0]) << loops->name;
  }
}

TEST(FrameLoops, NoiseIsThatOfBoxAndMuller) {
  for (const FrameLoops* loops : all_frame_loops()) {
    std::vector<float> noise(1000);
    loops->noise(9, 1000, 1, noise.data());
    for (size_t i = 0; i < noise.size(); i += 2) {
      const auto block = Philox::at(9, 0, i / 4);
      const double u = static_cast<double>((block[i % 4] >> 8) + 1) * 0x1p-24;
      const double v = static_cast<double>(block[i % 4 + 1] >> 8) * 0x1p-24;
      const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
      EXPECT_NEAR(noise[i], radius * std::cos(angle), 3e-6) << loops->name << ", " << i;
      EXPECT_NEAR(noise[i + 1], radius * std::sin(angle), 3e-6) << loops->name << ", " << i;
    }
  }
}

TEST(FrameLoops, ATurnKeepsMagnitudesAndTakesDirections) {
  for (const FrameLoops* loops : all_frame_loops()) {
    const LaneBuffer now = all_lanes({3, 4, 0, 0}, loops->lanes);
    const LaneBuffer before = all_lanes({2, 4, 0, 0}, loops->lanes);
    const LaneBuffer magnitudes = all_lanes({10, 7}, loops->lanes);
    LaneBuffer turned(4 * loops->lanes);
    loops->turn(now.data(), before.data(), 0.5F, magnitudes.data(), 2, turned.data());
    // (3, 4) - (1, 2) = (2, 2); a number without a direction becomes 0.
    EXPECT_NEAR(turned.data()[0], std::sqrt(50.0), 1e-5) << loops->name;
    EXPECT_NEAR(turned.data()[loops->lanes], std::sqrt(50.0), 1e-5) << loops->name;
    EXPECT_EQ(turned.data()[2 * loops->lanes], 0) << loops->name;
  }
}

}  // namespace
}  // namespace stretto::audio
