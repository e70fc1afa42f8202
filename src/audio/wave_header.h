#pragma once

#include <cstdint>
#include <optional>

#include "audio/audio_bytes.h"

namespace stretto::audio {

/// The `data` chunk of a WAV file, as its header describes it.
struct WaveData {
  uint64_t said_bytes = 0;   ///< size of the samples that the header states
  uint64_t bytes_there = 0;  ///< bytes from there to the end of the file
  /// The writer did not know the length: a stream, or a program that was killed.
  bool is_open_ended = false;

  bool is_cut_off() const { return !is_open_ended && said_bytes > bytes_there; }
};

/// Finds the samples of a RIFF, RIFX or RF64 file. libsndfile reads a truncated file as a shorter
/// one without a warning; is_cut_off() detects it.
/// @return nothing for another kind of file, and for one without samples
std::optional<WaveData> find_wave_data(const AudioBytes& bytes);

}  // namespace stretto::audio
