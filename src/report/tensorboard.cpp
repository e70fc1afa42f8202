#include "report/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "report/crc32c.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

/// The few Protocol Buffers wire types that an Event needs.
class Message {
 public:
  Message& varint(int field, uint64_t value) {
    append_varint(static_cast<uint64_t>(field) << 3 | 0);
    append_varint(value);
    return *this;
  }
  Message& fixed64(int field, double value) {
    return fixed(field, 1, std::bit_cast<uint64_t>(value));
  }
  Message& fixed32(int field, float value) {
    return fixed(field, 5, std::bit_cast<uint32_t>(value));
  }
  Message& bytes(int field, std::string_view value) {
    append_varint(static_cast<uint64_t>(field) << 3 | 2);
    append_varint(value.size());
    out_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.out_); }
  const std::string& str() const { return out_; }

 private:
  void append_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  template <typename Word>
  Message& fixed(int field, int wire_type, Word value) {
    append_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
    for (size_t i = 0; i < sizeof value; ++i) out_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string out_;
};

// Field numbers of tensorflow/core/util/event.proto and tensorflow/core/framework/{summary,tensor,
// tensor_shape}.proto.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace session_log {
constexpr int kStatus = 1, kStatusStart = 1;
}
namespace summary {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
constexpr int kPluginData = 1, kPluginName = 1;
}  // namespace summary
namespace tensor {
constexpr int kDtype = 1, kShape = 2, kStringValue = 8, kDtypeString = 7, kShapeDim = 2,
              kDimSize = 1;
}

double wall_time() {
  using std::chrono::duration, std::chrono::system_clock;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

Message new_event(int64_t step) {
  return Message().fixed64(event::kWallTime, wall_time()).varint(event::kStep, step);
}

void append_little_endian(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>(value >> (8 * i));
}

/// length (8 bytes), masked CRC of it, data, masked CRC of it.
std::string framed(const std::string& data) {
  std::string record;
  append_little_endian(&record, data.size(), 8);
  append_little_endian(&record, masked_crc32c(record), 4);
  record += data;
  append_little_endian(&record, masked_crc32c(data), 4);
  return record;
}

constexpr std::string_view kPrefix = "events.out.tfevents.";

/// TensorBoard reads the files of a folder in the order of their names, so the seconds in ours must
/// be later than those of all that are there, even when a run is resumed within a second.
int64_t seconds_for_name(const std::filesystem::path& directory) {
  int64_t seconds = static_cast<int64_t>(wall_time());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t other = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), other);
    // A name from the far future (a wrong clock) is not followed for ever.
    if (other < seconds + 86400) seconds = std::max(seconds, other + 1);
  }
  return seconds;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name;
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

/// @return 0, or errno.
int write_all(int fd, std::string_view bytes) {
  if (const int simulated = failpoint("tensorboard.write")) return simulated;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

constexpr size_t kBufferBytes = 32 << 10;
constexpr double kFlushSeconds = 2;

}  // namespace

struct TensorBoardWriter::Impl {
  std::filesystem::path directory, path;
  int fd = -1;
  std::string buffer;
  int64_t buffered_records = 0, lost_records = 0;
  double last_flush = 0;

  /// @return 0, or errno. A new file starts with the version record that readers look for.
  int open() {
    if (fd >= 0) ::close(fd);
    path = directory / (std::string(kPrefix) + std::to_string(seconds_for_name(directory)) + "." +
                        host_name() + "." + std::to_string(::getpid()));
    fd = retried([&] {
      return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    });
    if (fd < 0) return errno;
    const Message version = Message().fixed64(event::kWallTime, wall_time());
    return write_all(fd,
                     framed(Message(version).bytes(event::kFileVersion, "brain.Event:2").str()));
  }

  void add(const Message& event) {
    buffer += framed(event.str());
    ++buffered_records;
    if (buffer.size() >= kBufferBytes || wall_time() - last_flush > kFlushSeconds) flush();
  }

  /// Curves are a courtesy: what cannot be written is counted, told, and never stops a training.
  /// The next records go to a new file, since readers give up a file behind a broken record.
  void flush() {
    last_flush = wall_time();
    if (buffer.empty()) return;
    int error = fd >= 0 ? 0 : open();
    if (error == 0) error = write_all(fd, buffer);
    if (error != 0) {
      if (lost_records == 0) {
        log::warn("cannot write to " + path.string() + ": " + std::strerror(error) +
                  "; training goes on, TensorBoard will miss some points");
      }
      lost_records += buffered_records;
      if (fd >= 0) ::close(fd);
      fd = -1;
    }
    buffer.clear();
    buffered_records = 0;
  }
};

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& directory, int64_t resume_step)
    : impl_(std::make_unique<Impl>()) {
  impl_->directory = directory;
  make_directories(directory);
  if (const int code = impl_->open()) {
    const std::filesystem::path path = impl_->path;
    if (impl_->fd >= 0) ::close(impl_->fd);
    throw_io_error("cannot write to", path, code);
  }
  // Also at the very beginning: a run may be killed before its first checkpoint and begin anew.
  const Message start = Message().varint(session_log::kStatus, session_log::kStatusStart);
  impl_->add(new_event(resume_step + 1).message(event::kSessionLog, start));
  impl_->flush();
}

TensorBoardWriter::~TensorBoardWriter() {
  impl_->flush();
  if (impl_->lost_records > 0) {
    log::warn("TensorBoard misses " + counted(impl_->lost_records, "record") +
              " that could not be written to " + impl_->directory.string());
  }
  if (impl_->fd >= 0) ::close(impl_->fd);
}

void TensorBoardWriter::scalar(const std::string& tag, int64_t step, double value) {
  const Message entry = Message()
                            .bytes(summary::kTag, valid_utf8(tag))
                            .fixed32(summary::kSimpleValue, static_cast<float>(value));
  impl_->add(new_event(step).message(event::kSummary, Message().message(summary::kValue, entry)));
}

void TensorBoardWriter::text(const std::string& tag, int64_t step, const std::string& markdown) {
  const Message plugin = Message().bytes(summary::kPluginName, "text");
  const Message one = Message().varint(tensor::kDimSize, 1);
  const Message string_tensor =
      Message()
          .varint(tensor::kDtype, tensor::kDtypeString)
          .message(tensor::kShape, Message().message(tensor::kShapeDim, one))
          .bytes(tensor::kStringValue, valid_utf8(markdown));
  const Message entry =
      Message()
          .bytes(summary::kTag, valid_utf8(tag))
          .message(summary::kTensor, string_tensor)
          .message(summary::kMetadata, Message().message(summary::kPluginData, plugin));
  impl_->add(new_event(step).message(event::kSummary, Message().message(summary::kValue, entry)));
}

void TensorBoardWriter::flush() {
  impl_->flush();
}

}  // namespace stretto::report
