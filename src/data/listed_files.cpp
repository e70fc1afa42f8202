#include "data/listed_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <numeric>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/cache_files.h"
#include "data/cache_folder.h"
#include "data/manifest.h"
#include "data/on_threads.h"
#include "data/start_memory.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListReadBytes = size_t{1} << 18;
constexpr size_t kShownPath = 4096;
constexpr uint64_t kWorthTelling = uint64_t{1} << 30;
/// What the files of a list hold, in its order.
struct Content {
  uint64_t size = 0, hash = 0;
};
using Contents = std::vector<Content>;

constexpr uint64_t kListMemoryMagic = 0x3153454C49465453;  // "STFILES1"
constexpr size_t kMaxListMemoryBytes = size_t{1} << 32;

std::string shown_path(const fs::path& path) {
  return printable(path.native(), kShownPath);
}

[[noreturn]] void throw_changing(const fs::path& path, const char* what) {
  throw Error(ExitCode::kBadData, shown_path(path) + ": " + what + " while it was being read",
              "start again when nothing writes to it any more");
}

mode_t mode_for(fs::file_type type) {
  switch (type) {
    case fs::file_type::symlink:
      return S_IFLNK;
    case fs::file_type::fifo:
      return S_IFIFO;
    case fs::file_type::socket:
      return S_IFSOCK;
    default:
      return S_IFCHR;
  }
}

[[noreturn]] void throw_not_listed(const fs::path& path, mode_t mode) {
  throw Error(ExitCode::kUsage,
              shown_path(path) + ": is " + kind_of(mode) +
                  ", and a folder of data may have folders and regular files alone",
              "move it out of the folder; of a link, put what it leads to in its place");
}

[[noreturn]] void throw_unreadable(const fs::path& folder, const std::error_code& error) {
  if (error == std::errc::no_such_file_or_directory) throw_changing(folder, "a folder vanished");
  throw_io_error("cannot read", folder, error.value());
}

/// The folder without what may follow its name, so that names are what stands behind it.
std::string folder_name(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw Error(ExitCode::kUsage, printable(path, kShownPath) + ": no such folder",
                "paths in a config are relative to the config file; look for a slip in the name");
  }
  if (!fs::is_directory(status)) {
    throw Error(ExitCode::kUsage, printable(path, kShownPath) + ": is a file, a folder is needed",
                "give the folder that has the files");
  }
  std::string name = fs::path(path).lexically_normal().native();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

std::vector<ListedFile> files_below(const std::string& folder) {
  std::vector<ListedFile> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  const size_t begin = folder.size() + (folder.ends_with('/') ? 0 : 1);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    const auto type = entry->symlink_status(error).type();
    if (error) break;
    if (type == fs::file_type::directory) continue;
    if (type == fs::file_type::not_found) throw_changing(entry->path(), "vanished");
    if (type != fs::file_type::regular) throw_not_listed(entry->path(), mode_for(type));
    files.push_back({.name = entry->path().native().substr(begin)});
  }
  if (error) throw_unreadable(folder, error);
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

std::vector<ListedFile> files_of_rows(const DataFile& manifest) {
  std::vector<ListedFile> files;
  for (auto& named : files_named_by(manifest)) {
    files.push_back({.name = std::move(named.path), .line = named.line, .kind = named.kind});
  }
  return files;
}

/// The hash of a file's bytes, of a file that stays as its stamp says.
uint64_t hash_of_bytes(const fs::path& path, const FileStamp& stamp, int flags) {
  const Descriptor file(retried([&] { return ::open(path.c_str(), flags); }));
  // ELOOP: a link took its place.
  if (!file && (errno == ENOENT || errno == ENOTDIR)) throw_changing(path, "vanished");
  if (!file && errno == ELOOP) throw_changing(path, "changed");
  if (!file) throw_io_error("cannot open", path, errno);
  const auto require_stamp = [&] {
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) throw_io_error("cannot look at", path, errno);
    if (stamp_of(info) != stamp) throw_changing(path, "changed");
  };
  require_stamp();
  Xxh3Stream hash;
  std::vector<char> buffer(std::min<uint64_t>(stamp.size + 1, kListReadBytes));
  while (true) {
    const ssize_t got = retried([&] { return ::read(file.get(), buffer.data(), buffer.size()); });
    if (got < 0) throw_io_error("cannot read", path, errno);
    if (got == 0) break;
    hash.update(buffer.data(), static_cast<size_t>(got));
  }
  require_stamp();
  return hash.digest();
}

}  // namespace

ListedFiles::ListedFiles(const DataFile& source, int64_t threads)
    : is_tree_(source.kind == DataKind::kTree),
      source_(is_tree_ ? folder_name(source.path) : source.path),
      files_(is_tree_ ? files_below(source_) : files_of_rows(source)) {
  for_each_on_threads(files_.size(), threads, [&](size_t i) { look_at(files_[i]); });
}

// In a folder a name stands for itself, also one that looks like a member of an archive.
fs::path ListedFiles::path_of(const ListedFile& file) const {
  return is_tree_ ? fs::path(source_) / file.name : parse_input_path(file.name).file;
}

void ListedFiles::look_at(ListedFile& file) const {
  const fs::path path = path_of(file);
  struct stat info {};
  const int failed = (is_tree_ ? ::lstat : ::stat)(path.c_str(), &info) == 0 ? 0 : errno;
  const bool is_gone = failed == ENOENT || failed == ENOTDIR;
  if (is_tree_ && is_gone) throw_changing(path, "vanished");
  if (is_tree_ && failed == 0 && !S_ISREG(info.st_mode)) throw_not_listed(path, info.st_mode);
  if (failed != 0 && !is_gone) throw_io_error("cannot look at", path, failed);
  if (is_gone || !S_ISREG(info.st_mode)) {
    throw Error(ExitCode::kBadData,
                source_ + ":" + std::to_string(file.line) + ": names " + shown_path(path) +
                    ", which is " + (is_gone ? "not there" : kind_of(info.st_mode)),
                "put the file there, or correct the row; relative paths are relative to the "
                "folder of the manifest");
  }
  file.stamp = stamp_of(info);
}

