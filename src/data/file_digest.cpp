#include "data/file_digest.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/cache_folder.h"
#include "data/content_hash.h"
#include "data/on_threads.h"
#include "data/start_memory.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = 4096;
constexpr size_t kDigestReadBytes = size_t{1} << 20;
constexpr size_t kDigestHexDigits = 16;
constexpr size_t kMaxDigestMemoryBytes = size_t{128} << 10;
constexpr uint64_t kWorthRemembering = uint64_t{1} << 20;  // smaller files are read as fast
/// Odd, so that no power of it is 0: a change of one piece changes the hash of its block.
constexpr uint64_t kPieceFactor = 0x9E3779B97F4A7C15u;

/// Cuts content that comes in parts into pieces, whatever the parts are.
class PieceCutter {
 public:
  explicit PieceCutter(DataKind kind) : has_lines_(kind == DataKind::kText) {}

  /// @param each  called as each(hash of the piece, its bytes, whether it ends a line)
  template <class Each>
  void update(const char* data, size_t size, const Each& each) {
    while (size > 0) {
      const size_t room = kPieceBytes - begun_.size();
      const size_t reach = std::min(size, room);
      const void* end = has_lines_ ? std::memchr(data, '\n', reach) : nullptr;
      const size_t length =
          end == nullptr ? reach : static_cast<size_t>(static_cast<const char*>(end) - data) + 1;
      const bool is_whole = end != nullptr || length == room;
      if (is_whole && begun_.empty()) {
        each(xxh3_64(data, length), length, end != nullptr);
      } else {
        begun_.append(data, length);
        if (is_whole) finish(each, end != nullptr);
      }
      data += length;
      size -= length;
    }
  }
  /// What is left behind the last whole piece.
  template <class Each>
  void finish(const Each& each, bool ends_line = false) {
    if (begun_.empty()) return;
    each(xxh3_64(begun_), begun_.size(), ends_line);
    begun_.clear();
  }

 private:
  bool has_lines_;
  std::string begun_;
};

/// Reads a stream to its end as pieces.
template <class Each>
void for_each_piece(ByteStream& bytes, DataKind kind, const Each& each) {
  PieceCutter cutter(kind);
  std::vector<char> buffer(kDigestReadBytes);
  while (const size_t got = bytes.read(buffer.data(), buffer.size())) {
    cutter.update(buffer.data(), got, each);
  }
  cutter.finish(each);
}

/// A place in the content, and what was counted up to it.
struct PlaceInText {
  uint64_t pieces = 0, bytes = 0, line_ends = 0;
  bool at_line_begin = true;

  void advance(uint64_t size, bool ends_line) {
    ++pieces;
    bytes += size;
    line_ends += ends_line ? 1 : 0;
    at_line_begin = ends_line;
  }
  uint64_t lines() const { return line_ends + (at_line_begin ? 0 : 1); }
};

std::string shown_number(uint64_t value) {
  return with_thousands(static_cast<int64_t>(value));
}

/// The lines of a block that differs; in the middle of a long line its bytes in the file, too.
std::string lines_between(const PlaceInText& begin, const PlaceInText& end) {
  const uint64_t first = begin.line_ends + 1, last = std::max(end.lines(), first);
  if (first != last) return "lines " + shown_number(first) + " to " + shown_number(last);
  const bool is_whole_line = end.at_line_begin || end.bytes - begin.bytes < kPieceBytes;
  if (begin.at_line_begin && is_whole_line) return "line " + shown_number(first);
  return "line " + shown_number(first) + ", bytes " + shown_number(begin.bytes + 1) + " to " +
         shown_number(end.bytes) + " of the content";
}

/// How places are named: of text by lines, else by bytes.
class PlaceWords {
 public:
  explicit PlaceWords(DataKind kind) : has_lines_(kind == DataKind::kText) {}

  std::string next_to(const PlaceInText& place) const {
    return has_lines_ ? "line " + shown_number(place.line_ends + 1)
                      : "byte " + shown_number(place.bytes + 1);
  }
  std::string end_at(const PlaceInText& place) const {
    return has_lines_ ? "line " + shown_number(place.lines()) : "byte " + shown_number(place.bytes);
  }
  std::string between(const PlaceInText& begin, const PlaceInText& end) const {
    if (has_lines_) return lines_between(begin, end);
    return "bytes " + shown_number(begin.bytes + 1) + " to " + shown_number(end.bytes);
  }
  /// " (3 lines now, 2 then)"; empty where there are as many.
  std::string sizes(const PlaceInText& now, const FileDigest& before) const {
    const uint64_t have = has_lines_ ? now.lines() : now.bytes;
    const uint64_t had = has_lines_ ? before.lines : before.bytes;
    if (have == had) return "";
    return " (" + counted(static_cast<int64_t>(have), has_lines_ ? "line" : "byte") + " now, " +
           shown_number(had) + " then)";
  }

