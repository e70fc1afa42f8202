#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace stretto::tasks {

/// The files that `stretto eval` judges, and what they are called.
struct EvalFiles {
  std::string name;  ///< "test", "valid", or the names of --data
  std::string key;   ///< of the paths, for messages: "data.test", "data.valid", "--data"
  std::vector<std::string> paths;
};

/// The files of --data, else those of data.test, else those of data.valid. Throws Error(kUsage)
/// where there are none.
inline EvalFiles eval_files(const std::vector<std::string>& asked,
                            const std::vector<std::string>& test,
                            const std::vector<std::string>& valid,
                            const std::string& advice = "give --data FILE") {
  if (!asked.empty()) return {join(asked, ","), "--data", asked};
  if (!test.empty()) return {"test", "data.test", test};
  if (!valid.empty()) return {"valid", "data.valid", valid};
  throw Error(ExitCode::kUsage, "the run's configuration names no test or validation data", advice);
}

}  // namespace stretto::tasks
