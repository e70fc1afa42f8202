#include "store/torch_file.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMembers = 100'000;
constexpr size_t kMaxTorchFileBytes = size_t{16} << 30;
constexpr size_t kMaxStorageKey = 20;  // of an unpacked archive: digits
// Tied tensors share a storage; a model has few of them.
constexpr uint64_t kMaxShares = 8;
constexpr std::string_view kPickleName = "data.pkl";
constexpr std::string_view kStorageFolder = "data/";
constexpr std::string_view kByteOrder = "byteorder";
// The number with which files before 1.6 begin, and their version, as they are pickled.
constexpr std::string_view kOldMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr int kNumOldHeads = 3;  // magic number, version, sizes of integers

[[noreturn]] void bad_torch_file(std::string_view where, const std::string& what) {
  throw Error(ExitCode::kBadData, std::string(where) + ": not a file of torch.save: " + what,
              "the file is damaged, cut off or of another kind; safetensors are read too");
}

struct FreeArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

[[noreturn]] void bad_archive(archive* handle, std::string_view where) {
  const char* reason = archive_error_string(handle);
  bad_torch_file(where, std::string("the zip archive cannot be read") +
                            (reason == nullptr ? "" : " (" + printable(reason) + ")"));
}

/// Appends a member. torch.save compresses nothing: all members together are at most the archive.
std::string read_member(archive* handle, size_t& budget, std::string_view where) {
  constexpr size_t kStep = size_t{1} << 20;
  std::string bytes;
  for (;;) {
    const size_t at = bytes.size();
    bytes.resize(at + std::min(kStep + at, budget + 1));
    const la_ssize_t got = archive_read_data(handle, bytes.data() + at, bytes.size() - at);
    if (got < 0) bad_archive(handle, where);
    bytes.resize(at + static_cast<size_t>(got));
    if (static_cast<size_t>(got) > budget) {
      bad_torch_file(where, "its members are larger than the archive: they are compressed");
    }
    budget -= static_cast<size_t>(got);
    if (got > 0) continue;
    // An archive may have 100,000 empty members, each of which would keep the room of a step.
    if (bytes.size() < bytes.capacity() / 2) bytes.shrink_to_fit();
    return bytes;
  }
}

/// Members by their names below the folder that has data.pkl.
std::map<std::string, std::string> unzip(std::string_view bytes, std::string_view where) {
  const Archive handle(archive_read_new());
  if (handle == nullptr) throw std::bad_alloc();
  if (archive_read_support_format_zip_seekable(handle.get()) != ARCHIVE_OK ||
      archive_read_open_memory(handle.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
    bad_archive(handle.get(), where);
  }
  std::map<std::string, std::string> members;
  size_t budget = bytes.size();
  for (size_t i = 0;; ++i) {
    if (i == kMaxMembers) bad_torch_file(where, "more than 100,000 members");
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(handle.get(), &entry);
    if (result == ARCHIVE_EOF) break;
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) bad_archive(handle.get(), where);
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr || archive_entry_filetype(entry) != AE_IFREG) continue;
    const std::string whole(path);
    const size_t slash = whole.find('/');
    std::string name = slash == std::string::npos ? whole : whole.substr(slash + 1);
    if (name.starts_with("code/") || name == "constants.pkl") {
      throw Error(ExitCode::kBadData,
                  std::string(where) + ": a TorchScript program, not a dict of tensors",
                  "save `model.state_dict()`, best as safetensors");
    }
    const bool needed =
        name == kPickleName || name == kByteOrder || name.starts_with(kStorageFolder);
    if (!needed) continue;
    if (members.contains(name)) bad_torch_file(where, "`" + printable(name) + "` stands twice");
    members[name] = read_member(handle.get(), budget, where);
  }
  return members;
}

std::string member_of(const PickledTensor& tensor) {
  return std::string(kStorageFolder) + std::string(tensor.storage);
}

/// The elements of a tensor with gaps, one after the other.
std::string gathered(const PickledTensor& tensor, std::string_view storage) {
  const auto width = static_cast<size_t>(size_of(tensor.dtype));
  const auto count = static_cast<size_t>(tensor.num_elements());
  std::string bytes;
  bytes.reserve(count * width);
  std::vector<int64_t> index(tensor.sizes.size(), 0);
  int64_t at = tensor.offset;
  for (size_t i = 0; i < count; ++i) {
    bytes.append(storage.substr(static_cast<size_t>(at) * width, width));
    for (size_t d = index.size(); d-- > 0;) {
      at += tensor.strides[d];
      if (++index[d] < tensor.sizes[d]) break;
      at -= tensor.strides[d] * tensor.sizes[d];
      index[d] = 0;
    }
  }
  return bytes;
}

}  // namespace

TorchFile::TorchFile(const fs::path& path) {
  if (fs::is_directory(path)) {
    read_folder(path);
  } else {
    bytes_ = read_file(path, kMaxTorchFileBytes);
    read_bytes(path.string());
  }
}

TorchFile::TorchFile(std::string bytes, std::string_view where) : bytes_(std::move(bytes)) {
  read_bytes(where);
}

void TorchFile::read_bytes(std::string_view where) {
  if (bytes_.starts_with("PK\x03\x04")) {
    read_archive(where);
  } else if (bytes_.starts_with("\x80\x02")) {
    read_old_format(where);
  } else {
    bad_torch_file(where, "it begins with neither of the two known ways");
  }
}