 private:
  bool has_lines_;
};

/// Compares pieces with the blocks of a digest, until the first block that differs.
class DifferenceFinder {
 public:
  DifferenceFinder(const FileDigest& before, DataKind kind) : before_(before), words_(kind) {}

  void add(uint64_t hash, uint64_t size, bool ends_line) {
    if (found_.empty() && at_.pieces == before_.pieces) {
      found_ = "has more at its end, from " + words_.next_to(at_) + " on";
    }
    if (in_block_ == 0) block_begin_ = at_;
    at_.advance(size, ends_line);
    if (!found_.empty()) return;
    block_hash_ = block_hash_ * kPieceFactor + hash;
    ++in_block_;
    if (in_block_ == before_.pieces_per_block || at_.pieces == before_.pieces) end_block();
  }

  std::string finish() {
    if (found_.empty() && at_.pieces < before_.pieces) {
      found_ = in_block_ == 0
                   ? "ends after " + words_.end_at(at_)
                   : "first differs in " + words_.next_to(block_begin_) + " or behind it";
    }
    return found_.empty() ? found_ : found_ + words_.sizes(at_, before_);
  }

 private:
  void end_block() {
    if (block_hash_ != before_.blocks.at(block_)) {
      found_ = "first differs in " + words_.between(block_begin_, at_);
    }
    ++block_;
    block_hash_ = in_block_ = 0;
  }

  const FileDigest& before_;
  PlaceWords words_;
  PlaceInText at_, block_begin_;
  size_t block_ = 0;
  uint64_t block_hash_ = 0, in_block_ = 0;
  std::string found_;
};

uint64_t piece_factor_to(uint64_t power) {
  uint64_t result = 1;
  for (uint64_t factor = kPieceFactor; power > 0; power /= 2, factor *= factor) {
    if (power % 2 == 1) result *= factor;
  }
  return result;
}

/// How a path's bytes become content: "", ".gz", ".zip:MEMBER".
std::string wrapping_of(const std::string& path) {
  const InputPath input = parse_input_path(path);
  if (!input.member.empty()) return ".zip:" + input.member;
  const std::string extension = input.file.extension().string();
  return extension == ".gz" || extension == ".zst" ? extension : "";
}

/// Hashes what is read through it.
class HashedBytes final : public ByteStream {
 public:
  HashedBytes(std::unique_ptr<ByteStream> bytes, std::shared_ptr<Xxh3Stream> hash)
      : bytes_(std::move(bytes)), hash_(std::move(hash)) {}
  size_t read(char* buffer, size_t capacity) override {
    const size_t got = bytes_->read(buffer, capacity);
    hash_->update(buffer, got);
    return got;
  }

 private:
  std::unique_ptr<ByteStream> bytes_;
  std::shared_ptr<Xxh3Stream> hash_;
};

FileDigest digest_of_stream(ByteStream& bytes, DataKind kind = DataKind::kText) {
  DigestBuilder builder(kMostDigestBlocks, kind);
  std::vector<char> buffer(kDigestReadBytes);
  while (const size_t got = bytes.read(buffer.data(), buffer.size())) {
    builder.update(buffer.data(), got);
  }
  return builder.finish();
}

FileDigest read_digest_of_bytes(const fs::path& file) {
  FileDigest digest = digest_of_stream(*open_plain(file), DataKind::kBytes);
  digest.stored_hash = digest.hash;
  return digest;
}

/// Reads a file once; an archive twice, whose other members are part of its hash.
FileDigest read_digest(const std::string& path, const fs::path& memory_dir) {
  const InputPath input = parse_input_path(path);
  const std::string wrapping = wrapping_of(path);
  if (!wrapping.empty() && input.member.empty()) {
    const auto stored = std::make_shared<Xxh3Stream>();
    const auto bytes =
        unpacked(std::make_unique<HashedBytes>(open_plain(input.file), stored), path);
    FileDigest digest = digest_of_stream(*bytes);
    digest.stored_hash = stored->digest();
    return digest;
  }
  FileDigest digest = digest_of_stream(*open_bytes(path));
  digest.stored_hash =
      wrapping.empty() ? digest.hash : content_hashes({input.file}, memory_dir, 1).front();
  return digest;
}

/// The memory of one path: what its file was like, the digest, and a checksum of both.
std::string digest_memory_text(const std::string& stamp, const FileDigest& digest) {
  const nlohmann::json known{{"stamp", stamp}, {"digest", digest_to_json(digest)}};
  const std::string text = known.dump() + "\n";
  return text + hex64(xxh3_64(text)) + "\n";
}