void ListedFiles::read(ListedFile& file, const DigestSetting& setting) const {
  const fs::path path = path_of(file);
  if (file.kind == DataKind::kText && !is_tree_) {
    const FileDigest digest = digest_of(file.name, setting);
    if (file_stamp(path) != file.stamp) throw_changing(path, "changed");
    file.size = digest.bytes;
    file.hash = digest.hash;
    return;
  }
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (is_tree_ ? O_NOFOLLOW : 0);
  file.hash = hash_of_bytes(path, file.stamp, flags);
  file.size = file.stamp.size;
}

/// Two files share it only where name, stamp and kind are equal.
uint64_t ListedFiles::identity_of(const ListedFile& file) {
  const auto& [size, mtime_ns, ctime_ns, inode, device] = file.stamp;
  const std::array<uint64_t, 6> words{size,  mtime_ns, ctime_ns,
                                      inode, device,   static_cast<uint64_t>(file.kind)};
  std::string bytes(reinterpret_cast<const char*>(words.data()), sizeof words);
  bytes += file.name;
  return xxh3_64(bytes);
}

uint64_t ListedFiles::stamp() const {
  Xxh3Stream all;
  for (const auto& file : files_) {
    const uint64_t one = identity_of(file);
    all.update(&one, sizeof one);
  }
  return all.digest();
}

fs::path ListedFiles::memory_path(const fs::path& memory_dir) const {
  const std::string name = fs::absolute(source_).lexically_normal().string();
  return memory_dir / (hex64(xxh3_64(name + (is_tree_ ? "\ntree" : "\nmanifest"))) + ".files");
}

/// Fills in what is remembered. @return the files that are to be read
std::vector<size_t> ListedFiles::take_remembered(const fs::path& memory_dir) {
  std::vector<size_t> open;
  std::unordered_map<uint64_t, size_t> places;  // in the words, of a file's identity
  std::optional<std::vector<uint64_t>> words;
  const fs::path memory = memory_dir.empty() ? fs::path() : memory_path(memory_dir);
  try {
    if (!memory.empty() && is_readable_whole(memory, kMaxListMemoryBytes)) {
      words = unseal_words(read_file(memory, kMaxListMemoryBytes));
    }
  } catch (const Error&) {
    // It cannot be read, or was removed a moment ago: as if there were none.
  }
  constexpr size_t kWordsOfFile = 3;
  if (words && words->size() % kWordsOfFile == 1 && words->front() == kListMemoryMagic) {
    places.reserve(words->size() / kWordsOfFile);
    for (size_t at = 1; at < words->size(); at += kWordsOfFile) places.emplace((*words)[at], at);
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    const auto found = places.find(identity_of(files_[i]));
    if (found == places.end()) {
      open.push_back(i);
      continue;
    }
    files_[i].size = (*words)[found->second + 1];
    files_[i].hash = (*words)[found->second + 2];
  }
  return open;
}

void ListedFiles::remember(const fs::path& memory_dir) const {
  std::vector<uint64_t> words{kListMemoryMagic};
  for (const auto& file : files_) {
    if (!is_settled(file.stamp)) continue;
    words.insert(words.end(), {identity_of(file), file.size, file.hash});
  }
  refusal_of([&] {
    make_cache_directory(memory_dir);
    write_file_atomic(memory_path(memory_dir), seal_words(std::move(words)));
  });
}

std::string ListedFiles::name_in_start() const {
  return "files of " + fs::absolute(source_).lexically_normal().string() +
         (is_tree_ ? "\ntree " : "\nmanifest ") + hex64(stamp());
}

bool ListedFiles::take_from_start(const std::string& name) {
  const auto found = std::static_pointer_cast<const Contents>(StartMemory::find_read(name));
  if (!found || found->size() != files_.size()) return false;
  for (size_t i = 0; i < files_.size(); ++i) {
    files_[i].size = (*found)[i].size;
    files_[i].hash = (*found)[i].hash;
  }
  return true;
}

void ListedFiles::keep_for_start(const std::string& name) const {
  auto contents = std::make_shared<Contents>();
  contents->reserve(files_.size());
  for (const auto& file : files_) contents->push_back({.size = file.size, .hash = file.hash});
  StartMemory::keep_read(name, std::move(contents));
}

void ListedFiles::hash(const DigestSetting& setting) {
  const std::string name = name_in_start();
  if (take_from_start(name)) return;
  const auto open = take_remembered(setting.memory_dir);
  const uint64_t bytes =
      std::accumulate(open.begin(), open.end(), uint64_t{0},
                      [&](uint64_t sum, size_t number) { return sum + files_[number].stamp.size; });
  if (bytes >= kWorthTelling) {
    log::info("reads " + counted(std::ssize(open), "file") + " of " +
              printable(source_, kShownPath) + ", " + human_bytes(bytes) +
              ", for the digests of data.json");
  }
  for_each_on_threads(open.size(), setting.threads,
                      [&](size_t i) { read(files_[open[i]], setting); });
  if (!open.empty() && !setting.memory_dir.empty()) remember(setting.memory_dir);
  keep_for_start(name);
}

}  // namespace stretto::data
