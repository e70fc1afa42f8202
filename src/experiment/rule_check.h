#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// The experiment under test, and where rules note what is wrong with it.
class RuleCheck {
 public:
  /// @param problems  of reading the configuration; a rule that reads a key with one of them is
  ///                  left out
  RuleCheck(const Experiment& options, const config::Origins& origins,
            std::vector<config::Problem>& problems);

  /// @param keys  what the rule reads; the problem is reported at the first one
  /// @param hint  what to do
  void wrong(const std::vector<std::string>& keys, const std::string& what,
             const std::string& hint);

  const Experiment& e;
  const config::Origins& origins;

 private:
  std::vector<config::Problem>& problems_;
  const std::vector<config::Problem> before_;
};

/// `data.separator`, of every family that reads columns: empty, or one character that lines can be
/// cut at.
void check_separator(RuleCheck& c, const std::string& separator);

}  // namespace stretto::experiment
