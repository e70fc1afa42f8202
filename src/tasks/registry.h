#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "tasks/family.h"

namespace stretto::tasks {

struct NamedFamily {
  const char* name;  ///< the value of `task.name`
  const Family& (*family)();
};

/// The families in the order of experiment::families(). src/families/engine_registry.cpp has the
/// list.
const std::vector<NamedFamily>& families();

/// Adds a family that this library does not have, as experiment::add_family() does.
void add_family(NamedFamily family);

/// The family that `task.name` names. Throws Error(kUsage) with the known names for another one.
const Family& family_of(const experiment::Experiment& experiment);

}  // namespace stretto::tasks
