#include "experiment/rule_check.h"

#include "base/text.h"
#include "data/separator.h"

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

void check_separator(RuleCheck& c, const std::string& separator) {
  if (separator.empty() || data::is_separator(separator)) return;
  c.wrong({"data.separator"}, "`" + printable(separator, 20) + "` does not stand between fields",
          "give one ASCII character: \";\", \"|\", \",\" or \"\\t\"");
}

}  // namespace stretto::experiment