/// Where a file of this size is remembered; empty = nowhere, as where no folder can be made.
fs::path memory_for(const FileStamp& stamp, const DigestSetting& setting) {
  if (setting.memory_dir.empty() || stamp.size < kWorthRemembering) return {};
  const auto refusal = refusal_of([&] { make_cache_directory(setting.memory_dir); });
  return refusal.empty() ? setting.memory_dir : fs::path();
}

/// A path, and how it is packed, or that it is taken as it lies there.
std::string digest_name(const std::string& path, DataKind kind) {
  const std::string reading = kind == DataKind::kBytes ? "bytes" : wrapping_of(path);
  return fs::absolute(path).lexically_normal().string() + "\n" + reading;
}

fs::path digest_memory_path(const fs::path& memory_dir, const std::string& name) {
  return memory_dir / (hex64(xxh3_64(name)) + ".digest");
}

/// Nothing where none is remembered of this stamp: then the file is read.
std::optional<FileDigest> remembered_digest(const fs::path& memory, const std::string& stamp) {
  std::error_code failure;
  if (!fs::is_regular_file(memory, failure)) return std::nullopt;
  try {
    const std::string text = read_file(memory, kMaxDigestMemoryBytes);
    const auto known = nlohmann::json::parse(text.substr(0, text.find('\n')));
    const auto digest = digest_from_json(known.at("digest"));
    if (text == digest_memory_text(stamp, digest)) return digest;
  } catch (const std::exception&) {
    // Damaged, or cut short: as if there were none.
  }
  return std::nullopt;
}

}  // namespace

struct DigestBuilder::State {
  State(size_t most, DataKind kind)
      : most_blocks(most), has_lines(kind == DataKind::kText), cutter(kind) {}

  void add(uint64_t piece_hash, uint64_t size, bool ends_line) {
    at.advance(size, ends_line);
    block_hash = block_hash * kPieceFactor + piece_hash;
    if (++in_block < per_block) return;
    end_block();
    if (blocks.size() == most_blocks) merge();
  }
  void end_block() {
    blocks.push_back(block_hash);
    block_hash = in_block = 0;
  }
  /// Two blocks become one, with the hash that it has when it is made of all its pieces.
  void merge() {
    for (size_t i = 0; i < blocks.size() / 2; ++i) {
      blocks[i] = blocks[2 * i] * block_factor + blocks[2 * i + 1];
    }
    blocks.resize(blocks.size() / 2);
    block_factor *= block_factor;
    per_block *= 2;
  }

  size_t most_blocks;
  bool has_lines;
  PieceCutter cutter;
  Xxh3Stream content;
  PlaceInText at;
  uint64_t per_block = 1, block_factor = kPieceFactor;  // the factor to the power of per_block
  uint64_t block_hash = 0, in_block = 0;
  std::vector<uint64_t> blocks;
};

DigestBuilder::DigestBuilder(size_t most_blocks, DataKind kind)
    : state_(std::make_unique<State>(most_blocks, kind)) {}
DigestBuilder::~DigestBuilder() = default;

void DigestBuilder::update(const char* data, size_t size) {
  state_->content.update(data, size);
  state_->cutter.update(data, size, [this](auto... piece) { state_->add(piece...); });
}

FileDigest DigestBuilder::finish() {
  state_->cutter.finish([this](auto... piece) { state_->add(piece...); });
  if (state_->in_block > 0) state_->end_block();
  return {.bytes = state_->at.bytes,
          .lines = state_->has_lines ? state_->at.lines() : 0,
          .hash = state_->content.digest(),
          .pieces = state_->at.pieces,
          .pieces_per_block = state_->per_block,
          .blocks = std::move(state_->blocks)};
}

FileDigest coarsened(FileDigest digest, size_t most_blocks) {
  auto& blocks = digest.blocks;
  while (blocks.size() > most_blocks) {
    const uint64_t per_block = digest.pieces_per_block;
    const uint64_t in_last = digest.pieces - (blocks.size() - 1) * per_block;
    const size_t whole_pairs = blocks.size() / 2;
    for (size_t i = 0; i < whole_pairs; ++i) {
      const bool ends_content = 2 * i + 2 == blocks.size();
      blocks[i] =
          blocks[2 * i] * piece_factor_to(ends_content ? in_last : per_block) + blocks[2 * i + 1];
    }
    if (blocks.size() % 2 == 1) blocks[whole_pairs] = blocks.back();
    blocks.resize((blocks.size() + 1) / 2);
    digest.pieces_per_block *= 2;
  }
  return digest;
}

uint64_t hash_from_hex(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, 16);
  if (text.size() != kDigestHexDigits || last != end || error != std::errc()) {
    throw std::invalid_argument("a hash is not of 16 hexadecimal digits");
  }
  return value;
}

