#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/experiment_schema.h"
#include "experiment/rules.h"
#include "experiment/schedule_length.h"
#include "lint/lint.h"

/// A configuration that the linter says nothing about, and what it says with overrides. Header of
/// tests alone.
namespace stretto::lint::testing {

inline constexpr const char* kSound =
    "[data]\n"
    "train_src = [\"a\"]\ntrain_tgt = [\"b\"]\nvalid_src = [\"c\"]\nvalid_tgt = [\"d\"]\n"
    "[train]\nmax_steps = 9000\n";

/// The same with two decoders behind one encoder.
inline constexpr const char* kTwoHeads =
    "[[data.heads]]\nhead = \"de\"\n"
    "train_src = [\"a\"]\ntrain_tgt = [\"b\"]\nvalid_src = [\"c\"]\nvalid_tgt = [\"d\"]\n"
    "[[data.heads]]\nhead = \"fr\"\nrepeat = 0.5\n"
    "train_src = [\"a\"]\ntrain_tgt = [\"e\"]\nvalid_src = [\"c\"]\nvalid_tgt = [\"f\"]\n"
    "[[model.heads]]\nname = \"de\"\n[[model.heads]]\nname = \"fr\"\n"
    "[train]\nmax_steps = 9000\nupdate_freq = 2\n";

/// Of the Transformer of kSound, and enough of them.
inline const std::vector<optim::TensorName> kTensors{
    {"embedding.weight"},
    {"encoder.layers.5.ffn.up.weight"},
    {"decoder.layers.0.ffn.up.weight"},
    {"encoder.layers.5.ffn.up.bias", true},
    {"encoder.layers.5.self_residual.norm.weight", true},
    {"encoder.layers.5.self_residual.norm.bias", true},
    {"decoder.layers.0.ffn.up.bias", true},
    {"decoder.layers.0.cross_residual.norm.weight", true},
    {"decoder.layers.0.cross_residual.norm.bias", true},
};

/// Findings of kSound, or another file, with overrides; the rules must accept it.
inline std::vector<Finding> lint_of(const std::vector<std::string>& overrides,
                                    const LintContext& context = {}, const char* file = kSound) {
  experiment::Experiment options, fallback;
  std::vector<config::Problem> problems;
  const auto origins = config::load_text(file, "my.toml", "/nowhere", overrides,
                                         experiment::experiment_schema(options),
                                         experiment::experiment_schema(fallback), problems);
  experiment::resolve_defaults(options, origins);
  experiment::check_rules(options, origins, problems);
  for (const auto& problem : problems) ADD_FAILURE() << problem.place << ": " << problem.what;
  return lint(options, origins, context);
}

inline std::vector<std::string> codes_of(const std::vector<Finding>& findings) {
  std::vector<std::string> codes;
  for (const auto& finding : findings) codes.push_back(finding.code);
  return codes;
}

}  // namespace stretto::lint::testing
