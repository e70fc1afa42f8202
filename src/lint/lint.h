#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"
#include "experiment/other_model.h"
#include "experiment/rules.h"
#include "experiment/task_facts.h"

namespace stretto::lint {

/// Something that is allowed, and that the literature or experience says is a mistake.
struct Finding {
  std::string code;    ///< "LB001"; codes are never used again for something else
  std::string key;     ///< the key to change
  std::string place;   ///< "my.toml:14:1", "command line, `optim.lr=1`", or "default"
  std::string reason;  ///< what happens, with the numbers of this configuration
  std::string source;  ///< paper and section, or a section of the manual: docs/PAGE.md#section
  std::string fix;
};

/// The code of a key that nothing reads.
inline constexpr const char* kUnreadKey = "CF001";

/// What a configuration does not say.
struct LintContext {
  int64_t processes = 0;                        ///< that will train together; 0 = not known
  experiment::FileSizes files = {};             ///< as TaskFacts::file_sizes() finds them
  std::vector<optim::TensorName> tensors = {};  ///< of the model; empty = not known
};

/// The large-batch linter: linear scaling without a warm-up, decay on norms, fp16 without a loss
/// scale, a run that validates never, and so on. The rules are a table in lint.cpp, and
/// docs/large-batches.md explains each. What the engine cannot do wrong (clipping before unscaling,
/// an uncorrected velocity, a loss divided by the local batch) has no rule.
///
/// Findings are in the order of the table. Needs options that check_rules() accepts. No rule names
/// a family of tasks: each asks what the family says of itself (experiment/task_facts.h).
std::vector<Finding> lint(const experiment::Experiment& options, const config::Origins& origins,
                          const LintContext& context = {});

/// Every code that lint() can raise, in the order of the table.
std::vector<std::string> lint_codes();

/// A configuration as far as it can be read.
struct Inspection {
  bool is_read = false;  ///< false: a file could not be read at all, and nothing more is known
  experiment::Experiment options;
  config::Origins origins;
  std::vector<config::Problem> problems;  ///< keys and rules that load_experiment() refuses
  std::vector<config::Problem> missing;   ///< files that it refuses too
  std::vector<Finding> findings;          ///< empty when there are problems
  /// Keys whose patterns were not compared with tensors, as the model itself has problems.
  std::vector<std::string> unmatched;
  /// As load_experiment() gives them; empty when there are problems.
  std::string resolved_toml, config_hash;
  std::string taken;  ///< which keys `[model]` leaves to train.init_from, as load_experiment() says
};

/// Reads a file as load_experiment() does, and lints it when nothing but files is missing, so that
/// a recipe can be judged on a machine without its data. Throws Error(kIo), and what `tensors`
/// does.
///
/// @param processes  as in LintContext
/// @param tensors    asked when the configuration names tensors and its model has no problem;
/// patterns
///                   that match none of them are problems too. Empty = nobody knows, or a list that
///                   is empty: patterns are not judged
/// @param beside     as load_experiment() has it
Inspection inspect(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                   int64_t processes = 0, const experiment::TensorLister& tensors = {},
                   const experiment::ReadContext& read_context = {});

}  // namespace stretto::lint
