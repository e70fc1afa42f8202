#pragma once

#include <string>

namespace stretto::data {

/// Whether a name ends as one of a sound: .wav, .flac, .mp3, .ogg, .oga, .opus, .aif, .aiff. What
/// the file is, its bytes say.
bool is_sound_name(const std::string& name);

/// A name without the ending of a sound: "a/1" of "a/1.flac".
std::string without_sound_ending(const std::string& name);

}  // namespace stretto::data
