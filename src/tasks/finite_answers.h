#pragma once

#include <string>

namespace stretto::tasks {

/// Refuses an answer with values that are infinite or NaN, of weights that are finite
/// (runs/module_weights.h): some product was too large for its type, and what follows from it would
/// look like an answer. Throws Error(kNumeric).
///
/// @param place  of the line, "stdin:3"
/// @param what   that was computed of it, "the vector of this line"
/// @param run    folder of the model
[[noreturn]] void refuse_not_finite(const std::string& place, const std::string& what,
                                    const std::string& run);

}  // namespace stretto::tasks
