#pragma once

#include <chrono>
#include <functional>

#include "experiment/preflight.h"

namespace stretto::experiment {

/// Adds what `look` finds in a child process that is killed soon after `limit`: for work of
/// libraries that cannot be interrupted.
///
/// @param look  gets a Preflight without anything; what else it changes stays in the child
/// @return whether it came to its end; otherwise nothing is added
/// As run_in_child() (base/in_child.h).
bool look_in_child(std::chrono::milliseconds limit, const std::function<void(Preflight&)>& look,
                   Preflight& found);

}  // namespace stretto::experiment
