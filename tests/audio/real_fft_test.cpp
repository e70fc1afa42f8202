#include "audio/real_fft.h"

#include <gtest/gtest.h>

#include <complex>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "base/random.h"

namespace stretto::audio {
namespace {

TEST(RealFft, IsTheSumOfItsDefinition) {
  for (const int64_t size : {2, 8, 50, 400, 512}) {
    RandomStream random(7);
    std::vector<float> in;
    for (int64_t i = 0; i < size; ++i) in.push_back(static_cast<float>(random.uniform() - 0.5));
    RealFft fft(size);
    const auto out = fft(in);
    ASSERT_EQ(static_cast<int64_t>(out.size()), size / 2 + 1);
    for (size_t k = 0; k < out.size(); ++k) {
      std::complex<double> sum = 0;
      for (size_t n = 0; n < in.size(); ++n) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(k * n) / static_cast<double>(size);
        sum += static_cast<double>(in[n]) * std::polar(1.0, angle);
      }
      EXPECT_NEAR(out[k].real(), sum.real(), 1e-4) << size;
      EXPECT_NEAR(out[k].imag(), sum.imag(), 1e-4) << size;
    }
  }
}

TEST(RealFft, SamplesComeBackFromTheirSpectrum) {
  for (const int64_t size : {2, 50, 400}) {
    RandomStream random(9);
    std::vector<float> in;
    for (int64_t i = 0; i < size; ++i) in.push_back(static_cast<float>(random.uniform() - 0.5));
    RealFft fft(size);
    const auto bins = fft(in);
    const auto back = fft.inverse(bins);
    ASSERT_EQ(back.size(), in.size());
    for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(back[i], in[i], 1e-6) << size;
    EXPECT_THROW(fft.inverse(bins.first(1)), std::invalid_argument);
  }
}

TEST(RealFft, TakesFramesOfItsOwnSizeAlone) {
  EXPECT_THROW(RealFft(5), std::invalid_argument);
  EXPECT_THROW(RealFft(0), std::invalid_argument);
  RealFft fft(8);
  EXPECT_THROW(fft(std::vector<float>(7)), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::audio
