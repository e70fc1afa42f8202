#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

/// What a look at the data gives (experiment/preflight.h), and how far it goes.
namespace stretto::experiment {

/// The order in which training comes to them.
enum class Stage { kFiles, kMachine, kTokenizer, kTraining, kValidation, kWeights, kSchedule };

/// Something at which training would stop.
struct Stop {
  Stage stage = Stage::kMachine;
  std::string key;  ///< the one to change; empty: none is at fault
  ExitCode code = ExitCode::kUsage;
  std::string what, hint;
  std::vector<std::string> details = {};  ///< as Error::details()
};

/// Something that was not looked at to its end.
struct UnreadData {
  std::string key;
  std::string what;  ///< "a.en from line 1,234 on"
};

/// Something at which training would warn.
struct Doubt {
  std::string key;
  std::string what, hint;
};

struct Preflight {
  std::vector<Stop> stops;
  std::vector<UnreadData> unread;
  std::vector<Doubt> doubts;
  /// Micro-batches that an epoch does not exceed; 0 = not known.
  int64_t most_batches = 0;
};

struct PreflightOptions {
  /// How long it may read and try; then it says what it has not looked at.
  std::chrono::milliseconds limit{1000};
  bool full = false;  ///< no limit: reads all of the text, trains the tokenizer, verifies weights
  /// What only this machine lacks is no stop: files, a GPU. It is named among what is unread.
  bool elsewhere = false;
  /// What is read may be kept in the cache of `[data]`, for training that follows; else nothing is
  /// written.
  bool keeps = false;
  /// Whether doubts are looked for that take time of their own: a start tells none of them.
  bool doubts = true;
};

}  // namespace stretto::experiment
