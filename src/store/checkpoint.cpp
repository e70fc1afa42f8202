#include "store/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <utility>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "store/folders.h"
#include "store/manifest.h"

namespace stretto::store {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step_";
constexpr std::string_view kStagingPrefix = ".tmp-";
constexpr std::string_view kTrashPrefix = ".trash-";
constexpr std::string_view kQuarantinePrefix = "bad-";
constexpr std::string_view kBesideLock = ".lock-average";
constexpr std::string_view kState = "state.json";
constexpr std::string_view kOptimizer = "optimizer.safetensors";
constexpr std::string_view kTensorSuffix = ".safetensors";
constexpr size_t kMaxSmallFileBytes = size_t{1} << 30;
constexpr uint64_t kRoomForTheRest = uint64_t{64} << 10;  // blocks, folder, heads; the run's logs
constexpr uint64_t kHeaderBytesOfTensor = 256;            // in a header and in the manifest

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* begin = name.data() + kStepPrefix.size();
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(begin, end, step);
  if (result.ec != std::errc() || result.ptr != end || step_name(step) != name) return std::nullopt;
  return step;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_io_error("cannot list", directory, error.value());
  }
  return names;
}

// What is written beside training has a name of its own: steps are saved, and any checkpoint is
// removed, by the training process.
bool is_of_another_writer(const std::string& name) {
  for (const std::string_view prefix : {kStagingPrefix, kReplacedPrefix}) {
    if (name.starts_with(prefix)) return !name.substr(prefix.size()).starts_with(kStepPrefix);
  }
  return false;
}

void check_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!plain || name.starts_with('.') || name.starts_with(kStepPrefix)) {
    throw std::invalid_argument("[checkpoint] `" + printable(name) + "` cannot be a name");
  }
}

// From memory, not from the file: what the disk made of it is what loading must find out.
std::string sha256_of(const std::vector<std::string_view>& chunks) {
  Sha256Stream sha;
  for (const std::string_view chunk : chunks) sha.update(chunk);
  return sha.hex_digest();
}

std::string write_chunks(const fs::path& path, const std::vector<std::string_view>& chunks) {
  // SHA-256 is several times slower than XXH3, so it runs while the disk works.
  auto sha = std::async(std::launch::async, [&chunks] { return sha256_of(chunks); });
  DurableFile file(path, "checkpoint");
  for (const std::string_view chunk : chunks) file.write(chunk);
  file.close();
  return sha.get();
}

uint64_t total_bytes(const std::vector<std::string_view>& chunks) {
  uint64_t bytes = 0;
  for (const std::string_view chunk : chunks) bytes += chunk.size();
  return bytes;
}

ManifestFile write_tensors(const fs::path& path, const std::vector<TensorView>& tensors,
                           const std::map<std::string, std::string>& metadata) {
  std::string header;
  const auto chunks = safetensors_chunks(tensors, metadata, header);
  ManifestFile entry{.name = path.filename().string(),
                     .size = total_bytes(chunks),
                     .sha256 = write_chunks(path, chunks),
                     .header_sha256 = sha256_hex(header),
                     .tensors = {}};
  for (const auto& tensor : tensors) entry.tensors[tensor.name] = hex64(xxh3_64(tensor.bytes));
  return entry;
}

ManifestFile write_small(const fs::path& path, std::string_view bytes) {
  return {.name = path.filename().string(),
          .size = bytes.size(),
          .sha256 = write_chunks(path, {bytes}),
          .header_sha256 = "",
          .tensors = {}};
}

// So that a checkpoint which does not fit fails before it has taken the space that logs and metrics
// need while it is written.
void require_room(const fs::path& parent, const CheckpointContent& content) {
  uint64_t needed = kRoomForTheRest + content.state_json.size();
  for (const auto& [stem, tensors] : content.files) {
    for (const auto& tensor : tensors) {
      needed += tensor.bytes.size() + 2 * tensor.name.size() + kHeaderBytesOfTensor;
    }
  }
  for (const auto& [stem, metadata] : content.metadata) {
    for (const auto& [key, text] : metadata) needed += 2 * text.size();
  }
  std::error_code error;
  const fs::space_info space = fs::space(parent, error);
  if (error || space.capacity == 0 || space.available >= needed) return;
  throw Error(ExitCode::kIo,
              "no room for a checkpoint in " + parent.string() + ": it takes " +
                  human_bytes(needed) + ", the disk has " + human_bytes(space.available) + " free",
              "the disk is full: free some space");
}

