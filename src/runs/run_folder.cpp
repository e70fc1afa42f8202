#include "runs/run_folder.h"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "base/stray_files.h"
#include "base/system_info.h"
#include "base/text.h"
#include "base/version.h"
#include "store/owner_mark.h"

namespace stretto::runs {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxAssetBytes = size_t{256} << 20;

// Identity, not randomness of the experiment: two runs of one config must differ.
std::string new_run_id() {
  std::random_device device;
  const uint64_t high = device(), low = device();
  return hex64((high << 32) | low);
}

// The files and folders of a run that this program writes to.
constexpr std::array<std::string_view, 5> kWholeFiles{"config.toml", "run.json", "data.json",
                                                      "metrics.jsonl", "report.html"};
constexpr std::array<std::string_view, 4> kFolders{"checkpoints", "tokenizer", "tensorboard",
                                                   "forensics"};

// What is written into a folder behind a link, and removed from it, may be another run's.
void refuse_linked_folders(const fs::path& directory) {
  for (const std::string_view name : kFolders) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(directory / name, error))) continue;
    throw Error(ExitCode::kUsage,
                (directory / name).string() +
                    ": is a symbolic link, and training writes to and "
                    "removes from folders of its own only",
                "put the folder itself there; where the disk is too small, let --run be the link");
  }
}

void remove_strays(const fs::path& directory) {
  remove_stray_files(directory, [](const std::string& name) {
    return std::find(kWholeFiles.begin(), kWholeFiles.end(), name) != kWholeFiles.end();
  });
  remove_stray_files(directory / "forensics",
                     [](const std::string& name) { return name.starts_with("step_"); });
}

}  // namespace

RunFolder::RunFolder(fs::path directory)
    : directory_(std::move(directory)), record_(store::read_run_record(directory_)) {}

const std::string& RunFolder::run_id() const {
  static const std::string none;
  return record_ ? record_->run_id : none;
}

const std::vector<std::string>& RunFolder::config_hashes() const {
  static const std::vector<std::string> none;
  return record_ ? record_->config_hashes : none;
}

const std::vector<store::AcceptedData>& RunFolder::accepted_data() const {
  static const std::vector<store::AcceptedData> none;
  return record_ ? record_->accepted_data : none;
}

void RunFolder::note_data(std::vector<store::AcceptedData> accepted) {
  const auto is_same = [](const auto& one, const auto& other) {
    return one.step == other.step && one.time == other.time && one.files == other.files;
  };
  if (record_->has_data_record &&
      std::equal(accepted.begin(), accepted.end(), record_->accepted_data.begin(),
                 record_->accepted_data.end(), is_same)) {
    return;
  }
  record_->has_data_record = true;
  record_->accepted_data = std::move(accepted);
  store::write_run_record(directory_, *record_);
}

RunFolder RunFolder::open_for_training(const fs::path& directory) {
  auto lock = store::lock_run(directory);
  refuse_linked_folders(directory);
  remove_strays(directory);
  RunFolder folder(directory);
  folder.lock_ = std::move(lock);
  return folder;
}

RunFolder RunFolder::open(const fs::path& directory) {
  if (!fs::is_directory(directory)) {
    throw Error(ExitCode::kUsage, "no run folder at " + directory.string(),
                "train first: stretto train CONFIG --run " + directory.string());
  }
  RunFolder folder(directory);
  if (!folder.has_run() || folder.stored_config().empty()) {
    throw Error(ExitCode::kUsage,
                directory.string() + " is not a run: config.toml or run.json is missing",
                "give the folder that `stretto train` wrote");
  }
  return folder;
}

std::string RunFolder::stored_config() const {
  const fs::path path = directory_ / "config.toml";
  if (!fs::exists(path)) return "";
  return store::unseal_config(read_file(path, kMaxSmallTextBytes)).toml;
}

// Tokenizer first and config.toml last: a process that is killed in between leaves nothing that
// belongs to another configuration than the one that is stored.
void RunFolder::begin_anew(bool keep_tokenizer) {
  const auto remove = [](const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) throw_io_error("cannot remove", path, error.value());
  };
  if (!keep_tokenizer && fs::exists(directory_ / "tokenizer")) {
    // A folder that is there is complete.
    remove(directory_ / ".tmp-tokenizer");
    rename_path(directory_ / "tokenizer", directory_ / ".tmp-tokenizer");
    remove(directory_ / ".tmp-tokenizer");
  }
  for (const char* name :
       {"tensorboard", "report.html", "report.json", "metrics.jsonl", "data.json", "run.json"}) {
    remove(directory_ / name);
  }
  record_.reset();
  fsync_directory(directory_);
}

// In an old run, run.json is written first: whatever config.toml then holds, its hash stands there.
// In a new one it is written last: a folder with a run.json has all that belongs to it.
void RunFolder::write_config(const std::string& resolved_toml, const std::string& config_hash) {
  store::RunRecord record = record_.value_or(store::RunRecord{.run_id = new_run_id(),
                                                              .config_hashes = {config_hash},
                                                              .created = utc_now(),
                                                              .host = host_name(),
                                                              .stretto = stretto::kVersion});
  auto& hashes = record.config_hashes;
  if (hashes.empty() || hashes.front() != config_hash) {
    std::erase(hashes, config_hash);
    hashes.insert(hashes.begin(), config_hash);
    store::write_run_record(directory_, record);
  }
  const fs::path path = directory_ / "config.toml";
  const std::string sealed =
      store::seal_config(resolved_toml, record.run_id,
                         store::owner_mark(store::marked_text(resolved_toml, record.run_id)));
  if (!fs::exists(path) || read_file(path, kMaxSmallTextBytes) != sealed) {
    write_file_atomic(path, sealed);
  }
  if (!record_) store::write_run_record(directory_, record);
  record_ = std::move(record);
}

std::map<std::string, std::string> RunFolder::read_assets() const {
  std::map<std::string, std::string> assets;
  const fs::path folder = directory_ / "tokenizer";
  if (!fs::is_directory(folder)) return assets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    // What is no file is refused by name; hidden entries belong to the file system (.nfs…).
    if (!name.starts_with('.')) assets[name] = read_file(entry.path(), kMaxAssetBytes);
  }
  return assets;
}

void RunFolder::write_assets(const std::map<std::string, std::string>& assets) {
  // All files or none: a folder that is there is complete.
  const fs::path staging = directory_ / ".tmp-tokenizer";
  std::error_code error;
  fs::remove_all(staging, error);
  if (!make_directories(staging)) throw_io_error("cannot replace", staging, EEXIST);
  for (const auto& [name, bytes] : assets) write_file_atomic(staging / name, bytes);
  rename_path(staging, directory_ / "tokenizer");
  fsync_directory(directory_);
}

}  // namespace stretto::runs
