#include "base/named_output.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/atomic_file.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/io_error.h"
#include "base/stdout.h"
#include "base/text.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as Linux follows
constexpr size_t kCopyBytes = size_t{1} << 18;

/// What a path leads to.
struct Place {
  fs::path path;  ///< behind all links
  bool through_link = false;
  int own_descriptor = -1;              ///< of this process, where the path names one
  std::optional<struct stat> status{};  ///< nothing: there is no file yet

  bool is_regular() const { return status && S_ISREG(status->st_mode); }
};

// "/dev/fd/3", however it is spelt: links of /proc lead to open files, and not to their names.
int own_descriptor_at(const fs::path& path) {
  std::error_code error;
  const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
  if (error || folder.filename() != "fd") return -1;
  // Its number here may be another one than getpid() gives, where /proc is of an outer container.
  const std::string own = fs::canonical("/proc/self", error).native();
  const std::string& where = folder.native();
  if (error) return -1;
  if (where != own + "/fd" && !where.starts_with(own + "/task/")) return -1;
  const std::string name = path.filename().native();
  int number = -1;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
  return failure == std::errc() && end == name.data() + name.size() ? number : -1;
}

// Open files of other processes are opened by their links, too.
bool is_link_of_proc(const fs::path& path) {
  std::error_code error;
  const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
  return !error && folder.filename() == "fd" && folder.native().starts_with("/proc/");
}

Place place_of(const fs::path& named) {
  Place place{.path = named};
  for (int i = 0;; ++i) {
    place.own_descriptor = own_descriptor_at(place.path);
    if (place.own_descriptor >= 0 || is_link_of_proc(place.path)) break;
    struct stat status {};
    if (::lstat(place.path.c_str(), &status) != 0) return place;
    if (!S_ISLNK(status.st_mode)) break;
    if (i == kMostLinks) throw_io_error("cannot write", named, ELOOP);
    std::error_code error;
    const fs::path target = fs::read_symlink(place.path, error);
    if (error) throw_io_error("cannot read the link", place.path, error.value());
    place.path = place.path.parent_path() / target;  // an absolute target replaces all before it
    place.through_link = true;
  }
  struct stat status {};
  const bool own = place.own_descriptor >= 0;
  const int found =
      own ? ::fstat(place.own_descriptor, &status) : ::stat(place.path.c_str(), &status);
  if (found == 0) place.status = status;
  if (found != 0 && own) throw_io_error("cannot write", named, errno);
  return place;
}

