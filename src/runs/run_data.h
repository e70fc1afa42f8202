#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/data_record.h"
#include "runs/run_folder.h"

namespace stretto::runs {

/// What a run knows of its data, and whether they are the same when it goes on.
///
/// `data.json` has digests of all training and validation files. A run with a checkpoint goes on
/// only with the same content; a run without one begins with what there is. Runs of earlier
/// versions have no record: it is made when they go on.
class RunData {
 public:
  /// The files as the configuration names them now.
  struct Setup {
    std::vector<data::DataFile> files;
    data::DigestSetting setting;
    bool accept = false;  ///< `--accept-data`
  };

  /// Compares, and writes nothing. Throws Error(kBadData) that names the files which have changed
  /// and the first place of each, or a record that is damaged or missing; with `accept` it does
  /// not. Throws as data::digest_of() does.
  RunData(const RunFolder& folder, Setup setup);

  /// Reads the files of a run that has no record, and gives what writes it. The folder has its run
  /// by now.
  /// @param folder  outlives what is given; nothing else writes to it meanwhile
  std::function<void()> first_writes(RunFolder& folder) const;

  /// Training goes on from a checkpoint of this step. Notes what was accepted in run.json and then
  /// in data.json, so that no kill forgets it. @return what metrics.jsonl is to say at this step
  std::vector<std::string> notes_at(RunFolder& folder, int64_t step);

 private:
  void compare(const RunFolder& folder, bool has_checkpoint);
  void write(RunFolder& folder) const;

  Setup setup_;
  bool begins_ = false;                     // the record is to be made
  std::vector<data::DataChange> accepted_;  // that are to be noted
};

/// `stretto replay` computes an update of this step again, which needs the training files of then.
/// Throws Error(kBadData) where they have changed. Where a change was accepted since, that is not
/// known: it warns.
void require_data_of_step(const RunFolder& folder, const std::vector<data::DataFile>& files,
                          const data::DigestSetting& setting, int64_t step);

}  // namespace stretto::runs
