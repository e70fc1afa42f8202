#pragma once

#include <string>
#include <vector>

#include "models/option_conflicts.h"
#include "tests/add_a_model/bag_options.h"

namespace stretto::models {

/// What keeps a bag encoder from being built, said of the section that it stands in.
inline std::vector<OptionConflict> option_conflicts(const BagEncoderOptions& bag,
                                                    const std::string& section) {
  if (bag.window % 2 == 1) return {};
  const std::string odd = std::to_string(bag.window + 1);
  return {{{section + ".window"},
           "a window of " + std::to_string(bag.window) + " tokens has none in its middle",
           "use an odd number, for instance " + odd}};
}

}  // namespace stretto::models