fs::path folder_of(const Place& place) {
  const fs::path folder = place.path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

bool may_write(const fs::path& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

bool may_make_files_in(const fs::path& folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// A file that a container binds to its place, say: nothing can be renamed over it.
bool is_root_of_mount(const fs::path& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) != 0) return false;
#ifdef STATX_ATTR_MOUNT_ROOT
  constexpr uint64_t kMountRoot = STATX_ATTR_MOUNT_ROOT;
#else
  constexpr uint64_t kMountRoot = 0x2000;
#endif
  return (status.stx_attributes & kMountRoot) != 0;
}

bool can_be_replaced(const Place& place) {
  if (!place.status) return true;
  if (is_root_of_mount(place.path) || !may_make_files_in(folder_of(place))) return false;
  const bool keeps_owner = place.status->st_uid == ::geteuid() || ::geteuid() == 0;
  return keeps_owner || !may_write(place.path);
}

[[noreturn]] void throw_folder(const fs::path& path) {
  throw Error(ExitCode::kIo, "cannot write " + printable(path.native(), 4096) + ": is a folder",
              "give the path of a file");
}

void put_all(int file, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = retried([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (count < 0) throw_io_error("cannot write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void put_all_at(int file, uint64_t offset, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = retried(
        [&] { return ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) throw_io_error("cannot write", path, errno);
    offset += static_cast<uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

// Without a name, so that a process that is killed leaves nothing.
Descriptor nameless_file() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  Descriptor file(
      retried([&] { return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }));
  if (file) return file;
  std::string name = (folder / "stretto-XXXXXX").native();
  file.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) throw_io_error("cannot create", folder / "stretto-XXXXXX", errno);
  ::unlink(name.c_str());
  return file;
}

// The kernel judges links in shared folders (protected_symlinks) and permissions of their targets
// when a link is opened by its name.
void open_once(const fs::path& named) {
  const Descriptor file(retried(
      [&] { return ::open(named.c_str(), O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC, 0666); }));
  if (!file) throw_io_error("cannot write", named, errno);
}

// Lets the reader of a pipe see its end where nothing was written: it may wait for a writer. Does
// nothing for anything else, and where there is no reader.
void end_pipe(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  const Descriptor end(
      retried([&] { return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
}

/// The pipes that a command is to write and has not opened, for end_named_pipes().
struct UnopenedPipes {
  std::mutex mutex;
  std::set<fs::path> paths;
};

UnopenedPipes& unopened_pipes() {
  static UnopenedPipes pipes;
  return pipes;
}

void remember_pipe(const Place& place, const fs::path& named) {
  if (!place.status || !S_ISFIFO(place.status->st_mode)) return;
  const std::lock_guard lock(unopened_pipes().mutex);
  unopened_pipes().paths.insert(named);
}

// Its reader sees its end when it is closed.
void forget_pipe(const fs::path& named) {
  const std::lock_guard lock(unopened_pipes().mutex);
  unopened_pipes().paths.erase(named);
}

/// By device and number.
struct FilesThatAreRead {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> files;
};

FilesThatAreRead& files_that_are_read() {
  static FilesThatAreRead read;
  return read;
}

void require_unread(const Place& place, const fs::path& named) {
  if (!place.is_regular()) return;
  auto& read = files_that_are_read();
  const std::lock_guard lock(read.mutex);
  if (!read.files.contains({place.status->st_dev, place.status->st_ino})) return;
  throw Error(ExitCode::kUsage,
              printable(named.native(), 4096) + " is read by this command, and stays as it is",
              "give another file for the output");
}

}  // namespace

class NamedOutput::Target {
 public:
  virtual ~Target() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual void write_at(uint64_t offset, std::string_view bytes) = 0;
  virtual void publish() = 0;

  static std::unique_ptr<Target> open(const fs::path& named);

 private:
  class Replaced;
  class Device;
  class Held;
};

/// A regular file.
class NamedOutput::Target::Replaced final : public Target {
 public:
  explicit Replaced(const Place& place) : file_(place.path) {
    if (place.status) file_.take_attributes_of(place.path);
  }
  void write(std::string_view bytes) override { file_.write(bytes); }
  void write_at(uint64_t offset, std::string_view bytes) override { file_.write_at(offset, bytes); }
  void publish() override { file_.publish(); }

 private:
  AtomicFile file_;
};

/// A device without an order of bytes, such as /dev/null.
class NamedOutput::Target::Device final : public Target {
 public:
  Device(Descriptor file, fs::path path) : file_(std::move(file)), path_(std::move(path)) {}
  void write(std::string_view bytes) override { put_all(file_.get(), bytes, path_); }
  void write_at(uint64_t offset, std::string_view bytes) override {
    put_all_at(file_.get(), offset, bytes, path_);
  }
  void publish() override {}

 private:
  Descriptor file_;
  fs::path path_;
};

/// What takes bytes one after the other, or must keep its content until all are there.
class NamedOutput::Target::Held final : public Target {
 public:
  Held(Place place, fs::path named)
      : place_(std::move(place)), named_(std::move(named)), held_(nameless_file()) {
    if (place_.own_descriptor < 0) remember_pipe(place_, named_);
  }

  void write(std::string_view bytes) override { put_all(held_.get(), bytes, named_); }
  void write_at(uint64_t offset, std::string_view bytes) override {
    put_all_at(held_.get(), offset, bytes, named_);
  }

  void publish() override {
    if (place_.own_descriptor >= 0) {
      flush_stdout();
      return copy_to(place_.own_descriptor);
    }
    const int truncates = place_.is_regular() ? O_TRUNC : 0;
    const Descriptor file(retried(
        [&] { return ::open(named_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | truncates); }));
    if (!file) throw_io_error("cannot write", named_, errno);
    forget_pipe(named_);
    copy_to(file.get());
    if (place_.is_regular() && retried([&] { return ::fsync(file.get()); }) != 0) {
      throw_io_error("cannot fsync", named_, errno);
    }
  }

 private:
  void copy_to(int file) {
    std::array<char, kCopyBytes> buffer{};
    for (off_t offset = 0;;) {
      const ssize_t count =
          retried([&] { return ::pread(held_.get(), buffer.data(), buffer.size(), offset); });
      if (count < 0) throw_io_error("cannot read what was kept of", named_, errno);
      if (count == 0) return;
      put_all(file, {buffer.data(), static_cast<size_t>(count)}, named_);
      offset += count;
    }
  }

  Place place_;
  fs::path named_;
  Descriptor held_;
};

std::unique_ptr<NamedOutput::Target> NamedOutput::Target::open(const fs::path& named) {
  Place place = place_of(named);
  if (place.status && S_ISDIR(place.status->st_mode)) throw_folder(named);
  if (place.own_descriptor >= 0) return std::make_unique<Held>(std::move(place), named);
  require_unread(place, named);
  if (!place.status || place.is_regular()) {
    if (is_link_of_proc(place.path)) return std::make_unique<Held>(std::move(place), named);
    if (place.through_link) open_once(named);
    if (can_be_replaced(place)) return std::make_unique<Replaced>(place);
    if (!may_write(place.path)) throw_io_error("cannot write", named, errno);
    return std::make_unique<Held>(std::move(place), named);
  }
  if (S_ISCHR(place.status->st_mode) || S_ISBLK(place.status->st_mode)) {
    Descriptor file(
        retried([&] { return ::open(named.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC); }));
    if (!file) throw_io_error("cannot write", named, errno);
    if (::lseek(file.get(), 0, SEEK_CUR) >= 0) {
      return std::make_unique<Device>(std::move(file), named);
    }
  } else if (!may_write(place.path)) {
    throw_io_error("cannot write", named, errno);
  }
  return std::make_unique<Held>(std::move(place), named);
}

NamedOutput::NamedOutput(fs::path path) : target_(Target::open(path)) {}

NamedOutput::~NamedOutput() = default;

void NamedOutput::write(std::string_view bytes) {
  target_->write(bytes);
}

void NamedOutput::write_at(uint64_t offset, std::string_view bytes) {
  target_->write_at(offset, bytes);
}

void NamedOutput::publish() {
  target_->publish();
}

void keep_from_outputs(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return;
  auto& read = files_that_are_read();
  const std::lock_guard lock(read.mutex);
  read.files.emplace(status.st_dev, status.st_ino);
}

void write_named_output(const fs::path& path, std::string_view bytes) {
  NamedOutput output(path);
  output.write(bytes);
  output.publish();
}

bool is_file_output(const fs::path& path) {
  const Place place = place_of(path);
  if (place.own_descriptor >= 0 || is_link_of_proc(place.path)) return false;
  return !place.status || place.is_regular();
}

void require_output_place(const fs::path& path, const std::string& option) {
  if (path.empty()) return;
  const Place place = place_of(path);
  if (place.own_descriptor >= 0) return;
  remember_pipe(place, path);
  if (place.status && S_ISDIR(place.status->st_mode)) throw_folder(path);
  const fs::path folder = folder_of(place);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ExitCode::kIo,
                "cannot write " + printable(path.native(), 4096) + ": no folder " +
                    printable(folder.native(), 4096),
                "make it, or give another file to " + option);
  }
  const bool replaced = place.is_regular() && may_make_files_in(folder);
  if (!(place.status ? replaced || may_write(place.path) : may_make_files_in(folder))) {
    throw_io_error("cannot write", path, errno);
  }
}

void end_named_pipes() {
  const std::lock_guard lock(unopened_pipes().mutex);
  for (const fs::path& path : unopened_pipes().paths) end_pipe(path);
}

}  // namespace stretto
