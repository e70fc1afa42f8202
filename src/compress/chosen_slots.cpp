#include "compress/chosen_slots.h"

#include "base/error.h"
#include "base/name_pattern.h"
#include "optim/group_options.h"
#include "optim/groups.h"

namespace stretto::compress {
namespace {

void require_matches(const std::string& key, const std::vector<std::string>& patterns,
                     const std::vector<optim::TensorName>& names) {
  for (const auto& pattern : patterns) {
    if (const auto problem = optim::matches_nothing(pattern, names)) {
      throw Error(ExitCode::kUsage, key + ": " + problem->what, problem->hint);
    }
  }
}

}  // namespace

std::vector<size_t> chosen_slots(const optim::Arena& arena,
                                 const std::vector<std::string>& patterns,
                                 const std::vector<std::string>& except,
                                 const std::string& section) {
  const auto names = optim::names_of(arena);
  require_matches(section + ".tensors", patterns, names);
  require_matches(section + ".except", except, names);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < arena.slots().size(); ++i) {
    const auto& slot = arena.slots()[i];
    const bool wanted =
        patterns.empty() ? slot.shape.size() >= 2 : matches_any(patterns, slot.name);
    if (wanted && !matches_any(except, slot.name)) chosen.push_back(i);
  }
  if (!chosen.empty()) return chosen;
  throw Error(ExitCode::kUsage,
              section + ": no tensor that trains is named, or all of them are left out",
              "name others in " + section + ".tensors, or fewer in " + section +
                  ".except; frozen tensors stay as they are");
}

}  // namespace stretto::compress
