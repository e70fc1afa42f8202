#pragma once

#include <string>
#include <vector>

namespace stretto::train::test {

/// Every dist.strategy: where gradients are summed and who owns the optimizer's state.
inline const std::vector<std::string> kStrategies{"all_reduce", "sharded", "parameter_server"};

}  // namespace stretto::train::test
