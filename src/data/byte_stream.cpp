#include "data/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/named_output.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr size_t kInputBytes = size_t{128} << 10;
constexpr uint64_t kFreeExpansion = uint64_t{64} << 20;
constexpr uint64_t kMaxRatio = 200;
constexpr uint64_t kCostOfLine = 32;  // of a std::string, and no more for short text

[[noreturn]] void throw_damaged(const std::string& name, const std::string& what) {
  throw Error(ExitCode::kBadData, name + ": " + what,
              "fetch or compress the file again; `gzip -t`, `zstd -t` or `unzip -t` shows whether "
              "it is whole");
}

class PlainFile final : public ByteStream {
 public:
  explicit PlainFile(std::filesystem::path path) : path_(std::move(path)) {
    // A pipe must not keep anybody waiting for its writer.
    file_.reset(retried([&] { return ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
    if (!file_ && (errno == ENOENT || errno == ENOTDIR)) {
      throw Error(ExitCode::kUsage, path_.string() + ": no such file",
                  "paths in a config are relative to the config file; look for a slip in the name");
    }
    if (!file_ && errno != ENXIO) throw_io_error("cannot open", path_, errno);  // ENXIO: a socket
    struct stat info {};
    if (!file_ || ::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      throw Error(ExitCode::kUsage, path_.string() + ": not a regular file",
                  "text is read more than once: give a file, not a folder or a pipe");
    }
    keep_from_outputs(info);
    ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  size_t read(char* buffer, size_t capacity) override {
    const ssize_t got = retried([&] { return ::read(file_.get(), buffer, capacity); });
    if (got < 0) throw_io_error("cannot read", path_, errno);
    return static_cast<size_t>(got);
  }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// The part that the two decompressors share: a refilled buffer of compressed bytes.
class Refill {
 public:
  explicit Refill(std::unique_ptr<ByteStream> source) : source_(std::move(source)) {}

  /// @return false at the end of the compressed bytes
  bool fill() {
    if (at_ < end_) return true;
    at_ = 0;
    end_ = source_->read(buffer_.data(), buffer_.size());
    total_ += end_;
    return end_ > 0;
  }
  const char* data() const { return buffer_.data() + at_; }
  size_t size() const { return end_ - at_; }
  void consume(size_t bytes) { at_ += bytes; }
  uint64_t total() const { return total_; }

 private:
  std::unique_ptr<ByteStream> source_;
  std::vector<char> buffer_ = std::vector<char>(kInputBytes);
  size_t at_ = 0, end_ = 0;
  uint64_t total_ = 0;
};

class Gunzip final : public ByteStream {
 public:
  Gunzip(std::unique_ptr<ByteStream> source, std::string name)
      : input_(std::move(source)), name_(std::move(name)), guard_(name_) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  size_t read(char* buffer, size_t capacity) override {
    while (!finished_) {
      if (!input_.fill()) {
        if (in_member_ || !any_member_) throw_damaged(name_, "the gzip data end too early");
        finished_ = true;
        break;
      }
      if (!in_member_ && any_member_ && skip_padding()) continue;
      const size_t got = inflate_some(buffer, capacity);
      if (got > 0) return got;
    }
    return 0;
  }

 private:
  /// Zero bytes after the last member are padding of tapes and block devices, as gzip takes it.
  bool skip_padding() {
    if (*input_.data() != '\0') return false;
    input_.consume(1);
    return true;
  }

  size_t inflate_some(char* buffer, size_t capacity) {
    capacity = std::min(capacity, size_t{1} << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(input_.size());
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(capacity);
    in_member_ = any_member_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_.consume(input_.size() - stream_.avail_in);
    const size_t got = capacity - stream_.avail_out;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      in_member_ = false;
      inflateReset(&stream_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw_damaged(name_, "the gzip data are damaged");
    }
    guard_.take(buffer, got, input_.total());
    return got;
  }

  Refill input_;
  std::string name_;
  z_stream stream_{};
  bool in_member_ = false, any_member_ = false, finished_ = false;
  ExpansionGuard guard_;
};

class Unzstd final : public ByteStream {
 public:
  Unzstd(std::unique_ptr<ByteStream> source, std::string name)
      : input_(std::move(source)),
        name_(std::move(name)),
        stream_(ZSTD_createDStream()),
        guard_(name_) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }

  size_t read(char* buffer, size_t capacity) override {
    ZSTD_outBuffer out{buffer, capacity, 0};
    while (out.pos == 0) {
      // The library may still hold output when all input is consumed.
      const bool more = input_.fill();
      ZSTD_inBuffer in{input_.data(), more ? input_.size() : 0, 0};
      if (!more && at_frame_end_) return 0;
      const size_t result = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(result) != 0) {
        throw_damaged(name_,
                      std::string("the zstd data are damaged (") + ZSTD_getErrorName(result) + ")");
      }
      input_.consume(in.pos);
      at_frame_end_ = result == 0;
      if (!more && out.pos == 0 && !at_frame_end_) {
        throw_damaged(name_, "the zstd data end too early");
      }
    }
    guard_.take(buffer, out.pos, input_.total());
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  Refill input_;
  std::string name_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool at_frame_end_ = false;
  ExpansionGuard guard_;
};

}  // namespace

void ExpansionGuard::take(const char* data, size_t size, uint64_t bytes_in) {
  const auto lines = static_cast<uint64_t>(std::count(data, data + size, '\n'));
  cost_ += size + lines * kCostOfLine;
  if (cost_ <= kFreeExpansion || (cost_ - kFreeExpansion) / kMaxRatio <= bytes_in) return;
  throw Error(ExitCode::kBadData,
              name_ + ": expands more than " + std::to_string(kMaxRatio) +
                  "-fold (each line counts as " + std::to_string(kCostOfLine) +
                  " bytes more), which no text does",
              "if this file is really meant, decompress it yourself and name the plain file");
}

InputPath parse_input_path(const std::string& path) {
  constexpr std::string_view kMark = ".zip:";
  const size_t at = path.find(kMark);
  std::error_code ignored;
  if (at == std::string::npos || std::filesystem::exists(path, ignored)) return {path, ""};
  return {path.substr(0, at + kMark.size() - 1), path.substr(at + kMark.size())};
}

std::unique_ptr<ByteStream> make_gunzip(std::unique_ptr<ByteStream> compressed, std::string name) {
  return std::make_unique<Gunzip>(std::move(compressed), std::move(name));
}

std::unique_ptr<ByteStream> make_unzstd(std::unique_ptr<ByteStream> compressed, std::string name) {
  return std::make_unique<Unzstd>(std::move(compressed), std::move(name));
}

std::unique_ptr<ByteStream> open_plain(const std::filesystem::path& path) {
  return std::make_unique<PlainFile>(path);
}

std::unique_ptr<ByteStream> open_bytes(const std::string& path) {
  const InputPath input = parse_input_path(path);
  auto file = open_plain(input.file);  // says what is wrong with the file itself
  if (!input.member.empty()) return open_zip_member(input.file, input.member);
  return unpacked(std::move(file), path);
}

std::unique_ptr<ByteStream> unpacked(std::unique_ptr<ByteStream> stored, const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".gz") return make_gunzip(std::move(stored), path);
  if (extension == ".zst") return make_unzstd(std::move(stored), path);
  if (extension == ".zip") {
    throw Error(ExitCode::kUsage, path + ": which member of the archive?",
                "write FILE.zip:MEMBER; `unzip -l` lists the members");
  }
  return stored;
}

std::string read_whole(ByteStream& bytes, const std::string& name, size_t max_bytes) {
  std::string whole;
  std::vector<char> buffer(kInputBytes);
  while (const size_t got = bytes.read(buffer.data(), buffer.size())) {
    if (got > max_bytes - whole.size()) {
      throw Error(ExitCode::kBadData,
                  name + ": more than " + human_bytes(max_bytes) + ", which are all held in memory",
                  "split the file");
    }
    whole.append(buffer.data(), got);
  }
  return whole;
}

}  // namespace stretto::data