// The manifest is last, so that a folder with one has everything.
void write_files(const fs::path& staging, const CheckpointContent& content) {
  Manifest manifest{.step = content.step,
                    .run_id = content.run_id,
                    .config_hash = content.config_hash,
                    .provenance = content.provenance,
                    .files = {}};
  const std::map<std::string, std::string> identity{{"run_id", content.run_id},
                                                    {"step", std::to_string(content.step)}};
  for (const auto& [stem, tensors] : content.files) {
    const fs::path path = staging / (stem + std::string(kTensorSuffix));
    std::map<std::string, std::string> metadata = identity;
    if (const auto more = content.metadata.find(stem); more != content.metadata.end()) {
      metadata.insert(more->second.begin(), more->second.end());
    }
    manifest.files.push_back(write_tensors(path, tensors, metadata));
  }
  manifest.files.push_back(write_small(staging / kState, content.state_json));
  write_small(staging / kManifestName, manifest.to_json());
  sync_folder(staging);
}

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw Error(ExitCode::kBadData, path.string() + ": " + what,
              "the checkpoint is damaged; an older one is used when there is one");
}

void verify_size(const fs::path& path, const ManifestFile& expected) {
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (!fs::exists(status)) damaged(path, "is missing");
  if (!fs::is_regular_file(status)) damaged(path, "is no file");
  const uint64_t size = fs::file_size(path, error);
  if (error) throw_io_error("cannot read", path, error.value());
  if (size != expected.size) {
    damaged(path, "has " + counted(static_cast<int64_t>(size), "byte") + ", " +
                      with_thousands(static_cast<int64_t>(expected.size)) + " were saved");
  }
}

// So that files of two checkpoints cannot be mixed, even when both are sound.
void verify_identity(const fs::path& path, const SafetensorsFile& file, const Manifest& manifest) {
  const auto value = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string("?") : found->second;
  };
  if (value("run_id") != manifest.run_id || value("step") != std::to_string(manifest.step)) {
    damaged(path, "is of run " + printable(value("run_id")) + " step " + printable(value("step")) +
                      ", its manifest of run " + printable(manifest.run_id) + " step " +
                      std::to_string(manifest.step));
  }
}

SafetensorsFile load_tensors(const fs::path& path, const ManifestFile& expected,
                             const Manifest& manifest) {
  SafetensorsFile file(path);
  verify_identity(path, file, manifest);
  if (sha256_hex(file.header()) != expected.header_sha256) {
    damaged(path, "its header is not the one that was saved");
  }
  if (file.tensors().size() != expected.tensors.size()) {
    damaged(path, "has other tensors than its manifest");
  }
  for (const auto& tensor : file.tensors()) {
    const auto found = expected.tensors.find(tensor.name);
    if (found == expected.tensors.end()) {
      damaged(path, "`" + printable(tensor.name) + "` is not in the manifest");
    }
    if (hex64(xxh3_64(tensor.bytes)) != found->second) {
      damaged(path, "the checksum of `" + printable(tensor.name) + "` is wrong");
    }
    file.forget(tensor);
  }
  return file;
}

std::string load_state(const fs::path& path, const ManifestFile& expected) {
  std::string text = read_file(path, kMaxSmallFileBytes);
  if (sha256_hex(text) != expected.sha256) damaged(path, "its SHA-256 is wrong");
  return text;
}

}  // namespace

std::string step_name(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
  return name;
}

const SafetensorsFile& LoadedCheckpoint::file(std::string_view stem) const {
  for (const auto& [name, file] : files) {
    if (name == stem) return file;
  }
  throw Error(ExitCode::kBadData,
              directory.string() + " has no " + std::string(stem) + ".safetensors",
              "it holds weights only: use it for eval, infer or train.init_from");
}

CheckpointStore::CheckpointStore(fs::path run_directory)
    : directory_(run_directory / "checkpoints"), beside_(run_directory / kBesideLock) {}

fs::path CheckpointStore::path_of(int64_t step) const {
  return directory_ / step_name(step);
}