nlohmann::json digest_to_json(const FileDigest& digest) {
  std::string blocks;
  for (const uint64_t block : digest.blocks) blocks += hex64(block);
  return {{"bytes", digest.bytes},      {"lines", digest.lines},
          {"hash", hex64(digest.hash)}, {"stored_hash", hex64(digest.stored_hash)},
          {"pieces", digest.pieces},    {"pieces_per_block", digest.pieces_per_block},
          {"blocks", std::move(blocks)}};
}

FileDigest digest_from_json(const nlohmann::json& json) {
  FileDigest digest{.bytes = json.at("bytes").get<uint64_t>(),
                    .lines = json.at("lines").get<uint64_t>(),
                    .hash = hash_from_hex(json.at("hash").get<std::string>()),
                    .stored_hash = hash_from_hex(json.at("stored_hash").get<std::string>()),
                    .pieces = json.at("pieces").get<uint64_t>(),
                    .pieces_per_block = json.at("pieces_per_block").get<uint64_t>(),
                    .blocks = {}};
  const auto blocks = json.at("blocks").get<std::string>();
  const uint64_t per_block = digest.pieces_per_block;
  if (per_block == 0 || blocks.size() % kDigestHexDigits != 0 ||
      blocks.size() / kDigestHexDigits !=
          digest.pieces / per_block + (digest.pieces % per_block > 0 ? 1 : 0)) {
    throw std::invalid_argument("another number of blocks than the content has");
  }
  for (size_t at = 0; at < blocks.size(); at += kDigestHexDigits) {
    digest.blocks.push_back(hash_from_hex(std::string_view(blocks).substr(at, kDigestHexDigits)));
  }
  return digest;
}

FileDigest digest_of(const std::string& path, const DigestSetting& setting, DataKind kind) {
  const fs::path file = parse_input_path(path).file;
  const FileStamp stamp = file_stamp(file);
  const std::string name = digest_name(path, kind);
  if (auto known = StartMemory::find(name, stamp)) return std::move(*known);
  const fs::path memory_dir = memory_for(stamp, setting);
  const fs::path memory = memory_dir.empty() ? fs::path() : digest_memory_path(memory_dir, name);
  if (!memory.empty()) {
    if (auto known = remembered_digest(memory, stamp_text(stamp))) {
      StartMemory::put(name, stamp, *known);
      return std::move(*known);
    }
  }
  FileDigest digest =
      kind == DataKind::kBytes ? read_digest_of_bytes(file) : read_digest(path, memory_dir);
  remember_hash(file, stamp, digest.stored_hash, memory_dir);
  StartMemory::put(name, stamp, digest);
  if (!memory.empty() && is_settled(file, stamp)) {
    refusal_of([&] { write_file_atomic(memory, digest_memory_text(stamp_text(stamp), digest)); });
  }
  return digest;
}

uint64_t stored_hash_of(const std::string& path, const DigestSetting& setting) {
  const fs::path file = parse_input_path(path).file;
  const auto known = find_content_hash(file, memory_for(file_stamp(file), setting));
  return known ? *known : digest_of(path, setting).stored_hash;
}

std::vector<FileDigest> digests_of(const std::vector<std::string>& paths,
                                   const DigestSetting& setting) {
  std::map<std::string, FileDigest> made;
  for (const auto& path : paths) made.emplace(path, FileDigest{});
  std::vector<std::pair<const std::string, FileDigest>*> open;
  for (auto& one : made) open.push_back(&one);
  for_each_on_threads(open.size(), setting.threads,
                      [&](size_t i) { open[i]->second = digest_of(open[i]->first, setting); });
  std::vector<FileDigest> digests;
  for (const auto& path : paths) digests.push_back(made.at(path));
  return digests;
}

bool holds(const FileDigest& before, const std::string& path_then, const std::string& path,
           const DigestSetting& setting) {
  const fs::path file = parse_input_path(path).file;
  const fs::path memory_dir = memory_for(file_stamp(file), setting);
  const bool is_packed_alike = wrapping_of(path_then) == wrapping_of(path);
  const bool has_same_bytes = content_hashes({file}, memory_dir, 1).front() == before.stored_hash;
  if (is_packed_alike && has_same_bytes) return true;
  if (is_packed_alike && wrapping_of(path).empty()) return false;
  const FileDigest now = digest_of(path, setting);
  return now.hash == before.hash && now.bytes == before.bytes;
}

std::string first_difference(const FileDigest& before, ByteStream& now, DataKind kind) {
  DifferenceFinder finder(before, kind);
  for_each_piece(now, kind, [&](auto... piece) { finder.add(piece...); });
  return finder.finish();
}

}  // namespace stretto::data
