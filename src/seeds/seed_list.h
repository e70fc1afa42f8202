#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::seeds {

/// `--seeds`: "5" means 1 to 5, "3,7,9" means these; a list of one is "3,".
/// Throws Error(kUsage) for anything else, a seed that stands twice, and more than 1,000 seeds.
std::vector<int64_t> parse_seeds(const std::string& text);

/// "1, 2, 3"
std::string seeds_text(const std::vector<int64_t>& seeds);

}  // namespace stretto::seeds
