#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/byte_stream.h"

namespace stretto::data {
namespace {

constexpr size_t kBlockBytes = size_t{128} << 10;
constexpr int64_t kMaxMembers = 1'000'000;
constexpr size_t kMaxSuggestions = 1000;

class ZipMember final : public ByteStream {
 public:
  ZipMember(const std::filesystem::path& archive, const std::string& member)
      : name_(archive.string() + ":" + member), archive_(archive_read_new()), guard_(name_) {
    if (archive_ == nullptr) throw std::bad_alloc();
    // Zip alone: libarchive knows dozens of formats, and each is a surface for hostile files.
    if (archive_read_support_format_zip_seekable(archive_.get()) != ARCHIVE_OK ||
        archive_read_open_filename(archive_.get(), archive.c_str(), kBlockBytes) != ARCHIVE_OK) {
      throw_damaged();
    }
    find(archive, member);
  }

  size_t read(char* buffer, size_t capacity) override {
    const la_ssize_t got = archive_read_data(archive_.get(), buffer, capacity);
    if (got < 0) throw_damaged();
    guard_.take(buffer, static_cast<size_t>(got), compressed_bytes_);
    return static_cast<size_t>(got);
  }

 private:
  void find(const std::filesystem::path& archive, const std::string& member) {
    std::error_code ignored;
    compressed_bytes_ = std::filesystem::file_size(archive, ignored);
    std::vector<std::string> names;
    for (int64_t i = 0; i < kMaxMembers; ++i) {
      archive_entry* entry = nullptr;
      const int result = archive_read_next_header(archive_.get(), &entry);
      if (result == ARCHIVE_EOF) throw_missing(archive, member, names);
      if (result != ARCHIVE_OK && result != ARCHIVE_WARN) throw_damaged();
      const char* path = archive_entry_pathname(entry);
      if (path == nullptr) path = archive_entry_pathname_utf8(entry);  // in a locale without UTF-8
      if (path == nullptr) continue;
      if (member == path && archive_entry_filetype(entry) == AE_IFREG) {
        if (archive_entry_is_encrypted(entry) != 0) {
          throw Error(ExitCode::kUsage, name_ + ": the member is encrypted",
                      "decrypt it and name the plain file");
        }
        return;
      }
      if (names.size() < kMaxSuggestions) names.emplace_back(path);
    }
    throw Error(ExitCode::kBadData, archive.string() + ": more than 1,000,000 members",
                "unpack the file you need and name it");
  }

  [[noreturn]] void throw_missing(const std::filesystem::path& archive, const std::string& member,
                                  const std::vector<std::string>& names) const {
    const std::string near = closest(member, names);
    std::string advice;
    if (!near.empty()) {
      advice = "did you mean `" + printable(near) + "`?";
    } else {
      const size_t shown = std::min<size_t>(names.size(), 8);
      advice = "the archive holds: " + printable(join({names.data(), shown}, ", "), 400) +
               (names.size() > shown ? ", …" : "");
    }
    throw Error(ExitCode::kUsage,
                archive.string() + ": no regular file `" + printable(member) + "` inside", advice);
  }

  [[noreturn]] void throw_damaged() const {
    const char* reason = archive_error_string(archive_.get());
    throw Error(ExitCode::kBadData,
                name_ + ": cannot read the zip archive" +
                    (reason == nullptr ? "" : " (" + printable(reason) + ")"),
                "`unzip -t` shows whether the archive is whole");
  }

  struct Free {
    void operator()(archive* handle) const { archive_read_free(handle); }
  };
  std::string name_;
  std::unique_ptr<archive, Free> archive_;
  uint64_t compressed_bytes_ = 0;
  ExpansionGuard guard_;
};

}  // namespace

std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& archive,
                                            const std::string& member) {
  return std::make_unique<ZipMember>(archive, member);
}

}  // namespace stretto::data
