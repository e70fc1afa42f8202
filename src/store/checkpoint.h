#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/manifest.h"
#include "store/safetensors.h"

namespace stretto::store {

/// What one checkpoint holds: tensor files and one JSON document of small state.
struct CheckpointContent {
  int64_t step = 0;
  std::string run_id;
  std::string config_hash;
  Provenance provenance = {};
  /// File stem -> tensors: "model" and "optimizer".
  std::vector<std::pair<std::string, std::vector<TensorView>>> files;
  std::string state_json;  ///< counters, best so far, scheduler, data position
  /// File stem -> what its metadata says beside run and step: how its packed tensors are to be read
  /// (store/quantised_file.h).
  std::map<std::string, std::map<std::string, std::string>> metadata = {};
};

/// A checkpoint that was opened and verified.
struct LoadedCheckpoint {
  std::filesystem::path directory;
  int64_t step = 0;
  std::string run_id;
  std::string config_hash;
  Provenance provenance;
  std::string state_json;
  std::vector<std::pair<std::string, SafetensorsFile>> files;

  const SafetensorsFile& file(std::string_view stem) const;  ///< throws Error(kBadData) when absent
};

/// Which files of a checkpoint are opened. Those of the optimizer are the largest, and training
/// alone needs them.
enum class CheckpointPart : uint8_t {
  kAll,
  kModel,  ///< all but optimizer.safetensors, which is not looked at
};

/// "step_00000123", the folder of a step's checkpoint.
std::string step_name(int64_t step);

/// Keeps the checkpoints of one run: `RUN/checkpoints/step_00000123/{model,optimizer}.safetensors,
/// state.json, manifest.json`.
///
/// Protocol: all files are written and fsynced in `.tmp-…/`, then manifest.json (format version,
/// run id, step, provenance, SHA-256 and size per file, XXH3-64 per tensor, SHA-256 of itself), the
/// folder is fsynced, renamed, and the parent fsynced; only then are older ones pruned (renamed to
/// `.trash-…`, then unlinked). There is no mutable `latest`: the newest valid folder wins.
/// Failpoints `checkpoint.<stage>` stand before each system call of it.
///
/// Loading checks the SHA-256 of headers and state, and the XXH3-64 of every tensor: together they
/// cover each byte at the speed of XXH3. The SHA-256 of whole files is for people and tools.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path run_directory);

  /// Durable when it returns. Throws Error(kIo) and leaves every earlier checkpoint whole; one of
  /// the same name is replaced. One that the disk has no room for is refused before it is begun, so
  /// that it does not fill the disk for everybody else. Throws Error(kUsage) when a link stands in
  /// the place of RUN/checkpoints.
  /// @param name  "" for `step_00000123`, else a named one such as "averaged": letters, digits,
  /// `-`,
  ///              `_` and `.`, else std::invalid_argument
  std::filesystem::path save(const CheckpointContent& content, const std::string& name = "");

  /// Steps of the checkpoints that look complete (a manifest is there), ascending.
  std::vector<int64_t> steps() const;
  /// Steps that have a folder, whatever is in it, ascending: saving and pruning rename whole
  /// folders, so that one without a manifest is damaged and not on its way.
  std::vector<int64_t> step_folders() const;
  std::filesystem::path path_of(int64_t step) const;

  /// Opens and verifies one: manifest, sizes, headers, every hash, run id and step of all files
  /// that are asked for.
  /// Throws Error(kBadData) that names file and tensor, NewerFormat (store/manifest.h) for a
  /// checkpoint of a later Stretto, Error(kIo) when something cannot be read.
  static LoadedCheckpoint load(const std::filesystem::path& directory,
                               CheckpointPart part = CheckpointPart::kAll);

  /// The newest valid checkpoint. Broken ones are named with a warning and, when `quarantine`,
  /// renamed to `bad-step_…`. No checkpoint at all: nullopt. Some (those moved aside count),
  /// but none valid: Error(kBadData).
  /// One of a later Stretto is never skipped: NewerFormat.
  std::optional<LoadedCheckpoint> load_newest(bool quarantine);

  /// Removes all steps but those in `keep`; removes stale `.tmp-…` and `.trash-…` folders too.
  void prune(const std::vector<int64_t>& keep);

  /// Refuses a run that must fail later: throws Error(kIo) with the numbers when the disk has less
  /// free space than `num_checkpoints` + 1 checkpoints need (one more while it is being written).
  /// Those that are there already take no more. The folder need not be there yet.
  void require_space(uint64_t checkpoint_bytes, int64_t num_checkpoints) const;

  /// Removes what a killed process left behind, and leaves what belongs to another process that
  /// holds save_beside_training(). For the owner of the run's lock only, and not while save() runs.
  void remove_stale();

  /// For a process that saves without the run's lock, as `stretto average` does: held meanwhile, it
  /// keeps training from tidying up the folder that is being written. Waits for another holder.
  /// Throws Error(kIo).
  FileLock save_beside_training() const;

 private:
  void refuse_link() const;

  std::filesystem::path directory_;  ///< RUN/checkpoints
  std::filesystem::path beside_;     ///< lock of save_beside_training()
};

}  // namespace stretto::store