void TorchFile::read_archive(std::string_view where) {
  members_ = unzip(bytes_, where);
  bytes_ = std::string();  // each member has its own bytes now
  const auto pickle = members_.find(std::string(kPickleName));
  if (pickle == members_.end()) bad_torch_file(where, "there is no data.pkl in it");
  const auto order = members_.find(std::string(kByteOrder));
  if (order != members_.end() && trim(order->second) != "little") {
    bad_torch_file(where, "its numbers are not little-endian");
  }
  Storages storages;
  for (const auto& [name, bytes] : members_) {
    if (name.starts_with(kStorageFolder)) storages[name.substr(kStorageFolder.size())] = bytes;
  }
  read_dict(parse_pickled_tensors(pickle->second, where), storages, where);
}

void TorchFile::read_folder(const fs::path& folder) {
  const fs::path pickle = folder / kPickleName;
  members_[std::string(kPickleName)] = read_file(pickle, kMaxWholeFileBytes);
  if (fs::exists(folder / kByteOrder) && trim(read_file(folder / kByteOrder, 100)) != "little") {
    bad_torch_file(folder.string(), "its numbers are not little-endian");
  }
  const std::string& dict = members_[std::string(kPickleName)];
  Storages storages;
  const PickledDict tensors = parse_pickled_tensors(dict, pickle.string());
  for (const auto& tensor : tensors.tensors) {
    const std::string key(tensor.storage.substr(0, kMaxStorageKey + 1));
    const bool is_number = !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || key.size() > kMaxStorageKey) {
      bad_torch_file(pickle.string(), "`" + printable(key) + "` is no name of a storage");
    }
    const std::string name = member_of(tensor);
    if (!members_.contains(name)) members_[name] = read_file(folder / name, kMaxTorchFileBytes);
    storages[key] = members_[name];
  }
  read_dict(tensors, storages, pickle.string());
}

// Pickles of a magic number, a version and sizes, the dict, the keys of its storages; then each
// storage in that order: its number of elements in 8 bytes, and the elements.
void TorchFile::read_old_format(std::string_view where) {
  std::string_view rest = bytes_;
  for (int i = 0; i < kNumOldHeads; ++i) {
    const PickledPlain head = parse_pickled_plain(rest, where);
    if (i == 0 && head.integer != kOldMagic) {
      // A plain pickle: what it holds tells more than what it lacks.
      parse_pickled_tensors(rest, where);
      bad_torch_file(where, "a pickle alone");
    }
    rest.remove_prefix(head.num_bytes);
  }
  const PickledDict dict = parse_pickled_tensors(rest, where);
  rest.remove_prefix(dict.num_bytes);
  const PickledPlain keys = parse_pickled_plain(rest, where);
  rest.remove_prefix(keys.num_bytes);
  std::unordered_map<std::string_view, DType> dtypes;
  for (const auto& storage : dict.storages) dtypes.emplace(storage.key, storage.dtype);
  Storages storages;
  for (const auto& key : keys.strings) {
    const auto dtype = dtypes.find(key);
    if (dtype == dtypes.end()) bad_torch_file(where, "a storage that its pickle does not have");
    if (storages.contains(key)) bad_torch_file(where, "a storage that stands twice");
    constexpr size_t kCountBytes = 8;
    const auto width = static_cast<uint64_t>(size_of(dtype->second));
    uint64_t count = 0;
    if (rest.size() < kCountBytes) bad_torch_file(where, "it ends too early");
    for (size_t i = kCountBytes; i-- > 0;) count = count << 8 | static_cast<uint8_t>(rest[i]);
    rest.remove_prefix(kCountBytes);
    if (count > rest.size() / width) bad_torch_file(where, "it ends too early");
    storages.insert_or_assign(std::string(key), rest.substr(0, static_cast<size_t>(count * width)));
    rest.remove_prefix(static_cast<size_t>(count * width));
  }
  read_dict(dict, storages, where);
}

void TorchFile::read_dict(const PickledDict& dict, const Storages& storages,
                          std::string_view where) {
  uint64_t budget = 0;  // copies together are at most what was read
  for (const auto& [key, bytes] : storages) budget += bytes.size();
  uint64_t shares = budget > UINT64_MAX / kMaxShares ? UINT64_MAX : kMaxShares * budget;
  for (const auto& tensor : dict.tensors) {
    const std::string shown = "`" + printable(tensor.name) + "`";
    const auto storage = storages.find(tensor.storage);
    if (storage == storages.end()) bad_torch_file(where, shown + " has no storage");
    const auto width = static_cast<uint64_t>(size_of(tensor.dtype));
    if (static_cast<uint64_t>(tensor.storage_size) > storage->second.size() / width) {
      bad_torch_file(where, "the storage of " + shown + " is shorter than the file says");
    }
    const auto num_bytes = static_cast<uint64_t>(tensor.num_elements()) * width;
    if (num_bytes > shares) {
      bad_torch_file(where, "many tensors share one storage: at " + shown +
                                " they have more than 8 times the bytes of all storages");
    }
    shares -= num_bytes;
    TensorView view{.name = std::string(tensor.name),
                    .dtype = tensor.dtype,
                    .shape = tensor.sizes,
                    .bytes = {}};
    if (num_bytes == 0 || tensor.is_contiguous()) {
      const uint64_t begin = num_bytes == 0 ? 0 : static_cast<uint64_t>(tensor.offset) * width;
      view.bytes =
          storage->second.substr(static_cast<size_t>(begin), static_cast<size_t>(num_bytes));
    } else {
      if (num_bytes > budget) bad_torch_file(where, "many tensors share one storage, with gaps");
      budget -= num_bytes;
      view.bytes = copies_.emplace_back(gathered(tensor, storage->second));
    }
    tensors_.push_back(std::move(view));
  }
}

}  // namespace stretto::store
