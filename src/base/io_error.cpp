#include "base/io_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace stretto {
namespace {

std::string advice_for(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "the disk is full: free some space, or write elsewhere";
    case EDQUOT:
      return "your disk quota is used up: delete something, or write elsewhere";
    case EACCES:
    case EPERM:
      return "check who owns the file and its folder, and their permissions (ls -ld)";
    case EROFS:
      return "the file system is mounted read-only: write elsewhere";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise the limit with `ulimit -n 4096`";
    case EIO:
      return "the disk or the network file system reports a fault: see the kernel log (dmesg)";
    case ENOENT:
    case ENOTDIR:
      return "its folder does not exist: create it, or give another path";
    case EEXIST:
      return "something of that name is already there: move it away, or give another path";
    case ENAMETOOLONG:
      return "use a shorter path";
    default:
      return "look at the path and its folder (ls -ld), and at the kernel log (dmesg)";
  }
}

}  // namespace

void throw_io_error(std::string_view action, const std::filesystem::path& path, int errno_value) {
  throw Error(ExitCode::kIo,
              std::string(action) + " " + printable(path.native(), 4096) + ": " +
                  std::generic_category().message(errno_value),
              advice_for(errno_value));
}

}  // namespace stretto
