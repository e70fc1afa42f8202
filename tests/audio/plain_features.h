#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "audio/features.h"

/// Features by the formulas of features.h, slowly and in double.
namespace stretto::audio::test {

using Rows = std::vector<std::vector<double>>;

inline double sample_at(const std::vector<double>& sound, int64_t at, Padding padding) {
  const auto size = static_cast<int64_t>(sound.size());
  while (at < 0 || at >= size) {
    if (padding == Padding::kZeros) return 0;
    if (padding == Padding::kReflect && size == 1) return sound[0];
    const int64_t twice = padding == Padding::kSymmetric ? 1 : 0;
    at = at < 0 ? -at - twice : 2 * (size - 1) - at + twice;
  }
  return sound[static_cast<size_t>(at)];
}

inline double plain_window(const FeatureOptions& o, int64_t n) {
  const bool kaldi = o.dialect == Dialect::kKaldi;
  const double a = 2 * std::numbers::pi * static_cast<double>(n) /
                   static_cast<double>(kaldi ? o.frame_samples - 1 : o.frame_samples);
  const double hann = 0.5 - 0.5 * std::cos(a);
  return o.window == Window::kPovey     ? std::pow(hann, 0.85)
         : o.window == Window::kHann    ? hann
         : o.window == Window::kHamming ? 0.54 - 0.46 * std::cos(a)
                                        : 1;
}

/// A frame before its window: its place in the sound, then Kaldi's work on it.
inline std::vector<double> plain_frame(const std::vector<double>& sound, const FeatureOptions& o,
                                       int64_t f, double& energy) {
  const bool kaldi = o.dialect == Dialect::kKaldi;
  int64_t begin = f * o.hop_samples;
  if (kaldi && o.covers_ends) begin += o.hop_samples / 2 - o.frame_samples / 2;
  if (!kaldi && o.covers_ends) begin -= o.fft_size / 2;
  if (!kaldi) begin += (o.fft_size - o.frame_samples) / 2;
  std::vector<double> frame;
  double sum = 0;
  for (int64_t i = 0; i < o.frame_samples; ++i) {
    frame.push_back(sample_at(sound, begin + i, o.padding));
    sum += frame.back();
  }
  if (!kaldi) return frame;
  energy = 0;
  for (double& sample : frame) {
    if (o.removes_mean) sample -= sum / static_cast<double>(frame.size());
    energy += sample * sample;
  }
  std::vector<double> emphasised;
  for (size_t i = 0; i < frame.size(); ++i) {
    emphasised.push_back(frame[i] - o.preemphasis * frame[i == 0 ? 0 : i - 1]);
  }
  return emphasised;
}

inline std::vector<double> plain_powers(const std::vector<double>& frame, const FeatureOptions& o) {
  const int64_t before = o.dialect == Dialect::kKaldi ? 0 : (o.fft_size - o.frame_samples) / 2;
  std::vector<double> powers;
  for (int64_t k = 0; k <= o.fft_size / 2; ++k) {
    std::complex<double> sum = 0;
    for (int64_t i = 0; i < o.frame_samples; ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(k * (i + before)) /
                           static_cast<double>(o.fft_size);
      sum += frame[static_cast<size_t>(i)] * plain_window(o, i) * std::polar(1.0, angle);
    }
    powers.push_back(std::pow(std::abs(sum), o.power));
  }
  return powers;
}

inline std::vector<double> plain_mels(const std::vector<double>& powers, const FeatureOptions& o) {
  const MelOptions& m = *o.mel;
  const bool in_mel = m.triangles == MelTriangles::kMel;
  const double high = m.high_hz > 0 ? m.high_hz : static_cast<double>(o.rate) / 2 + m.high_hz;
  const double low_mel = hz_to_mel(m.low_hz, m.scale), high_mel = hz_to_mel(high, m.scale);
  const auto edge = [&](int64_t i) {
    return low_mel +
           (high_mel - low_mel) * static_cast<double>(i) / static_cast<double>(m.num_mels + 1);
  };
  std::vector<double> mels;
  for (int64_t i = 0; i < m.num_mels; ++i) {
    double sum = 0;
    for (size_t bin = 0; bin < powers.size() - (in_mel ? 1 : 0); ++bin) {
      const double hz =
          static_cast<double>(bin) * static_cast<double>(o.rate) / static_cast<double>(o.fft_size);
      const double at = in_mel ? hz_to_mel(hz, m.scale) : hz;
      const auto on_axis = [&](double mel) { return in_mel ? mel : mel_to_hz(mel, m.scale); };
      const double left = on_axis(edge(i)), centre = on_axis(edge(i + 1)),
                   right = on_axis(edge(i + 2));
      const double weight =
          std::max(0.0, std::min((at - left) / (centre - left), (right - at) / (right - centre)));
      sum += weight * powers[bin];
    }
    const double width = mel_to_hz(edge(i + 2), m.scale) - mel_to_hz(edge(i), m.scale);
    mels.push_back(m.has_unit_area ? sum * 2 / width : sum);
  }
  return mels;
}

inline void plain_compression(Rows& rows, const FeatureOptions& o) {
  double top = -1e300;
  for (auto& row : rows) {
    for (double& x : row) {
      if (o.compression == Compression::kLogOfMax) x = std::log(std::max(x, o.floor));
      if (o.compression == Compression::kLogOfSum) x = std::log(x + o.floor);
      if (o.compression == Compression::kDecibel) x = 10 * std::log10(std::max(x, o.floor));
      top = std::max(top, x);
    }
  }
  if (o.compression != Compression::kDecibel) return;
  for (auto& row : rows) {
    for (double& x : row) x = std::max(x, top - o.decibel_range);
  }
}

inline std::vector<double> plain_coefficients(const std::vector<double>& mels,
                                              const FeatureOptions& o) {
  std::vector<double> row;
  const auto count = static_cast<double>(mels.size());
  for (int64_t k = 0; k < o.num_coefficients; ++k) {
    double sum = 0;
    for (size_t m = 0; m < mels.size(); ++m) {
      sum += mels[m] * std::cos(std::numbers::pi * static_cast<double>(k) *
                                (static_cast<double>(m) + 0.5) / count);
    }
    const double place = static_cast<double>(o.dialect == Dialect::kKaldi ? k : k + 1);
    const double lifter =
        o.lifter == 0 ? 1 : 1 + o.lifter / 2 * std::sin(std::numbers::pi * place / o.lifter);
    row.push_back(sum * lifter * std::sqrt((k == 0 ? 1 : 2) / count));
  }
  return row;
}

inline Rows plain_features(const std::vector<float>& samples, const FeatureOptions& o) {
  const bool kaldi = o.dialect == Dialect::kKaldi;
  std::vector<double> sound;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double before = i == 0 || kaldi ? 0 : o.preemphasis * static_cast<double>(samples[i - 1]);
    sound.push_back(o.scale * (static_cast<double>(samples[i]) - before));
  }
  const auto n = static_cast<int64_t>(sound.size());
  const int64_t whole = kaldi ? o.frame_samples : o.fft_size;
  const int64_t inside = n < whole ? 0 : 1 + (n - whole) / o.hop_samples;
  const int64_t covering = kaldi ? (n + o.hop_samples / 2) / o.hop_samples : 1 + n / o.hop_samples;
  const int64_t frames = o.covers_ends ? covering : inside;
  Rows rows;
  std::vector<double> energies(static_cast<size_t>(frames));
  for (int64_t f = 0; f < frames; ++f) {
    const auto powers = plain_powers(plain_frame(sound, o, f, energies[static_cast<size_t>(f)]), o);
    rows.push_back(o.mel ? plain_mels(powers, o) : powers);
  }
  plain_compression(rows, o);
  for (size_t f = 0; o.num_coefficients > 0 && f < rows.size(); ++f) {
    rows[f] = plain_coefficients(rows[f], o);
    if (o.has_energy) rows[f][0] = std::log(std::max(energies[f], o.floor));
  }
  return rows;
}

}  // namespace stretto::audio::test
