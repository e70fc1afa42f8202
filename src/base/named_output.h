#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace stretto {

/// An output that a user names: of options such as `--predictions FILE`. Commands write all of
/// their outputs through this class. Files of Stretto's own go through AtomicFile.
///
/// The path means what it means to a shell:
/// - Symbolic links are followed, and the target of a link that leads nowhere is made.
/// - A regular file is replaced at once (AtomicFile), and keeps owner, mode and access list. Where
///   it cannot be replaced, but written, publish() writes over its content. That is so in a folder
///   that cannot be written, for a file of another user, and for the root of a mount.
/// - A device, a pipe or a socket is opened and written through; nothing is renamed over it.
/// - `/dev/stdout`, `/dev/fd/N` and `/proc/self/fd/N` are this process's own descriptors, which are
///   written where they stand. What stdout still holds goes first.
///
///     NamedOutput output(path);
///     output.write(bytes);
///     output.publish();
///
/// Members throw Error(kIo) with the system's reason. A pipe is opened by publish(), which waits
/// for its reader; until then its bytes are in a nameless file of the temporary folder. Where it is
/// not published, end_named_pipes() ends it.
class NamedOutput {
 public:
  explicit NamedOutput(std::filesystem::path path);
  ~NamedOutput();
  NamedOutput(const NamedOutput&) = delete;
  NamedOutput& operator=(const NamedOutput&) = delete;

  void write(std::string_view bytes);  ///< at the end
  /// Writes over bytes that were written before.
  void write_at(uint64_t offset, std::string_view bytes);
  void publish();

 private:
  class Target;
  std::unique_ptr<Target> target_;
};

/// Writes a whole output.
void write_named_output(const std::filesystem::path& path, std::string_view bytes);

/// Whether write_named_output() makes or replaces a regular file. False of a device, a pipe, a
/// folder, and a descriptor of a process (/dev/stdout), whatever this one leads to.
bool is_file_output(const std::filesystem::path& path);

/// A regular file that this process reads: from now on, to make a NamedOutput for it throws
/// Error(kUsage), lest results take the place of what they are of.
/// @param status  of the open file, as fstat(2) gives it
void keep_from_outputs(const struct stat& status);

/// For the beginning of a command, since hours of work later it would be too late: throws
/// Error(kIo) where write_named_output() must fail, because `path` is a folder, its folder is
/// missing, or neither of the two may be written. An empty path is no output.
/// @param option  for the advice, "--predictions"
void require_output_place(const std::filesystem::path& path, const std::string& option);

/// For a command that fails: the readers of pipes that it was to write, and did not publish, see
/// the end of an empty pipe. Without it they would wait for ever. These are the pipes that a
/// NamedOutput was made for, or that require_output_place() was asked about. Waits for nobody, and
/// throws nothing.
void end_named_pipes();

}  // namespace stretto
