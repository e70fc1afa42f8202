#pragma once

#include <filesystem>
#include <string>

namespace stretto::experiment {

/// Whether `train --extend` asks: then a file without a seal may have a length that stands nowhere
/// else yet, of an earlier release's `--extend` that was killed before its first checkpoint.
enum class Extend { kNo, kYes };

/// The configuration that a run folder keeps, `RUN/config.toml` without its seal, once it is known
/// to be that of the run.
///
/// The model is built from this file, and most of it does not show in the shapes of the weights: an
/// edited number of heads, or defaults in place of what was cut off, would load and give other
/// output. So the file is taken when its seal (store/run_record.h) is whole, or when the hash of
/// the fixed keys that it states is one of those in run.json or in the run's own checkpoints. A
/// broken seal around fixed keys that are as they were is a warning: a free one was edited.
///
/// Throws Error(kBadData) that says what is wrong with the file and what to do, Error(kUsage) when
/// it is missing or no configuration. A folder without run.json holds no run yet: its file is taken
/// as it is.
std::string read_run_config(const std::filesystem::path& run_directory,
                            Extend extend = Extend::kNo);

}  // namespace stretto::experiment
