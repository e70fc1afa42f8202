#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace stretto::data {

/// The bytes of one input, decompressed, from the first to the last.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Fills at most `capacity` bytes of `buffer`. @return how many; 0 only at the end.
  virtual size_t read(char* buffer, size_t capacity) = 0;
};

/// What a path of `[data]` names: a file, or a member of a zip archive (`FILE.zip:MEMBER`).
struct InputPath {
  std::filesystem::path file;
  std::string member;
};
InputPath parse_input_path(const std::string& path);

/// Opens a path of `[data]`: plain, `.gz` (any number of members), `.zst` (any number of frames) or
/// a zip member, which is streamed and never written anywhere. Memory is bounded for any input.
///
/// Nothing but a regular file: text is read more than once, and a pipe can be read once.
/// Throws Error(kUsage) when there is no such file or member, Error(kIo) when it cannot be
/// read, Error(kBadData), later, from read(), when it is damaged, cut off, or a decompression bomb.
std::unique_ptr<ByteStream> open_bytes(const std::string& path);

/// The bytes of a regular file as they are. Throws as open_bytes() does.
std::unique_ptr<ByteStream> open_plain(const std::filesystem::path& path);

/// What the bytes of a file mean by its ending: decompressed, or as they are. Throws as
/// open_bytes().
std::unique_ptr<ByteStream> unpacked(std::unique_ptr<ByteStream> stored, const std::string& path);

/// Decompression of another stream; `name` stands in messages. Throws as open_bytes() does.
std::unique_ptr<ByteStream> make_gunzip(std::unique_ptr<ByteStream> compressed, std::string name);
std::unique_ptr<ByteStream> make_unzstd(std::unique_ptr<ByteStream> compressed, std::string name);
std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& archive,
                                            const std::string& member);

/// All bytes of a stream. @param name  what messages call it
/// Throws Error(kBadData) when there are more than `max_bytes`.
std::string read_whole(ByteStream& bytes, const std::string& name, size_t max_bytes);

/// Stops decompression bombs. What comes out may cost at most 64 MiB and 200 times what went in
/// (text shrinks three- to tenfold), where each line costs 32 bytes besides its own: a program that
/// holds lines needs those, so that a file of empty lines is no way round.
class ExpansionGuard {
 public:
  explicit ExpansionGuard(std::string name) : name_(std::move(name)) {}
  /// Some more came out. Throws Error(kBadData) naming the input when it is too much.
  /// @param bytes_in  that went in so far, in all
  void take(const char* data, size_t size, uint64_t bytes_in);

 private:
  std::string name_;
  uint64_t cost_ = 0;
};

}  // namespace stretto::data
