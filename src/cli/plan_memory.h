#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/preflight_found.h"

namespace stretto::cli {

/// What `check` asks of the memory that training needs.
struct MemoryQuestion {
  std::string config;
  std::vector<std::string> overrides;
  int64_t processes = 1;    ///< that train together on this machine; each has a GPU of its own
  double memory_bytes = 0;  ///< of the machine
};

/// Why a configuration cannot be trained in the memory of this machine, or of its first GPU, and
/// which is the largest that can; nothing where it may. It goes by the least that training can
/// take: activations, which are known within a factor, count a quarter. Of a model that is plainly
/// small enough nothing is asked of the engine; nor of one whose sizes nobody can change, and
/// without an engine.
std::optional<experiment::Stop> memory_stop(const MemoryQuestion& question,
                                            const experiment::Experiment& e);

}  // namespace stretto::cli
