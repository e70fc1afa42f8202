#include "tasks/registry.h"

#include "base/error.h"
#include "base/text.h"

namespace stretto::tasks {

const Family& family_of(const experiment::Experiment& experiment) {
  std::vector<std::string> names;
  for (const auto& [name, family] : families()) {
    if (experiment.task.name() == name) return family();
    names.emplace_back(name);
  }
  throw Error(ExitCode::kUsage, "task.name: no task `" + printable(experiment.task.name()) + "`",
              "there are: " + join(names, ", "));
}

}  // namespace stretto::tasks
