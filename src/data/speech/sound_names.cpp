#include "data/speech/sound_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace stretto::data {

bool is_sound_name(const std::string& name) {
  constexpr std::array<std::string_view, 8> kEndings{".wav", ".flac", ".mp3", ".ogg",
                                                     ".oga", ".opus", ".aif", ".aiff"};
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || name.size() - dot > 5) return false;
  std::string ending = name.substr(dot);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::string without_sound_ending(const std::string& name) {
  return is_sound_name(name) ? name.substr(0, name.rfind('.')) : name;
}

}  // namespace stretto::data
