#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace stretto::store {

/// Data that had changed while a run stood, and that it went on with (`--accept-data`).
struct AcceptedData {
  struct File {
    std::string key, path;
    std::string change;  ///< "first differs in line 17"
    bool operator==(const File&) const = default;
  };
  int64_t step = 0;  ///< updates behind this step are trained on the changed data
  std::string time;
  std::vector<File> files;
};

/// `RUN/run.json`: which run a folder holds.
struct RunRecord {
  std::string run_id;
  /// Hashes of the fixed keys of config.toml: that of today first, behind it those of the
  /// configurations that it went on from (`--extend`, or a key whose change fixes others).
  std::vector<std::string> config_hashes;
  std::string created, host, stretto;  ///< when, where and by which version it was begun
  /// Whether `data.json` was written: a run that had one must not lose it.
  bool has_data_record = false;
  std::vector<AcceptedData> accepted_data = {};  ///< in the order in which they were accepted
};

/// Nothing when the folder has no run.json. Throws Error(kBadData) when it is damaged.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run_directory);

/// Atomic and durable. Throws Error(kIo).
void write_run_record(const std::filesystem::path& run_directory, const RunRecord& record);

/// Locks a run's folder for training, and creates it when it is not there. Throws Error(kUsage)
/// when the path is no folder, or when another process trains in it (naming that process);
/// Error(kIo) when it cannot be written.
FileLock lock_run(const std::filesystem::path& run_directory);

/// The text of `RUN/config.toml` between two comments: the first line says of which run it is, and
/// that the last line is a checksum of both.
/// @param mark  of the user who trains (store/owner_mark.h), a comment before the checksum; empty =
///              there is none
std::string seal_config(std::string_view toml, std::string_view run_id, std::string_view mark = "");

/// What the mark of a configuration is made from.
std::string marked_text(std::string_view toml, std::string_view run_id);

/// What a reader finds.
struct SealedConfig {
  enum class State {
    kUnsealed,  ///< written before there were seals, or by hand
    kWhole,     ///< as Stretto wrote it
    kCutShort,  ///< the last line is missing
    kChanged,   ///< the checksum is wrong
  };
  State state = State::kUnsealed;
  std::string toml;    ///< without the lines that Stretto put around it
  std::string run_id;  ///< as the first line has it
  std::string mark = {};
  /// Whether this user trained with it, by its mark.
  bool is_own() const;
};
SealedConfig unseal_config(std::string_view bytes);

}  // namespace stretto::store
