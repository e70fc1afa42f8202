#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_record.h"
#include "seeds/run_scores.h"

namespace stretto::seeds {

enum class SeedState : uint8_t { kWaiting, kTraining, kFinished, kInterrupted, kFailed };

/// "finished"
const char* name_of(SeedState state);

/// One of the runs, as seeds.json has it.
struct SeedRun {
  int64_t seed = 0;
  SeedState state = SeedState::kWaiting;
  /// A hash of the resolved configuration and of `--until`: a run that finished another one may go
  /// on.
  std::string fingerprint;
  std::optional<int> exit_code;  ///< of the last training
  /// The scores of a run that finished, at that moment; metrics.jsonl must still have them.
  std::optional<RunScores> scores = {};
};

/// DIR/seed_N
std::filesystem::path seed_directory(const std::filesystem::path& directory, int64_t seed);
/// DIR/seeds.json
std::filesystem::path seeds_path(const std::filesystem::path& directory);

/// The runs of a seeds.json, those that finished with their scores. Throws Error(kBadData) for
/// another text.
std::vector<SeedRun> parse_seeds_json(std::string_view text, const std::string& where);
/// Nothing where there is no such file. Throws as parse_seeds_json() and read_file() do.
std::vector<SeedRun> read_seeds_json(const std::filesystem::path& directory);

/// What seeds.json holds and `--json` prints: the runs with their scores and, over those that
/// finished, mean and sample deviation.
/// @param scores    of each run
/// @param accepted  changes of the data between the trainings, which are told where there are any
nlohmann::ordered_json seeds_json(const std::vector<SeedRun>& runs,
                                  const std::vector<RunScores>& scores, const BestBy& by,
                                  const std::vector<data::AcceptedChanges>& accepted = {});

/// The scores of the runs that finished.
std::vector<RunScores> finished_scores(const std::vector<SeedRun>& runs,
                                       const std::vector<RunScores>& scores);

}  // namespace stretto::seeds
