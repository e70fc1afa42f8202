#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "optim/arena.h"

namespace stretto::compress {

/// The tensors of an arena, as numbers of its slots, that `patterns` name but `except` does not.
/// Without patterns all of two dimensions or more.
/// @param section  "compress.prune", whose keys `tensors` and `except` they are
/// Throws Error(kUsage) for a pattern that matches no parameter, frozen ones included, and when no
/// tensor is left.
std::vector<size_t> chosen_slots(const optim::Arena& arena,
                                 const std::vector<std::string>& patterns,
                                 const std::vector<std::string>& except,
                                 const std::string& section);

}  // namespace stretto::compress
