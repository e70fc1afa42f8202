#include "data/documents/documents.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/cache_files.h"
#include "data/cache_folder.h"
#include "data/documents/documents_build.h"
#include "data/input_files.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// A hash of everything that shapes the cached files. Paths do not count: a moved text is the same
/// one.
uint64_t documents_key(const DocumentInput& input, const InputFiles& files,
                       const text::Tokenizer& tokenizer) {
  std::string text = "documents " + std::to_string(kDocumentsVersion);
  for (const std::string& path : input.paths) {
    const InputPath parsed = parse_input_path(path);
    // The ending decides how a file is decompressed.
    text += "\n" + hex64(files.hash_of(path)) + " " + parsed.member + " " +
            parsed.file.extension().string();
  }
  text += "\n" + hex64(tokenizer.fingerprint()) + " " + std::to_string(tokenizer.size());
  text += input.end == DocumentEnd::kLine ? " line" : " blank_line";
  if (input.bad_samples.skips) text += " skip";
  return xxh3_64(text);
}

class MappedDocuments final : public Documents {
 public:
  struct Found {
    DocumentsMeta meta;
    CheckedFile ids, starts;
    bool from_cache = false;
  };
  MappedDocuments(Found found, fs::path folder, int64_t vocab_size)
      : found_(std::move(found)), folder_(std::move(folder)), vocab_size_(vocab_size) {}

  int64_t size() const override { return found_.meta.counts.documents; }
  uint64_t begin(int64_t document) const override {
    const auto* start = found_.starts.elements<uint64_t>(static_cast<uint64_t>(document), 1);
    if (start == nullptr) throw_damaged();
    return *start;
  }
  void append(uint64_t begin, uint64_t end, std::vector<int64_t>& ids) const override {
    if (!load_ids(found_.ids, {begin, end}, {found_.meta.id_bytes, vocab_size_}, ids)) {
      throw_damaged();
    }
  }

  const DocumentCounts& counts() const override { return found_.meta.counts; }
  const LeftOut& left_out() const override { return found_.meta.left_out; }
  uint64_t key() const override { return found_.meta.key; }
  uint64_t cache_bytes() const override {
    return found_.ids.unchecked().size() + found_.starts.unchecked().size();
  }
  bool from_cache() const override { return found_.from_cache; }

 private:
  // All blocks were right when the files were opened.
  [[noreturn]] void throw_damaged() const {
    throw Error(ExitCode::kIo,
                "token cache " + folder_.string() + ": was damaged while it was used",
                "is another program writing there? Start again: it is made anew from the text");
  }

  Found found_;
  fs::path folder_;
  int64_t vocab_size_;
};

/// Nothing where there are no complete files. @param damaged  whether something else is there
std::optional<MappedDocuments::Found> find_documents(const DocumentInput& input,
                                                     const fs::path& folder, uint64_t key,
                                                     bool& damaged) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) return std::nullopt;
  damaged = true;
  const int64_t threads = input.threads;
  auto meta = read_documents_meta(folder, input.paths);
  if (!meta || meta->key != key) return std::nullopt;
  for (const char* name : {kDocumentIdsFile, kDocumentStartsFile}) {
    if (!fs::is_regular_file(folder / name, failure)) return std::nullopt;
  }
  CheckedFile ids(folder / kDocumentIdsFile, meta->id_sums);
  CheckedFile starts(folder / kDocumentStartsFile, meta->start_sums);
  if (ids.unchecked().size() != meta->num_ids * meta->id_bytes ||
      starts.unchecked().size() != static_cast<uint64_t>(meta->counts.documents + 1) * 8 ||
      !ids.is_whole(threads) || !starts.is_whole(threads)) {
    return std::nullopt;
  }
  damaged = false;
  return MappedDocuments::Found{std::move(*meta), std::move(ids), std::move(starts), true};
}

std::string description(const DocumentsMeta& meta, const fs::path& folder) {
  return "tokenised " + counted(meta.counts.documents, "document") + ", " +
         counted(meta.counts.tokens, "token") + " in " + folder.string();
}

/// @param files  of the input, hashed
MappedDocuments::Found open_cached(const DocumentInput& input, const InputFiles& files,
                                   const text::Tokenizer& tokenizer, const fs::path& folder,
                                   uint64_t key) {
  make_private(folder);  // earlier releases left it open
  auto [found, is_new] = find_or_build(
      folder, [&](bool& damaged) { return find_documents(input, folder, key, damaged); },
      [&](const fs::path& aside) {
        const auto meta = build_documents(input, tokenizer, key, aside);
        files.check_unchanged();
        log::info(description(meta, folder));
      });
  found.from_cache = !is_new;
  return std::move(found);
}

}  // namespace

std::shared_ptr<const Documents> open_documents(const DocumentInput& given,
                                                const text::Tokenizer& tokenizer) {
  DocumentInput input = given;
  if (input.threads < 1) input.threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  if (tokenizer.specials().eos < 0) {
    throw Error(ExitCode::kUsage, "the tokenizer has no separator, which stands between documents",
                "use a tokenizer that has one");
  }
  const fs::path root = open_cache(input.cache_dir);
  InputFiles files(input.paths);
  files.hash(root / "hashes", input.threads);
  const uint64_t key = documents_key(input, files, tokenizer);
  const fs::path folder = root / hex64(key);
  auto found = open_cached(input, files, tokenizer, folder, key);
  require_within(input.bad_samples, found.meta.left_out);
  if (found.meta.counts.repaired > 0) {
    const auto input_number =
        std::min(static_cast<size_t>(found.meta.repaired_input), input.paths.size() - 1);
    log::warn(input.key + ": " + counted(found.meta.counts.repaired, "line") +
              (found.meta.counts.repaired == 1 ? " is" : " are") + " not UTF-8 (" +
              input.paths[input_number] + ":" + std::to_string(found.meta.repaired_line) +
              " is the first); bad bytes were replaced by U+FFFD");
  }
  return std::make_shared<MappedDocuments>(std::move(found), folder, tokenizer.size());
}

}  // namespace stretto::data
