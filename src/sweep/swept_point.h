#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiment/command_option.h"
#include "experiment/experiment.h"
#include "sweep/grid_options.h"

namespace stretto::sweep {

/// Bits of weights that are not rounded.
inline constexpr int64_t kUnpackedBits = 32;

/// A score by which points can be compared.
struct KnownScore {
  std::string name;
  bool higher_is_better = false;
};

/// A run that is compressed.
struct SweptRun {
  std::filesystem::path directory;
  std::string name;                ///< of its points: the folder's
  std::vector<KnownScore> scores;  ///< of its family
  std::string best_metric;         ///< eval.best_metric
  bool has_data = false;           ///< for training or validation: an imported model has none
  /// By which `stretto eval` of its family takes other data (CommandOption::data_keys).
  std::vector<experiment::CommandOption> data_options = {};
};
SweptRun swept_run(const std::filesystem::path& directory,
                   const experiment::Experiment& experiment);

/// A run, compressed in one way.
struct SweptPoint {
  size_t run = 0;
  int64_t bits = kUnpackedBits;
  double sparsity = 0;
  std::string name;  ///< "base-8bit-s0.5"

  /// The run as it is.
  bool is_plain() const { return bits == kUnpackedBits && sparsity == 0; }
};

/// All of them, run by run. Runs whose folders have one name get numbers behind it.
std::vector<SweptPoint> points_of(const GridOptions& grid, std::vector<SweptRun>& runs);

/// The words behind `stretto` that compress a point into `target`.
std::vector<std::string> compress_words(const GridOptions& grid, const SweptPoint& point,
                                        const SweptRun& run, const std::string& checkpoint,
                                        const std::filesystem::path& target);

/// By which score points are compared. Throws Error(kUsage) for one that a run does not have.
KnownScore metric_of(const GridOptions& grid, std::span<const SweptRun> runs);

/// What a point came to.
struct PointResult {
  SweptPoint point;
  std::string run;  ///< its name
  uint64_t bytes = 0;
  int64_t weights = 0;
  double bits_per_weight = 0;
  double zeros = 0;  ///< share of the matrices' weights
  double score = 0;
  std::optional<double> rate;  ///< units in a second
  std::string unit = {};       ///< "tokens"
  std::string processor = {};

  /// Time of a thousand units, in milliseconds.
  std::optional<double> latency() const;
};

nlohmann::json result_json(const PointResult& result);
/// Throws Error(kBadData) for JSON of another form.
PointResult read_result(const nlohmann::json& json, const std::string& where);

/// The first number of this name, in an object or those within it.
std::optional<double> find_number(const nlohmann::json& json, const std::string& name);
/// The last line that is a JSON object. Throws Error(kBadData) when there is none.
nlohmann::json last_object(const std::string& output, const std::string& where);

}  // namespace stretto::sweep
