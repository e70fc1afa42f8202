#include "data/documents/documents_build.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/cache_files.h"
#include "data/chunk_pipeline.h"
#include "data/pairs/pair_filter.h"

namespace stretto::data {
namespace {

constexpr const char* kDocumentMetaFile = "meta.bin";
constexpr uint64_t kDocumentMagic = 0x31434F4452525453;  // "STRRDOC1"
constexpr size_t kMaxDocumentMetaBytes = size_t{1} << 30;
constexpr size_t kLineChunkBytes = size_t{1} << 20;
constexpr size_t kLineChunkLines = 8192;
constexpr auto kTellInterval = std::chrono::seconds(15);

constexpr std::array<int64_t DocumentCounts::*, 7> kDocumentCounts{
    &DocumentCounts::documents, &DocumentCounts::lines,   &DocumentCounts::tokens,
    &DocumentCounts::words,     &DocumentCounts::unknown, &DocumentCounts::repaired,
    &DocumentCounts::longest};

/// Consecutive lines of one input, and what became of them.
struct LineChunk {
  size_t input = 0;
  std::string text;              ///< lines without line ends
  std::vector<uint32_t> ends;    ///< [lines] in `text`
  std::vector<int64_t> numbers;  ///< [lines] of the input, from 1
  std::vector<bool> begins;      ///< [lines] whether a document begins
  std::vector<int64_t> ids;      ///< of all lines
  std::vector<size_t> id_ends;   ///< [lines] in `ids`
  DocumentCounts counts;         ///< words, unknown and repaired
  int64_t first_repaired = 0;    ///< line number; 0 = none

  void clear() {
    text.clear();
    ends.clear();
    numbers.clear();
    begins.clear();
    ids.clear();
    id_ends.clear();
    counts = {};
    first_repaired = 0;
  }
};

int64_t count_words(std::string_view line) {
  int64_t words = 0;
  bool inside = false;
  for (const char c : line) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space && !inside) ++words;
    inside = !space;
  }
  return words;
}

/// Runs on the threads: from lines to ids.
void encode_lines(const text::Tokenizer& tokenizer, LineChunk& chunk) {
  const int64_t unknown = tokenizer.specials().unk;
  std::string line;
  size_t begin = 0;
  for (size_t i = 0; i < chunk.ends.size(); ++i) {
    const std::string_view text(chunk.text.data() + begin, chunk.ends[i] - begin);
    begin = chunk.ends[i];
    const bool is_valid = set_document_line(text, chunk.begins[i], line);
    if (!is_valid && chunk.counts.repaired++ == 0) chunk.first_repaired = chunk.numbers[i];
    chunk.counts.words += count_words(line);
    tokenizer.encode(line, chunk.ids);
    chunk.id_ends.push_back(chunk.ids.size());
  }
  chunk.counts.lines = static_cast<int64_t>(chunk.ends.size());
  if (unknown >= 0) {
    chunk.counts.unknown = std::count(chunk.ids.begin(), chunk.ids.end(), unknown);
  }
}

/// Runs on the caller's thread, in order: from chunks to files.
class DocumentWriter {
 public:
  DocumentWriter(const text::Tokenizer& tokenizer, uint64_t key,
                 const std::filesystem::path& folder)
      : folder_(folder),
        separator_(tokenizer.specials().eos),
        ids_(folder / kDocumentIdsFile),
        starts_(folder / kDocumentStartsFile) {
    meta_.key = key;
    meta_.id_bytes = bytes_of_ids(tokenizer.size());
    starts_.append(&meta_.num_ids, sizeof meta_.num_ids);
  }

  void operator()(const LineChunk& chunk) {
    size_t begin = 0;
    for (size_t i = 0; i < chunk.id_ends.size(); ++i) {
      if (chunk.begins[i]) end_document();
      const size_t end = chunk.id_ends[i];
      write({chunk.ids.data() + begin, end - begin});
      begin = end;
    }
    if (meta_.counts.repaired == 0 && chunk.counts.repaired > 0) {
      meta_.repaired_input = chunk.input;
      meta_.repaired_line = static_cast<uint64_t>(chunk.first_repaired);
    }
    meta_.counts.lines += chunk.counts.lines;
    meta_.counts.words += chunk.counts.words;
    meta_.counts.unknown += chunk.counts.unknown;
    meta_.counts.repaired += chunk.counts.repaired;
    tell();
  }

  /// @param files  of the input
  DocumentsMeta finish(const LeftOut& left_out, std::span<const std::string> files) {
    end_document();
    meta_.left_out = left_out;
    ids_.finish();
    starts_.finish();
    meta_.id_sums = ids_.sums();
    meta_.start_sums = starts_.sums();
    FileWriter meta_file(folder_ / kDocumentMetaFile);
    const std::string bytes = encode_meta(files);
    meta_file.append(bytes.data(), bytes.size());
    meta_file.finish();
    return meta_;
  }

 private:
  void write(std::span<const int64_t> ids) {
    bytes_.clear();
    store_ids(ids, meta_.id_bytes, bytes_);
    ids_.append(bytes_.data(), bytes_.size());
    meta_.num_ids += ids.size();
    length_ += static_cast<int64_t>(ids.size());
  }

