#include "base/text.h"
#include "experiment/tensor_patterns.h"
#include "lint/rules.h"

namespace stretto::lint {
namespace rules {

// Without patterns no vector decays; with some, and without names, it is not known.
void decay_of_vectors(const Subject& s, Remarks& out) {
  const auto& o = s.e.optim;
  std::vector<optim::ParameterGroup> groups(o.groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    if (optim::read_group(o.groups[i], groups[i])) return;  // an error, which check_rules() tells
  }
  const auto& tensors = s.context.tensors;
  const auto settings = optim::settings_of(o, groups, tensors);
  const auto plan = experiment::training_plan(s.e);
  std::vector<bool> said(groups.size() + 1);  // of the groups, then of optim.no_decay
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_vector || settings[i].weight_decay == 0) continue;
    if (plan.freezes(tensors[i])) continue;
    size_t by = 0;
    while (by < groups.size() && !optim::matches(groups[by].pattern, tensors[i].name)) ++by;
    if (by < groups.size() && !groups[by].weight_decay) by = groups.size();
    if (said[by]) continue;
    said[by] = true;
    if (by < groups.size()) {
      out.push_back({"optim.groups",
                     "`" + printable(o.groups[by]) + "` brings weight decay to biases or norms (`" +
                         tensors[i].name + "`)",
                     "drop weight_decay from that group"});
      continue;
    }
    out.push_back({"optim.no_decay",
                   "weight decay acts on biases or norms (no pattern matches `" + tensors[i].name +
                       "`), which it pulls to a scale of zero",
                   "leave it empty: then no tensor of one dimension decays; or add \"*.bias\" and "
                   "\"*norm.*\""});
  }
}

}  // namespace rules
}  // namespace stretto::lint
