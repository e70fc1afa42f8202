#include "data/documents/documents_build.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/cache_files.h"
#include "data/chunk_pipeline.h"
#include "data/documents/document_texts.h"
#include "data/documents/stored_documents.h"
#include "data/pairs/pair_filter.h"

namespace stretto::data {
namespace {

constexpr size_t kLineChunkBytes = size_t{1} << 20;
constexpr size_t kLineChunkLines = 8192;
constexpr auto kTellInterval = std::chrono::seconds(15);

/// Consecutive lines of one input, or pieces of exact text, and what became of them.
struct LineChunk {
  size_t input = 0;
  std::string text;              ///< lines without line ends, or pieces
  std::vector<uint32_t> ends;    ///< [lines] in `text`
  std::vector<int64_t> numbers;  ///< [lines] of the input, from 1
  std::vector<bool> begins;      ///< [lines] whether a document begins
  std::vector<int64_t> ids;      ///< of all lines
  std::vector<size_t> id_ends;   ///< [lines] in `ids`
  DocumentCounts counts;         ///< lines, words, unknown and repaired
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

/// Runs on the threads: from lines to ids.
void encode_lines(const DocumentInput& input, const text::Tokenizer& tokenizer, LineChunk& chunk) {
  const int64_t unknown = tokenizer.specials().unk;
  std::string line;
  size_t begin = 0;
  for (size_t i = 0; i < chunk.ends.size(); ++i) {
    const std::string_view text(chunk.text.data() + begin, chunk.ends[i] - begin);
    begin = chunk.ends[i];
    if (!set_document_line(text, stands_alone(input, chunk.begins[i]), line)) {
      const auto invalid = invalid_lines(text, chunk.numbers[i]);
      if (chunk.counts.repaired == 0) chunk.first_repaired = invalid.first;
      chunk.counts.repaired += invalid.count;
    }
    chunk.counts.lines += lines_in(text);
    chunk.counts.words += words_in(line);
    tokenizer.encode(line, chunk.ids);
    chunk.id_ends.push_back(chunk.ids.size());
  }
  if (unknown >= 0) {
    chunk.counts.unknown = std::count(chunk.ids.begin(), chunk.ids.end(), unknown);
  }
}

/// Runs on the caller's thread, in order: from chunks to the parts of a store.
class DocumentWriter {
 public:
  /// @param keeps_empty  whether a document without a token is one
  DocumentWriter(const text::Tokenizer& tokenizer, bool keeps_empty, SampleStoreWriter& store)
      : store_(store), separator_(tokenizer.specials().eos), keeps_empty_(keeps_empty) {
    facts_.id_bytes = bytes_of_ids(tokenizer.size());
  }

  void operator()(const LineChunk& chunk) {
    size_t begin = 0;
    for (size_t i = 0; i < chunk.id_ends.size(); ++i) {
      if (chunk.begins[i]) end_document();
      is_open_ = true;
      const size_t end = chunk.id_ends[i];
      write({chunk.ids.data() + begin, end - begin});
      begin = end;
    }
    if (facts_.counts.repaired == 0 && chunk.counts.repaired > 0) {
      facts_.repaired_input = chunk.input;
      facts_.repaired_line = static_cast<uint64_t>(chunk.first_repaired);
    }
    facts_.counts.lines += chunk.counts.lines;
    facts_.counts.words += chunk.counts.words;
    facts_.counts.unknown += chunk.counts.unknown;
    facts_.counts.repaired += chunk.counts.repaired;
    tell();
  }

  DocumentFacts finish(const LeftOut& left_out) {
    end_document();
    facts_.left_out = left_out;
    return facts_;
  }

 private:
  void write(std::span<const int64_t> ids) {
    bytes_.clear();
    store_ids(ids, facts_.id_bytes, bytes_);
    store_.append(kDocumentIds, bytes_);
    num_ids_ += ids.size();
    length_ += static_cast<int64_t>(ids.size());
  }

  /// Nothing where it has no token so far, unless those count too.
  void end_document() {
    if (length_ == 0 && !(is_open_ && keeps_empty_)) return;
    is_open_ = false;
    facts_.counts.tokens += length_;
    facts_.counts.longest = std::max(facts_.counts.longest, length_);
    ++facts_.counts.documents;
    write({&separator_, 1});
    length_ = 0;
    store_.append_value<uint64_t>(kDocumentEnds, num_ids_);
  }

  void tell() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_told_ < kTellInterval) return;
    last_told_ = now;
    log::info("tokenised " + counted(facts_.counts.lines, "line") + " of documents");
  }

  SampleStoreWriter& store_;
  int64_t separator_;
  bool keeps_empty_, is_open_ = false;  // is_open_: a document has begun
  DocumentFacts facts_;
  std::string bytes_;
  uint64_t num_ids_ = 0;  ///< with separators
  int64_t length_ = 0;    ///< tokens of the document that is being written
  std::chrono::steady_clock::time_point last_told_ = std::chrono::steady_clock::now();
};

void read_lines(const DocumentInput& input, size_t number, BadSamples& bad,
                ChunkPipeline<LineChunk>& pipeline) {
  DocumentTexts lines(input.paths[number], input, &bad);
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

std::vector<uint64_t> build_documents(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                      SampleStoreWriter& store) {
  DocumentWriter writer(tokenizer, input.end == DocumentEnd::kEachLine, store);
  ChunkPipeline<LineChunk> pipeline(
      input.threads, [&](LineChunk& chunk) { encode_lines(input, tokenizer, chunk); },
      [&](LineChunk& chunk) { writer(chunk); });
  BadSamples bad(input.bad_samples);
  for (size_t i = 0; i < input.paths.size(); ++i) read_lines(input, i, bad, pipeline);
  pipeline.finish();
  const DocumentFacts facts = writer.finish(bad.left_out());
  if (facts.counts.tokens == 0) throw_no_documents(input.key, input.paths, bad.left_out());
  return words_of(facts, input.paths);
}

int64_t words_in(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space && !inside) ++words;
    inside = !space;
  }
  return words;
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

void throw_no_documents(const std::string& key, const std::vector<std::string>& paths,
                        const LeftOut& left_out) {
  const bool all_there = left_out.count == 0;
  throw Error(ExitCode::kBadData,
              key + ": there is no document with a token in " + join(paths, ", ") +
                  (all_there ? "" : "; data.bad_samples left out " + left_out.text()),
              all_there ? "look at the paths and at the files"
                        : "repair what is left out, or give other files");
}

}  // namespace stretto::data