  /// Nothing where it has no token so far.
  void end_document() {
    if (length_ == 0) return;
    meta_.counts.tokens += length_;
    meta_.counts.longest = std::max(meta_.counts.longest, length_);
    ++meta_.counts.documents;
    write({&separator_, 1});
    length_ = 0;
    starts_.append(&meta_.num_ids, sizeof meta_.num_ids);
  }

  std::string encode_meta(std::span<const std::string> files) const {
    std::vector<uint64_t> words{kDocumentMagic,     kDocumentsVersion, meta_.key,
                                meta_.id_bytes,     meta_.num_ids,     meta_.repaired_input,
                                meta_.repaired_line};
    for (const auto count : kDocumentCounts) {
      words.push_back(static_cast<uint64_t>(meta_.counts.*count));
    }
    append_list(words, meta_.id_sums);
    append_list(words, meta_.start_sums);
    if (meta_.left_out.count > 0) append_left_out(words, meta_.left_out, files);
    return seal_words(std::move(words));
  }

  void tell() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_told_ < kTellInterval) return;
    last_told_ = now;
    log::info("tokenised " + counted(meta_.counts.lines, "line") + " of documents");
  }

  std::filesystem::path folder_;
  int64_t separator_;
  DocumentsMeta meta_;
  FileWriter ids_, starts_;
  std::string bytes_;
  int64_t length_ = 0;  ///< tokens of the document that is being written
  std::chrono::steady_clock::time_point last_told_ = std::chrono::steady_clock::now();
};

void read_lines(const DocumentInput& input, size_t number, BadSamples& bad,
                ChunkPipeline<LineChunk>& pipeline) {
  DocumentLines lines(input.paths[number], input.end, &bad);
  std::string_view line;
  bool begins = false;
  bool more = lines.next(line, begins);
  while (more) {
    LineChunk& chunk = pipeline.acquire();
    chunk.input = number;
    while (more && chunk.ends.size() < kLineChunkLines && chunk.text.size() < kLineChunkBytes) {
      chunk.text += line;
      chunk.ends.push_back(static_cast<uint32_t>(chunk.text.size()));
      chunk.numbers.push_back(lines.line_number());
      chunk.begins.push_back(begins);
      more = lines.next(line, begins);
    }
    pipeline.submit();
  }
}

}  // namespace

std::optional<DocumentsMeta> read_documents_meta(const std::filesystem::path& folder,
                                                 std::span<const std::string> paths) {
  const auto path = folder / kDocumentMetaFile;
  if (!is_readable_whole(path, kMaxDocumentMetaBytes)) return std::nullopt;
  const auto words = unseal_words(read_file(path, kMaxDocumentMetaBytes));
  constexpr size_t kFixed = 7;
  if (!words || words->size() < kFixed + kDocumentCounts.size()) return std::nullopt;
  const auto& w = *words;
  if (w[0] != kDocumentMagic || w[1] != kDocumentsVersion || (w[3] != 2 && w[3] != 4)) {
    return std::nullopt;
  }
  DocumentsMeta meta{.key = w[2],
                     .id_bytes = w[3],
                     .num_ids = w[4],
                     .repaired_input = w[5],
                     .repaired_line = w[6]};
  size_t at = kFixed;
  for (const auto count : kDocumentCounts) meta.counts.*count = static_cast<int64_t>(w[at++]);
  const bool whole = take_list(w, at, meta.id_sums) && take_list(w, at, meta.start_sums) &&
                     (at == w.size() || take_left_out(w, at, paths, meta.left_out));
  if (!whole || at != w.size()) return std::nullopt;
  return meta;
}

DocumentsMeta build_documents(const DocumentInput& input, const text::Tokenizer& tokenizer,
                              uint64_t key, const std::filesystem::path& folder) {
  DocumentWriter writer(tokenizer, key, folder);
  ChunkPipeline<LineChunk> pipeline(
      input.threads, [&](LineChunk& chunk) { encode_lines(tokenizer, chunk); },
      [&](LineChunk& chunk) { writer(chunk); });
  BadSamples bad(input.bad_samples);
  for (size_t i = 0; i < input.paths.size(); ++i) read_lines(input, i, bad, pipeline);
  pipeline.finish();
  auto meta = writer.finish(bad.left_out(), input.paths);
  if (meta.counts.documents == 0) throw_no_documents(input.key, input.paths);
  return meta;
}

bool set_document_line(std::string_view text, bool begins_document, std::string& line) {
  line = begins_document ? "" : " ";
  const bool is_valid = is_valid_utf8(text);
  if (is_valid) {
    line += text;
  } else {
    line += replace_invalid_utf8(text);
  }
  return is_valid;
}

void throw_no_documents(const std::string& key, const std::vector<std::string>& paths) {
  throw Error(ExitCode::kBadData,
              key + ": there is no document with a token in " + join(paths, ", "),
              "look at the paths and at the files");
}

}  // namespace stretto::data
