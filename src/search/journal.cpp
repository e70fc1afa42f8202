#include "search/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::search {
namespace {

constexpr size_t kHashDigits = 16;
constexpr size_t kMaxLineBytes = size_t{8} << 20;  // a whole configuration stands in one

std::string line_hash(const std::string& before, std::string_view json) {
  return hex64(xxh3_64(before + std::string(json)));
}

// The entry of a line whose hash is right; absent for any other.
std::optional<JournalEntry> entry_of(std::string_view line, const std::string& before) {
  if (line.size() <= kHashDigits || line[kHashDigits] != ' ') return std::nullopt;
  const std::string_view json = line.substr(kHashDigits + 1);
  if (line.substr(0, kHashDigits) != line_hash(before, json)) return std::nullopt;
  try {
    parse_json(json, "journal", kMaxLineBytes);  // depth and repeated keys
  } catch (const Error&) {
    return std::nullopt;
  }
  auto entry = JournalEntry::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object() || !entry.contains("event") || !entry["event"].is_string()) {
    return std::nullopt;
  }
  return entry;
}

int write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    size_t size = bytes.size();
    const int fault = failpoint("journal.write", size);
    const ssize_t written = fault != 0 ? -1 : ::write(fd, bytes.data(), size);
    const int error = fault != 0 ? fault : errno;
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (written == 0 || error != EINTR) {
      return written == 0 ? ENOSPC : error;
    }
  }
  return 0;
}

int sync(int fd) {
  if (const int fault = failpoint("journal.fsync")) return fault;
  return retried([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
}

}  // namespace

JournalContent parse_journal(std::string_view text, const std::string& where) {
  JournalContent content;
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    const bool whole = end != std::string_view::npos;
    const auto entry =
        whole ? entry_of(text.substr(begin, end - begin), content.last_hash) : std::nullopt;
    if (!entry) {
      if (content.entries.empty()) {
        throw Error(ExitCode::kBadData,
                    where +
                        ":1: the line was damaged, edited or cut short, and without it nothing "
                        "of the journal can be trusted",
                    "put the file back from a copy: trials that are ahead of it keep what they "
                    "have trained. Without a copy, search into another folder");
      }
      if (whole && end + 1 < text.size()) {
        throw Error(
            ExitCode::kBadData,
            where + ":" + std::to_string(number) +
                ": the line was damaged or edited, its checksum is wrong",
            "put the file back from a copy; what follows this line cannot be trusted. Trials "
            "that are ahead of the copy keep what they have trained");
      }
      content.is_torn = true;
      return content;
    }
    content.last_hash = std::string(text.substr(begin, kHashDigits));
    content.entries.push_back(*entry);
    begin = end + 1;
    content.bytes = begin;
  }
  return content;
}

Journal::Journal(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path_, ignored))) return;
  file_ = open_own_file(path_, O_WRONLY | O_APPEND);
  content_ = read_journal(path_);
  if (content_.entries.empty()) file_.reset();  // an empty file is none
  if (!content_.is_torn) return;
  const auto size = static_cast<off_t>(content_.bytes);
  if (retried([&] { return ::ftruncate(file_.get(), size); }) != 0) {
    throw_io_error("cannot cut the torn last line off", path_, errno);
  }
  if (const int error = sync(file_.get())) throw_io_error("cannot write to", path_, error);
}

void Journal::append(const JournalEntry& entry) {
  const std::string json = entry.dump();
  const std::string hash = line_hash(content_.last_hash, json);
  const std::string line = hash + " " + json + "\n";
  if (file_) {
    write_durably(line);
  } else {
    write_file_atomic(path_, line);
    file_ = open_own_file(path_, O_WRONLY | O_APPEND);
  }
  content_.bytes += line.size();
  content_.last_hash = hash;
  content_.entries.push_back(entry);
}

void Journal::write_durably(const std::string& line) {
  int error = write_whole(file_.get(), line);
  if (error == 0) error = sync(file_.get());
  if (error == 0) return;
  if (::ftruncate(file_.get(), static_cast<off_t>(content_.bytes)) != 0) {
    // Nothing more can be done here; the next start leaves a torn last line out.
  }
  throw_io_error("cannot write to", path_, error);
}

JournalContent read_journal(const std::filesystem::path& path) {
  return parse_journal(read_file(path), path.string());
}

}  // namespace stretto::search
