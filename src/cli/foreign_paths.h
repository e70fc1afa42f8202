#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"

namespace stretto::cli {

/// A key of a run's `config.toml` that names files outside of the run folder.
struct ForeignPath {
  std::string key;                 ///< "data.test_src"
  std::vector<std::string> paths;  ///< as they stand there
};

/// Which keys that name files a command leaves as they are, though somebody else wrote them.
enum class KeepPaths : uint8_t {
  kNone,
  kData,  ///< for `replay`, whose samples are the run's training data
};

/// Takes from an experiment what `config.toml` of a run says about files outside of its folder,
/// also of those that a manifest in it names or a link in a folder leads to, and the folder of the
/// token cache, unless this user trained with that configuration (its mark, store/owner_mark.h).
/// Paths that came from the command line stay. Who packed the folder could have named any file of
/// this machine.
/// @return what was taken
std::vector<ForeignPath> take_foreign_paths(experiment::LoadedExperiment& experiment,
                                            const std::filesystem::path& run_directory,
                                            KeepPaths keep = KeepPaths::kNone);

/// For a command that scores the data of the configuration when none are named: throws
/// Error(kUnsafe) when those data were among what was taken, and no `data.test…` key came from the
/// command line.
/// @param option  that names such data, "--data FILE"
void require_own_data(const std::vector<ForeignPath>& taken,
                      const experiment::LoadedExperiment& experiment,
                      const std::filesystem::path& run_directory, const std::string& option);

/// Says that a folder for the token cache was taken, if one was.
void tell_of_foreign_cache(const std::vector<ForeignPath>& taken);

}  // namespace stretto::cli
