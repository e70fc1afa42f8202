#include "families/text/text_distillation.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stretto::experiment {

// A string of JSON is one of TOML.
std::vector<std::string> word_level_keys(const std::string& teacher_run,
                                         const std::string& checkpoint) {
  std::vector<std::string> keys{"loss.teacher=" + nlohmann::json(teacher_run).dump()};
  if (!checkpoint.empty()) {
    keys.push_back("loss.teacher_checkpoint=" + nlohmann::json(checkpoint).dump());
  }
  return keys;
}

FamilyDistillation text_distillation() {
  return {.word_level_keys = &word_level_keys};
}

}  // namespace stretto::experiment
