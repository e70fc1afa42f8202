#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "store/run_record.h"

namespace stretto::runs {

/// A run is a folder: `config.toml` (resolved), `run.json` (identity), `data.json` (digests of its
/// data), `tokenizer/`, `checkpoints/`, `metrics.jsonl`, `tensorboard/`, `report.html`, `log.txt`.
/// Nothing else is needed to evaluate or run the model; to go on, its data are.
class RunFolder {
 public:
  /// Opens the folder for training and locks it; creates it when it is not there. Temporary files
  /// that killed processes left in it are removed.
  /// Throws Error(kUsage) when another process trains in it (naming that process), when the path is
  /// no folder, or when a symbolic link stands where this program writes; Error(kIo) when it cannot
  /// be written.
  static RunFolder open_for_training(const std::filesystem::path& directory);

  /// For reading: eval, infer, average. Throws Error(kUsage) when it is not a run.
  static RunFolder open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  /// True when an earlier process has trained here.
  bool has_run() const { return record_.has_value(); }
  const std::string& run_id() const;  ///< "" when there is no run
  /// The hash of the configuration now, then of those that it went on from; empty when there is no
  /// run.
  const std::vector<std::string>& config_hashes() const;
  /// Whether the run has a record of its data (runs/run_data.h), and what of these was accepted
  /// although it had changed.
  bool has_data_record() const { return record_ && record_->has_data_record; }
  const std::vector<store::AcceptedData>& accepted_data() const;
  /// Writes both to run.json, where that does not have them yet.
  void note_data(std::vector<store::AcceptedData> accepted);
  /// config.toml as it stands there, without its seal; empty when there is none.
  std::string stored_config() const;

  /// Forgets a run that was never trained (experiment/same_experiment.h judges that): its identity,
  /// its pictures and metrics, and its tokenizer unless another configuration may use that. The log
  /// stays. config.toml is left for write_config(), which makes another run of the folder.
  void begin_anew(bool keep_tokenizer);

  /// Writes config.toml under a seal (free keys may have changed) and, for a new run, run.json with
  /// a new identity. run.json keeps the hashes of all configurations that the run had.
  void write_config(const std::string& resolved_toml, const std::string& config_hash);

  /// The tokenizer's files: name -> bytes; empty when there are none yet.
  std::map<std::string, std::string> read_assets() const;
  void write_assets(const std::map<std::string, std::string>& assets);

 private:
  explicit RunFolder(std::filesystem::path directory);
  std::filesystem::path directory_;
  std::optional<store::RunRecord> record_;
  std::optional<FileLock> lock_;
};

}  // namespace stretto::runs
