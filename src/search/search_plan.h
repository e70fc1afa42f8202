#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"
#include "search/build_space.h"
#include "search/sampler.h"
#include "search/scheduler.h"
#include "search/search_options.h"

namespace stretto::search {

/// Points whose configuration breaks a rule: no trial gets them.
struct RefusedPoints {
  uint64_t looked_at = 0;  ///< of a grid, from its first point
  uint64_t count = 0;      ///< how many of the points that were looked at are refused
  std::string first = {};  ///< the first of these: "model.d_model=64 model.encoder.num_heads=5"
  std::string why = {};    ///< what is wrong with its configuration, in a line

  /// Counts a point; of the first one both texts are kept.
  void add(const std::string& point, const std::string& reason);
  /// "4 are refused, the first is `model.d_model=64`: WHY"; empty = none is.
  std::string text() const;
  bool operator==(const RefusedPoints&) const = default;
};

/// All that decides what a search does: made from a search file and its configuration, kept in the
/// journal, and read back from it.
struct SearchPlan {
  SearchFileOptions options;
  Space space;
  std::vector<Point> enqueued;
  std::string toml;    ///< the search file, resolved: every key, absolute paths
  std::string recipe;  ///< the configuration of each trial but for its point, resolved
  std::string metric;  ///< "nll"
  bool higher_is_better = false;
  int64_t max_steps = 0;  ///< updates of a whole trial
  /// Points of the grid; kMostCounted + 1 stands for more. Zero for other methods.
  uint64_t grid_points = 0;
  RefusedPoints refused = {};         ///< of the grid; nothing of other methods
  std::filesystem::path folder = {};  ///< of the search file; empty for what a journal has kept

  static constexpr uint64_t kMostCounted = 1'000'000;
  /// Points of a grid whose configurations are read when a search begins, at the most.
  static constexpr uint64_t kMostLookedAt = 1000;

  Sampler sampler() const;
  /// Trials that may begin: `search.max_trials`, or kAllPoints.
  int64_t budget() const;
  /// "40 points", "more than 1,000,000 points": of the grid.
  std::string grid_text() const;
  /// Points of the grid that no rule refuses; all of them where only the first were looked at.
  uint64_t points_left() const;
  /// How many trials may begin, in words: "16 trials", or of a whole grid "40 points", those left.
  std::string budget_text() const;
  /// How many points of the grid are refused, and why the first one is, in words; empty = none is.
  std::string refused_text() const;
  /// What a budget that is smaller than the grid leaves out, in words; empty = nothing.
  std::string cut_text() const;
  /// Less is better: what trials are ranked by. Absent for what is no number.
  std::optional<double> score_of(std::optional<double> value) const;
};

/// The plan that a journal has kept. Throws Error(kBadData).
SearchPlan stored_plan(const std::string& toml, const std::string& where);

/// A stored plan whose values have absolute paths, as load_search() gives them. Journals of earlier
/// releases have relative ones.
SearchPlan with_absolute_values(const SearchPlan& stored, const std::filesystem::path& folder);

/// What is wrong with a search file where a configuration is expected: one problem, with the
/// command that takes such a file. Empty for any other file, and for one that is no TOML.
std::vector<config::Problem> problems_as_configuration(const std::filesystem::path& path);

/// The other way round: a configuration of one run where a search file is expected. Empty for any
/// other file, and for one with a section of search files.
std::vector<config::Problem> problems_as_search_file(const std::filesystem::path& path);

/// A text on keys of search files: where it names the command `stretto describe`, it has
/// `stretto search describe` instead.
std::string with_own_command(std::string text);

/// The keys of a search file; it points into `options`.
config::Schema search_schema(SearchFileOptions& options);

/// A search file with every key, without comments.
std::string search_toml(const SearchFileOptions& options);

/// Adds what the file of a plan leaves out, and what its space comes to.
void complete(SearchPlan& plan);

/// The configuration that a search file names. Throws Error(kUsage) with its problems, and says
/// that what they call command line is `search.overrides`.
experiment::LoadedExperiment load_recipe(const SearchOptions& options);

/// The configuration that the plan names, as it stands on the disk now, resolved.
std::string recipe_on_disk(const SearchPlan& plan);
/// The configuration of a point. Throws Error(kUsage) when it breaks a rule.
experiment::LoadedExperiment experiment_of(const SearchPlan& plan, const Point& point);
/// What of the command line makes it: the plan's overrides, then the point's.
std::vector<std::string> overrides_of(const SearchPlan& plan, const Point& point);

}  // namespace stretto::search
