#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace stretto {

/// What `work` returns, worked out in a child process that is killed after `limit`: for work of
/// libraries that cannot be interrupted.
///
/// @return nothing when the child did not end in time, threw, or was killed
/// Forks: only for a process with one thread, and `work` must not use this process's open streams.
/// Throws Error(kIo) when there can be no child.
std::optional<std::string> run_in_child(std::chrono::milliseconds limit,
                                        const std::function<std::string()>& work);

}  // namespace stretto
