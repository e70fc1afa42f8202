#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace stretto::testing {

/// Lines of a tiny grammar, in which an animal tells what it does.
inline std::string animal_lines(int64_t count, uint64_t seed) {
  const std::vector<std::string> names{"dog", "cat", "cow", "hen"},
      sounds{"barks", "purrs", "moos", "clucks"}, places{"here", "there", "outside", "at home"};
  RandomStream random(seed);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const size_t kind = random.below(4);
    text += "the " + names[kind] + " " + sounds[kind] + " " + places[random.below(4)] + " .\n";
  }
  return text;
}

}  // namespace stretto::testing
