#include "audio/mel_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace stretto::audio {
namespace {

TEST(MelFilters, ScalesHaveTheirPublishedValues) {
  // The examples in librosa's documentation of hz_to_mel() and mel_to_hz().
  EXPECT_NEAR(hz_to_mel(60, MelScale::kSlaney), 0.9, 1e-9);
  EXPECT_NEAR(hz_to_mel(440, MelScale::kSlaney), 6.6, 1e-9);
  EXPECT_NEAR(mel_to_hz(5, MelScale::kSlaney), 333.3333, 1e-3);
  EXPECT_NEAR(hz_to_mel(6400, MelScale::kSlaney), 42, 1e-9);
  EXPECT_NEAR(mel_to_hz(42, MelScale::kSlaney), 6400, 1e-6);
  EXPECT_NEAR(hz_to_mel(1000, MelScale::kHtk), 999.9855, 1e-3);
  EXPECT_NEAR(mel_to_hz(hz_to_mel(3210, MelScale::kHtk), MelScale::kHtk), 3210, 1e-6);
}

/// Filter m as weights of all bins, by letting one bin at a time through.
std::vector<float> weights_of(const MelFilters& filters, int64_t m, int64_t num_bins) {
  std::vector<float> weights, mels(static_cast<size_t>(filters.size()));
  for (int64_t bin = 0; bin < num_bins; ++bin) {
    std::vector<float> bins(static_cast<size_t>(num_bins));
    bins[static_cast<size_t>(bin)] = 1;
    filters.apply(bins, mels);
    weights.push_back(mels[static_cast<size_t>(m)]);
  }
  return weights;
}

TEST(MelFilters, TrianglesOfHertzAreAsTheFormulaHasThem) {
  constexpr int64_t kRate = 16000, kFft = 512, kMels = 10;
  for (const bool has_unit_area : {true, false}) {
    const MelOptions options{.num_mels = kMels,
                             .low_hz = 100,
                             .high_hz = 7000,
                             .scale = MelScale::kHtk,
                             .has_unit_area = has_unit_area};
    const MelFilters filters(options, kRate, kFft);
    const double low = hz_to_mel(100, MelScale::kHtk), high = hz_to_mel(7000, MelScale::kHtk);
    const auto edge = [&](int64_t i) {
      return mel_to_hz(low + (high - low) * static_cast<double>(i) / (kMels + 1), MelScale::kHtk);
    };
    for (int64_t m = 0; m < kMels; ++m) {
      const auto weights = weights_of(filters, m, kFft / 2 + 1);
      for (int64_t bin = 0; bin <= kFft / 2; ++bin) {
        const double hz = static_cast<double>(bin * kRate) / kFft;
        const double rise = (hz - edge(m)) / (edge(m + 1) - edge(m));
        const double fall = (edge(m + 2) - hz) / (edge(m + 2) - edge(m + 1));
        const double height = has_unit_area ? 2 / (edge(m + 2) - edge(m)) : 1;
        EXPECT_NEAR(weights[static_cast<size_t>(bin)], height * std::max(0.0, std::min(rise, fall)),
                    1e-6);
      }
    }
  }
}

TEST(MelFilters, TrianglesOfUnitAreaLetFlatEnergyThroughAlike) {
  const MelFilters filters({.num_mels = 20, .low_hz = 300}, 16000, 2048);
  std::vector<float> mels(20);
  filters.apply(std::vector<float>(1025, 1), mels);
  for (const float mel : mels) EXPECT_NEAR(mel * 16000 / 2048, 1, 0.1);
}

TEST(MelFilters, KaldisTrianglesAreStraightInMel) {
  const MelOptions options{.num_mels = 23,
                           .low_hz = 20,
                           .scale = MelScale::kHtk,
                           .triangles = MelTriangles::kMel,
                           .has_unit_area = false};
  const MelFilters filters(options, 16000, 512);
  const double low = hz_to_mel(20, MelScale::kHtk);
  const double step = (hz_to_mel(8000, MelScale::kHtk) - low) / 24;
  const auto weights = weights_of(filters, 11, 257);
  for (size_t bin = 0; bin < weights.size(); ++bin) {
    const double mel = hz_to_mel(static_cast<double>(bin) * 16000 / 512, MelScale::kHtk);
    const double place = (mel - low) / step - 11;
    EXPECT_NEAR(weights[bin], std::max(0.0, std::min(place, 2 - place)), 1e-5) << bin;
  }
}

TEST(MelFilters, ANegativeEndIsBelowHalfOfTheRate) {
  const MelFilters below({.num_mels = 5, .high_hz = -4000}, 16000, 512);
  EXPECT_EQ(weights_of(below, 4, 257)[130], 0);
  EXPECT_GT(weights_of(below, 4, 257)[120], 0);
}

TEST(MelFilters, RefusesFrequenciesThatDoNotFit) {
  EXPECT_THROW(MelFilters({.high_hz = 9000}, 16000, 512), std::invalid_argument);
  EXPECT_THROW(MelFilters({.low_hz = 5000, .high_hz = 4000}, 16000, 512), std::invalid_argument);
  EXPECT_THROW(MelFilters({.num_mels = 0}, 16000, 512), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::audio