fs::path CheckpointStore::save(const CheckpointContent& content, const std::string& name) {
  check_name(name);
  refuse_link();
  if (make_folder(directory_)) sync_folder(directory_.parent_path());
  const fs::path target = directory_ / (name.empty() ? step_name(content.step) : name);
  const fs::path staging = aside(directory_, kStagingPrefix, target.filename().string());
  fs::path replaced;
  try {
    require_room(directory_, content);
    make_folder(staging);
    write_files(staging, content);
    if (fs::exists(fs::symlink_status(target))) {
      replaced = replace_folder(staging, target);
    } else {
      rename_folder(staging, target);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(staging, ignored);
    throw;
  }
  sync_folder(directory_);
  if (!replaced.empty()) {
    try {
      remove_folder(replaced);
    } catch (const Error& error) {
      log::warn("the checkpoint is saved, the one it replaces stays: " + error.message());
    }
  }
  return target;
}

std::vector<int64_t> CheckpointStore::step_folders() const {
  std::vector<int64_t> found;
  for (const std::string& name : names_in(directory_)) {
    if (const auto step = step_of(name)) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> found = step_folders();
  std::erase_if(found, [&](int64_t step) { return !fs::exists(path_of(step) / kManifestName); });
  return found;
}

LoadedCheckpoint CheckpointStore::load(const fs::path& directory, CheckpointPart part) {
  const auto manifest = Manifest::read(directory);
  LoadedCheckpoint loaded{.directory = directory,
                          .step = manifest.step,
                          .run_id = manifest.run_id,
                          .config_hash = manifest.config_hash,
                          .provenance = manifest.provenance,
                          .state_json = "",
                          .files = {}};
  if (const auto step = step_of(directory.filename().string()); step && *step != manifest.step) {
    damaged(directory / kManifestName, "is of step " + std::to_string(manifest.step));
  }
  for (const auto& expected : manifest.files) {
    const fs::path path = directory / expected.name;
    if (part == CheckpointPart::kModel && expected.name == kOptimizer) continue;
    verify_size(path, expected);
    if (expected.name == kState) {
      loaded.state_json = load_state(path, expected);
    } else {
      loaded.files.emplace_back(path.stem().string(), load_tensors(path, expected, manifest));
    }
  }
  return loaded;
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest(bool quarantine) {
  auto candidates = step_folders();
  std::reverse(candidates.begin(), candidates.end());
  std::vector<std::string> reasons;
  for (const int64_t step : candidates) {
    try {
      return load(path_of(step));
    } catch (const NewerFormat&) {
      throw;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      reasons.emplace_back(error.what());
      log::warn("checkpoint " + step_name(step) + " is not valid and is left out: " + error.what());
    }
    if (quarantine) {
      rename_folder(path_of(step), aside(directory_, kQuarantinePrefix, step_name(step)));
      sync_folder(directory_);
    }
  }
  // Those moved aside earlier count too: the next run must not begin again without being told.
  for (const std::string& name : names_in(directory_)) {
    if (candidates.empty() && name.starts_with(kQuarantinePrefix)) {
      reasons.push_back(name + " was moved aside earlier");
    }
  }
  if (reasons.empty()) return std::nullopt;
  throw Error(ExitCode::kBadData,
              directory_.string() + ": none of the " +
                  counted(static_cast<int64_t>(reasons.size()), "checkpoint") +
                  " is valid; the newest: " + reasons.front(),
              quarantine ? "they are renamed to bad-…; remove those to train from the start"
                         : "train again, or restore the folder from a copy");
}

void CheckpointStore::prune(const std::vector<int64_t>& keep) {
  refuse_link();
  bool renamed = false;
  for (const int64_t step : steps()) {
    if (std::find(keep.begin(), keep.end(), step) != keep.end()) continue;
    rename_folder(path_of(step), aside(directory_, kTrashPrefix, step_name(step)));
    renamed = true;
  }
  if (renamed) sync_folder(directory_);
  remove_stale();
}

void CheckpointStore::require_space(uint64_t checkpoint_bytes, int64_t num_checkpoints) const {
  std::error_code error;
  fs::path place = directory_;
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  const fs::space_info space = fs::space(place.empty() ? fs::path(".") : place, error);
  if (error) return;  // a file system that does not tell
  const int64_t there = std::min(static_cast<int64_t>(steps().size()), num_checkpoints);
  const int64_t wanted = num_checkpoints - there + 1;
  const uint64_t needed = checkpoint_bytes * static_cast<uint64_t>(wanted);
  if (space.available >= needed) return;
  throw Error(ExitCode::kIo,
              directory_.string() + ": " +
                  counted(wanted, there > 0 ? "more checkpoint" : "checkpoint") + " of " +
                  human_bytes(checkpoint_bytes) + (wanted == 1 ? " needs " : " need ") +
                  human_bytes(needed) + ", the disk has " + human_bytes(space.available) + " free",
              "free some space, give another --run folder, or lower train.keep_last and "
              "train.keep_best");
}

void CheckpointStore::remove_stale() {
  refuse_link();
  // First the names, then the look at the lock: a process that takes it afterwards has none of
  // them.
  auto names = names_in(directory_);
  if (FileLock::is_held(beside_)) std::erase_if(names, is_of_another_writer);
  restore_replaced(directory_, names);
  for (const std::string& name : names) {
    if (name.starts_with(kStagingPrefix) || name.starts_with(kTrashPrefix)) {
      remove_folder(directory_ / name);
    }
  }
}

FileLock CheckpointStore::save_beside_training() const {
  return FileLock::wait(beside_);
}

// Pruning removes folders: behind a link they may be those of another run.
void CheckpointStore::refuse_link() const {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(directory_, error))) return;
  throw Error(ExitCode::kUsage,
              directory_.string() +
                  ": is a symbolic link, and checkpoints are written to and removed "
                  "from a folder of their own only",
              "put the folder itself there; where the disk is too small, let the run folder be the "
              "link");
}

}  // namespace stretto::store
