#include "data/archives/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr size_t kTarBlockBytes = size_t{256} << 10;
/// A declared size is trusted up to here: more memory is taken as bytes come.
constexpr uint64_t kTrustedBytes = uint64_t{1} << 24;

struct FreeArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};

std::string other_kind(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr || archive_entry_filetype(entry) == AE_IFLNK) {
    return "a link";
  }
  if (archive_entry_filetype(entry) != AE_IFREG) return "no regular file";
  return archive_entry_sparse_count(entry) > 0 ? "a sparse file" : "";
}

}  // namespace

struct TarReader::State {
  State(std::unique_ptr<ByteStream> stream, std::string name_of_archive)
      : name(std::move(name_of_archive)),
        bytes(std::move(stream)),
        buffer(kTarBlockBytes),
        handle(archive_read_new()) {
    if (!handle) throw std::bad_alloc();
    // Tar alone: libarchive knows dozens of formats, and each is a surface for hostile files.
    if (archive_read_support_format_tar(handle.get()) != ARCHIVE_OK) throw std::bad_alloc();
    require(archive_read_open(handle.get(), this, nullptr, &State::fill, nullptr));
  }

  static la_ssize_t fill(archive* handle, void* self, const void** block) {
    auto& state = *static_cast<State*>(self);
    try {
      *block = state.buffer.data();
      return static_cast<la_ssize_t>(state.bytes->read(state.buffer.data(), state.buffer.size()));
    } catch (...) {  // no exception may pass through C
      state.failure = std::current_exception();
      archive_set_error(handle, EIO, "the stream failed");
      return -1;
    }
  }

  void require(la_ssize_t result) {
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    // ARCHIVE_RETRY, in between, is a damaged header: libarchive would search on behind it.
    if (result >= ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* reason = archive_error_string(handle.get());
    throw Error(ExitCode::kBadData,
                name + ": cannot read the tar archive" +
                    (reason == nullptr ? "" : " (" + printable(reason) + ")"),
                "`tar -tf` shows whether the archive is whole");
  }

  std::string name;
  std::unique_ptr<ByteStream> bytes;
  std::vector<char> buffer;
  std::exception_ptr failure;
  std::unique_ptr<archive, FreeArchive> handle;
};

TarReader::TarReader(std::unique_ptr<ByteStream> bytes, std::string name)
    : state_(std::make_unique<State>(std::move(bytes), std::move(name))) {}
TarReader::~TarReader() = default;

bool TarReader::next(TarMember& member) {
  archive* handle = state_->handle.get();
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(handle, &entry);
  if (result == ARCHIVE_EOF && !state_->failure) return false;
  state_->require(result);
  const char* path = archive_entry_pathname(entry);
  if (path == nullptr) path = archive_entry_pathname_utf8(entry);  // in a locale without UTF-8
  member = {.name = path == nullptr ? "" : path};
  member.size = static_cast<uint64_t>(std::max<int64_t>(0, archive_entry_size(entry)));
  // All headers of a member have been consumed when libarchive gives it.
  member.offset = static_cast<uint64_t>(archive_filter_bytes(handle, 0));
  if (archive_entry_filetype(entry) == AE_IFDIR) {
    member.kind = TarMember::Kind::kFolder;
    return true;
  }
  member.other = other_kind(entry);
  if (!member.other.empty()) member.kind = TarMember::Kind::kOther;
  return true;
}

size_t TarReader::read(char* buffer, size_t capacity) {
  const la_ssize_t got = archive_read_data(state_->handle.get(), buffer, capacity);
  state_->require(got);
  return static_cast<size_t>(std::max<la_ssize_t>(0, got));
}

std::string TarReader::read_all(const TarMember& member) {
  std::string bytes;
  bytes.reserve(std::min(member.size, kTrustedBytes));
  std::vector<char> part(std::min<uint64_t>(kTarBlockBytes, member.size + 1));
  while (const size_t got = read(part.data(), part.size())) bytes.append(part.data(), got);
  return bytes;
}

}  // namespace stretto::data
