#include "runs/run_data.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "store/checkpoint.h"

namespace stretto::runs {
namespace {

using Changes = std::vector<data::DataChange>;

constexpr size_t kFilesNoted = 50;  // run.json is a small file

bool is_validation_key(const std::string& key) {
  return key.substr(key.rfind('.') + 1).starts_with("valid");
}

std::string trained(const RunFolder& folder) {
  return "the run in " + folder.directory().string() + " was trained";
}

// The record of a run that has one. Throws where it is damaged or gone.
std::optional<data::DataRecord> record_of(const RunFolder& folder) {
  auto record = data::read_data_record(folder.directory(), folder.run_id());
  if (record || !folder.has_data_record()) return record;
  throw Error(ExitCode::kBadData,
              (folder.directory() / data::kDataRecordFile).string() +
                  ": is missing, so nobody knows whether the data have changed",
              "put the file back from a copy; --accept-data goes on with the data as they are");
}

store::AcceptedData entry_of(const Changes& changes, int64_t step) {
  store::AcceptedData entry{.step = step, .time = utc_now(), .files = {}};
  for (const auto& one : changes) {
    if (entry.files.size() == kFilesNoted) break;
    entry.files.push_back({one.key, one.path, one.what});
  }
  return entry;
}

std::string note_of(const store::AcceptedData& entry) {
  Changes changes;
  for (const auto& file : entry.files) changes.push_back({file.key, file.path, file.change});
  const bool has_validation = std::any_of(
      changes.begin(), changes.end(), [](const auto& one) { return is_validation_key(one.key); });
  return "from here on with changed data (--accept-data): " + data::text_of(changes) +
         (has_validation ? "; scores before and after are of different validation data" : "");
}

}  // namespace

RunData::RunData(const RunFolder& folder, Setup setup) : setup_(std::move(setup)) {
  compare(folder, !store::CheckpointStore(folder.directory()).steps().empty());
}

void RunData::compare(const RunFolder& folder, bool has_checkpoint) {
  std::optional<data::DataRecord> record;
  begins_ = !folder.has_run() || !has_checkpoint;
  if (begins_) return;
  try {
    record = record_of(folder);
  } catch (const Error& error) {
    if (!setup_.accept || error.code() != ExitCode::kBadData) throw;
    accepted_ = {{"", (folder.directory() / data::kDataRecordFile).string(),
                  "is damaged or missing: nobody knows whether the data have changed"}};
  }
  begins_ = !record && accepted_.empty();
  if (!record) return;
  auto changes = data::changes_since(*record, setup_.files, setup_.setting);
  if (!setup_.accept) data::refuse_changes(changes, trained(folder));
  accepted_ = std::move(changes);
}

void RunData::write(RunFolder& folder) const {
  data::write_data_record(folder.directory(),
                          data::record_data(folder.run_id(), setup_.files, setup_.setting));
}

std::function<void()> RunData::first_writes(RunFolder& folder) const {
  if (!begins_) return [] {};
  return [&folder, record = data::record_data(folder.run_id(), setup_.files, setup_.setting)] {
    data::write_data_record(folder.directory(), record);
    folder.note_data(folder.accepted_data());
  };
}

std::vector<std::string> RunData::notes_at(RunFolder& folder, int64_t step) {
  auto accepted = folder.accepted_data();
  if (!accepted_.empty()) {
    auto entry = entry_of(accepted_, step);
    // A process that was killed in front of data.json has noted it already.
    const bool is_noted =
        !accepted.empty() && accepted.back().step == step && accepted.back().files == entry.files;
    if (!is_noted) accepted.push_back(std::move(entry));
    log::warn("step " + with_thousands(step) + ": " + note_of(accepted.back()));
  }
  std::vector<std::string> notes;
  for (auto& one : accepted) {
    if (one.step < step) continue;
    one.step = step;  // updates behind this checkpoint are made again, with the data of now
    notes.push_back(note_of(one));
  }
  folder.note_data(std::move(accepted));
  if (!accepted_.empty()) write(folder);
  accepted_.clear();
  return notes;
}

void require_data_of_step(const RunFolder& folder, const std::vector<data::DataFile>& files,
                          const data::DigestSetting& setting, int64_t step) {
  auto record = record_of(folder);
  if (!record) return;
  const auto is_of_training = [](const auto& file) { return !is_validation_key(file.key); };
  std::vector<data::DataFile> trained_on;
  std::copy_if(files.begin(), files.end(), std::back_inserter(trained_on), is_of_training);
  std::erase_if(record->files, [&](const auto& entry) { return !is_of_training(entry.file); });
  const auto changes = data::changes_since(*record, trained_on, setting);
  const auto& accepted = folder.accepted_data();
  const bool has_changed_since = std::any_of(accepted.begin(), accepted.end(),
                                             [&](const auto& entry) { return entry.step >= step; });
  if (!has_changed_since) {
    if (changes.empty()) return;
    throw Error(
        ExitCode::kBadData,
        std::string(data::kDataHaveChanged) + " " + trained(folder) + ": " + data::text_of(changes),
        "put the files back as they were: a replay computes the same update again");
  }
  log::warn("the run has gone on with changed data since step " + with_thousands(step) +
            " (--accept-data): this is the same update only if the files are those of then");
}

}  // namespace stretto::runs
