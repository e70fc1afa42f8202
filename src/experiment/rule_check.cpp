#include "experiment/rule_check.h"

namespace stretto::experiment {

RuleCheck::RuleCheck(const Experiment& options, const config::Origins& origins,
                     std::vector<config::Problem>& problems)
    : e(options), origins(origins), problems_(problems), before_(problems) {}

void RuleCheck::wrong(const std::vector<std::string>& keys, const std::string& what,
                      const std::string& hint) {
  for (const std::string& key : keys) {
    if (config::is_unreliable(before_, key)) return;
  }
  const std::string& blamed = keys.front();
  problems_.push_back({origins.of(blamed), what, hint, blamed, origins.order_of(blamed)});
}

}  // namespace stretto::experiment
