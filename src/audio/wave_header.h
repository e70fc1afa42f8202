#pragma once

#include <cstdint>
#include <optional>

#include "audio/audio_bytes.h"

namespace stretto::audio {

/// The `data` chunk of a WAV file, as its header describes it.
struct WaveData {
  uint64_t said_bytes = 0;   ///< of samples, by the header
  uint64_t bytes_there = 0;  ///< between the header and the end of the file
  /// The writer did not know the length: a stream, or a program that was killed.
  bool is_open_ended = false;

  bool is_cut_off() const { return !is_open_ended && said_bytes > bytes_there; }
};

/// Finds the samples of a RIFF, RIFX or RF64 file. libsndfile shortens a file that is cut off to
/// what is there, without a word; this tells of it.
/// @return nothing for another kind of file, and for one without samples
std::optional<WaveData> find_wave_data(const AudioBytes& bytes);

}  // namespace stretto::audio
