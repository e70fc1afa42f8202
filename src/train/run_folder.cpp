#include "train/run_folder.h"

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/system_info.h"
#include "base/text.h"
#include "base/version.h"

namespace stretto::train {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxAssetBytes = size_t{256} << 20;

// Identity, not randomness of the experiment: two runs of one config must differ.
std::string new_run_id() {
  std::random_device device;
  const uint64_t high = device(), low = device();
  return hex64((high << 32) | low);
}

}  // namespace

RunFolder::RunFolder(fs::path directory) : directory_(std::move(directory)) {
  const fs::path identity = directory_ / "run.json";
  if (!fs::exists(identity)) return;
  const auto json = parse_json(read_file(identity), identity.string(), size_t{1} << 20);
  if (!json.contains("run_id") || !json["run_id"].is_string()) {
    throw Error(ExitCode::kBadData, identity.string() + ": no run_id",
                "the file is damaged; restore it, or train into another --run folder");
  }
  run_id_ = json["run_id"].get<std::string>();
}

RunFolder RunFolder::open_for_training(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory) && !fs::is_directory(directory)) {
    throw Error(ExitCode::kUsage, directory.string() + " is not a folder",
                "give another --run folder");
  }
  fs::create_directories(directory, error);
  if (error) throw_io_error("cannot create run folder", directory, error.value());
  auto lock = FileLock::try_now(directory / ".lock", "stretto train");
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
  return fs::exists(path) ? read_file(path) : "";
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
    std::error_code error;
    fs::rename(directory_ / "tokenizer", directory_ / ".tmp-tokenizer", error);
    if (error) throw_io_error("cannot remove", directory_ / "tokenizer", error.value());
    remove(directory_ / ".tmp-tokenizer");
  }
  for (const char* name :
       {"tensorboard", "report.html", "report.json", "metrics.jsonl", "run.json"}) {
    remove(directory_ / name);
  }
  run_id_.clear();
  fsync_directory(directory_);
}

void RunFolder::write_config(const std::string& resolved_toml, const std::string& config_hash) {
  if (stored_config() != resolved_toml) {
    write_file_atomic(directory_ / "config.toml", resolved_toml);
  }
  if (!has_run()) {
    run_id_ = new_run_id();
    const nlohmann::ordered_json identity{{"run_id", run_id_},
                                          {"config_hash", config_hash},
                                          {"created", utc_now()},
                                          {"host", host_name()},
                                          {"stretto", stretto::kVersion}};
    write_file_atomic(directory_ / "run.json", identity.dump(2) + "\n");
  }
}

std::map<std::string, std::string> RunFolder::read_assets() const {
  std::map<std::string, std::string> assets;
  const fs::path folder = directory_ / "tokenizer";
  if (!fs::is_directory(folder)) return assets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      assets[entry.path().filename().string()] = read_file(entry.path(), kMaxAssetBytes);
    }
  }
  return assets;
}

void RunFolder::write_assets(const std::map<std::string, std::string>& assets) {
  // All files or none: a folder that is there is complete.
  const fs::path staging = directory_ / ".tmp-tokenizer";
  std::error_code error;
  fs::remove_all(staging, error);
  if (!fs::create_directories(staging, error)) {
    throw_io_error("cannot create", staging, error.value());
  }
  for (const auto& [name, bytes] : assets) write_file_atomic(staging / name, bytes);
  fs::rename(staging, directory_ / "tokenizer", error);
  if (error) throw_io_error("cannot write", directory_ / "tokenizer", error.value());
  fsync_directory(directory_);
}

}  // namespace stretto::train
