#include "data/documents/documents.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/documents/document_texts.h"
#include "data/documents/documents_build.h"
#include "data/documents/stored_documents.h"
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
  text += reading_key(input);
  if (input.bad_samples.skips) text += " skip";
  return xxh3_64(text);
}

void warn_of_repairs(const DocumentInput& input, const DocumentFacts& facts) {
  if (facts.counts.repaired == 0) return;
  const auto first = std::min(static_cast<size_t>(facts.repaired_input), input.paths.size() - 1);
  log::warn(input.key + ": " + counted(facts.counts.repaired, "line") +
            (facts.counts.repaired == 1 ? " is" : " are") + " not UTF-8 (" + input.paths[first] +
            ":" + std::to_string(facts.repaired_line) +
            " is the first); bad bytes were replaced by U+FFFD");
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
  std::optional<DocumentFacts> facts;
  const StorePlace place{.root = root,
                         .kind = "documents",
                         .key = documents_key(input, files, tokenizer),
                         .num_parts = kNumDocumentsParts,
                         .threads = input.threads,
                         .is_sound = [&](const SampleStore& store) {
                           facts = document_facts(store, input.paths);
                           return facts.has_value();
                         }};
  auto store = open_samples(place, [&](SampleStoreWriter& writer) {
    auto words = build_documents(input, tokenizer, writer);
    files.check_unchanged();
    return words;
  });
  if (!store.from_cache()) {
    log::info("tokenised " + counted(facts->counts.documents, "document") + ", " +
              counted(facts->counts.tokens, "token") + " in " + place.folder().string());
  }
  require_within(input.bad_samples, facts->left_out);
  warn_of_repairs(input, *facts);
  return std::make_shared<StoredDocuments>(StoredDocuments::Parts{.store = std::move(store),
                                                                  .facts = std::move(*facts),
                                                                  .key = place.key,
                                                                  .name = place.folder().string(),
                                                                  .vocab_size = tokenizer.size()});
}

}  // namespace stretto::data
