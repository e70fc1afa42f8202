#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"
#include "experiment/rules.h"
#include "families/translation/translation_options.h"

/// An experiment, and what the rules say of it when it is changed.
namespace stretto::experiment::test {

using Edit = std::function<void(Experiment&)>;

/// An experiment that breaks no rule.
inline Experiment sound() {
  Experiment e;
  translation_of(e).data.train_src = {"/a.src"};
  translation_of(e).data.train_tgt = {"/a.tgt"};
  translation_of(e).data.valid_src = {"/v.src"};
  translation_of(e).data.valid_tgt = {"/v.tgt"};
  e.train.max_steps = 20000;
  return e;
}

inline std::vector<config::Problem> problems_of(const Experiment& e,
                                                const config::Origins& origins = {}) {
  std::vector<config::Problem> problems;
  check_rules(e, origins, problems);
  return problems;
}

/// The one problem that a change makes, as "place: what".
inline std::string problem_of(const Edit& change) {
  Experiment e = sound();
  change(e);
  const auto problems = problems_of(e);
  if (problems.size() != 1) return std::to_string(problems.size()) + " problems";
  EXPECT_FALSE(problems[0].hint.empty()) << "a problem without a remedy: " << problems[0].what;
  return problems[0].place + ": " + problems[0].what;
}

}  // namespace stretto::experiment::test
