#include "audio/lane_frames.h"

#include <algorithm>
#include <complex>
#include <cstddef>

#include "audio/windows.h"

namespace stretto::audio {
namespace {

/// The sample that stands at a place outside of n samples; -1: a zero.
int64_t padded_place(int64_t at, int64_t n, Padding padding) {
  if (at >= 0 && at < n) return at;
  if (padding == Padding::kZeros) return -1;
  const int64_t edge = padding == Padding::kReflect ? 1 : 0;
  const int64_t period = 2 * (n - edge);
  if (period == 0) return 0;
  const int64_t phase = (at % period + period) % period;
  return phase < n ? phase : period - phase - (1 - edge);
}

/// The place of a frame's window behind frame * hop.
int64_t shift_of(const FeatureOptions& options, int64_t margin) {
  if (!options.covers_ends) return margin;
  return options.dialect == Dialect::kKaldi ? options.hop_samples / 2 - options.frame_samples / 2
                                            : margin - options.fft_size / 2;
}

}  // namespace

LaneFrames::LaneFrames(const FeatureOptions& options, const FrameLoops& loops)
    : loops_(&loops),
      fft_size_(options.fft_size),
      hop_(options.hop_samples),
      margin_(options.dialect == Dialect::kKaldi ? 0
                                                 : (options.fft_size - options.frame_samples) / 2),
      shift_(shift_of(options, margin_)),
      padding_(options.padding),
      is_kaldi_(options.dialect == Dialect::kKaldi),
      window_(window_of(options.window,
                        is_kaldi_ ? WindowSymmetry::kSymmetric : WindowSymmetry::kPeriodic,
                        options.frame_samples)) {
  finish_ = {.removes_mean = options.removes_mean,
             .preemphasis = static_cast<float>(options.preemphasis),
             .window = nullptr,
             .count = options.frame_samples};
  if (has_fft_tables(fft_size_)) tables_ = make_fft_tables(fft_size_);
}

LaneFrames::Workspace LaneFrames::workspace() const {
  const auto lanes_there = static_cast<size_t>(lanes());
  Workspace work;
  work.rows = LaneBuffer(fft_size_ * lanes());
  if (!tables_) work.spectrum = LaneBuffer(num_bins() * 2 * lanes());
  work.edges.resize(lanes_there);
  work.starts.resize(lanes_there);
  if (!tables_) {
    work.fft = std::make_unique<RealFft>(fft_size_);
    work.one_frame.resize(static_cast<size_t>(fft_size_));
  }
  return work;
}

/// The samples of a frame: in the sound, or copied to `edge` where it reaches beyond.
const float* LaneFrames::start_of(const KnownSound& sound, int64_t frame,
                                  std::vector<float>& edge) const {
  const int64_t begin = begin_of(frame), width = frame_samples();
  const float* samples = sound.samples.data();
  if (begin >= 0 && begin + width <= sound.size) return samples + (begin - sound.first);
  edge.resize(window_.size());
  for (int64_t i = 0; i < width; ++i) {
    const int64_t place = padded_place(begin + i, sound.size, padding_);
    edge[static_cast<size_t>(i)] = place < 0 ? 0.0F : samples[place - sound.first];
  }
  return edge.data();
}

void LaneFrames::take(const KnownSound& sound, int64_t first, int64_t count, Workspace& work,
                      float* energies) const {
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const auto at = static_cast<size_t>(lane);
    work.starts[at] =
        lane < count ? start_of(sound, first + lane, work.edges[at]) : work.starts[at - 1];
  }
  float* rows = work.rows.data();
  const int64_t width = frame_samples();
  float* own = rows + margin_ * lanes();
  std::fill_n(rows, margin_ * lanes(), 0.0F);
  std::fill(own + width * lanes(), rows + fft_size_ * lanes(), 0.0F);
  loops_->gather(work.starts.data(), width, own);
  if (!is_kaldi_) {
    loops_->scale(own, window_.data(), width);
    return;
  }
  FrameFinish finish = finish_;
  finish.window = window_.data();
  loops_->finish(own, finish, energies);
}

void LaneFrames::powers(Workspace& work, float* bins) const {
  if (tables_) {
    loops_->transform(work.rows.data(), *tables_);
    loops_->powers(work.rows.data(), *tables_, bins);
    return;
  }
  float* spectrum = work.spectrum.data();
  plain_spectra(work, spectrum);
  for (int64_t bin = 0; bin < num_bins(); ++bin) {
    for (int64_t lane = 0; lane < lanes(); ++lane) {
      const float re = spectrum[2 * bin * lanes() + lane];
      const float im = spectrum[(2 * bin + 1) * lanes() + lane];
      bins[bin * lanes() + lane] = re * re + im * im;
    }
  }
}

void LaneFrames::spectra(Workspace& work, float* spectrum) const {
  if (!tables_) return plain_spectra(work, spectrum);
  loops_->transform(work.rows.data(), *tables_);
  loops_->untangle(work.rows.data(), *tables_, spectrum);
}

void LaneFrames::samples(const float* spectrum, Workspace& work) const {
  if (!tables_) return plain_samples(spectrum, work);
  LaneBuffer& other = work.spectrum;
  if (other.data() == nullptr) other = LaneBuffer(num_bins() * 2 * lanes());
  loops_->tangle(spectrum, *tables_, other.data());
  loops_->transform(other.data(), *tables_);
  loops_->arrange(other.data(), *tables_, work.rows.data());
}

/// One frame after the other, of sizes without tables.
void LaneFrames::plain_spectra(Workspace& work, float* spectrum) const {
  const float* rows = work.rows.data();
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    for (int64_t i = 0; i < fft_size_; ++i) {
      work.one_frame[static_cast<size_t>(i)] = rows[i * lanes() + lane];
    }
    const auto bins = (*work.fft)(work.one_frame);
    for (int64_t bin = 0; bin < num_bins(); ++bin) {
      const std::complex<float> value = bins[static_cast<size_t>(bin)];
      spectrum[2 * bin * lanes() + lane] = value.real();
      spectrum[(2 * bin + 1) * lanes() + lane] = value.imag();
    }
  }
}

void LaneFrames::plain_samples(const float* spectrum, Workspace& work) const {
  float* rows = work.rows.data();
  std::vector<std::complex<float>> bins(static_cast<size_t>(num_bins()));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    for (int64_t bin = 0; bin < num_bins(); ++bin) {
      bins[static_cast<size_t>(bin)] = {spectrum[2 * bin * lanes() + lane],
                                        spectrum[(2 * bin + 1) * lanes() + lane]};
    }
    const auto frame = work.fft->inverse(bins);
    for (int64_t i = 0; i < fft_size_; ++i) {
      rows[i * lanes() + lane] = frame[static_cast<size_t>(i)];
    }
  }
}

}  // namespace stretto::audio
