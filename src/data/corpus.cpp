#include "data/corpus.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/content_hash.h"
#include "data/corpus_build.h"
#include "data/corpus_files.h"
#include "data/corpus_order.h"
#include "data/mapped_corpus.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

SampleWeights weights_of(const DataOptions& options, Split split, size_t num_inputs,
                         uint64_t seed) {
  if (split != Split::kTrain || options.train_weights.empty()) return {};
  if (options.train_weights.size() != num_inputs) {
    throw Error(ExitCode::kUsage,
                "data.train_weights has " + std::to_string(options.train_weights.size()) +
                    " numbers for " + std::to_string(num_inputs) + " inputs",
                "give one weight for each src/tgt pair of files, then one for each TSV file");
  }
  return {.weights = options.train_weights, .seed = seed};
}

/// Files of the inputs, each once, with the stamps they had before anything was read.
class InputFiles {
 public:
  explicit InputFiles(const std::vector<ParallelInput>& inputs) {
    for (const ParallelInput& input : inputs) {
      for (const std::string& path : {input.src, input.tgt}) {
        const fs::path file = parse_input_path(path).file;
        if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
      }
    }
    for (const fs::path& file : files_) stamps_.push_back(file_stamp(file));
  }

  void hash(const fs::path& memory_dir, int64_t threads) {
    hashes_ = content_hashes(files_, memory_dir, threads);
  }

  uint64_t hash_of(const std::string& path) const {
    const auto found = std::find(files_.begin(), files_.end(), parse_input_path(path).file);
    return hashes_[static_cast<size_t>(found - files_.begin())];
  }

  /// A cache under the key of one content must not hold another.
  void check_unchanged() const {
    for (size_t i = 0; i < files_.size(); ++i) {
      if (file_stamp(files_[i]) == stamps_[i]) continue;
      throw Error(ExitCode::kBadData, files_[i].string() + ": changed while it was being read",
                  "start again when nothing writes to it any more");
    }
  }

 private:
  std::vector<fs::path> files_;
  std::vector<FileStamp> stamps_;
  std::vector<uint64_t> hashes_;
};

/// Of everything that shapes the cached files. Paths do not count: a moved corpus is the same one.
uint64_t cache_key(const CorpusPlan& plan, const InputFiles& files,
                   const text::TokenizerPair& tokenizers) {
  std::string text = "corpus " + std::to_string(kCorpusVersion);
  const auto add = [&](const std::string& part) { text += '\n' + part; };
  for (const ParallelInput& input : plan.inputs) {
    add(hex64(files.hash_of(input.src)) + " " + std::to_string(input.src_column) + " " +
        parse_input_path(input.src).member);
    add(hex64(files.hash_of(input.tgt)) + " " + std::to_string(input.tgt_column) + " " +
        parse_input_path(input.tgt).member);
    // The ending decides how a file is decompressed.
    add(parse_input_path(input.src).file.extension().string() + " " +
        parse_input_path(input.tgt).file.extension().string());
  }
  add(hex64(tokenizers.src->fingerprint()) + " " + hex64(tokenizers.tgt->fingerprint()));
  add(std::to_string(tokenizers.src->size()) + " " + std::to_string(tokenizers.tgt->size()));
  add(std::to_string(plan.rules.max_src_tokens) + " " + std::to_string(plan.rules.max_tgt_tokens));
  add(shortest(plan.rules.max_ratio));
  add(std::to_string(static_cast<int>(plan.rules.invalid_utf8)) + " " +
      std::to_string(static_cast<int>(plan.rules.too_long)) + (plan.keep_text ? " text" : ""));
  return xxh3_64(text);
}

void make_directory(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) {
    throw Error(ExitCode::kIo,
                "cannot create the cache folder " + path.string() + ": " + failure.message(),
                "set data.cache_dir to a folder where you may write");
  }
}

/// Removes what killed builds of this key left. The caller holds the key's lock.
void remove_stale(const fs::path& root, const std::string& prefix) {
  for (const auto& entry : fs::directory_iterator(root)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with(prefix)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

std::string describe(const CorpusMeta& meta, const fs::path& folder) {
  return "tokenised " + with_thousands(meta.filters.kept) + " pairs, " +
         human_bytes(meta.num_ids * meta.id_bytes + meta.num_pairs * 12 + meta.text_bytes) +
         " in " + folder.string();
}

/// Says what was left out or changed, and where to look at it; of a cached corpus too.
void log_filters(const CorpusPlan& plan, const CorpusMeta& meta, const std::string& name) {
  const auto kinds = describe_filters(plan, meta.filters);
  if (!kinds.empty()) log::info(name + " pairs that the filters found: " + join(kinds, "; "));
}

/// Builds beside the final place and renames; on failure nothing stays behind.
CorpusMeta build_aside(const CorpusPlan& plan, const text::TokenizerPair& tokenizers,
                       const InputFiles& files, const fs::path& root, const fs::path& folder) {
  const std::string prefix = ".tmp-" + folder.filename().string();
  remove_stale(root, prefix);
  const fs::path aside = root / (prefix + "-" + std::to_string(::getpid()));
  make_directory(aside);
  try {
    const CorpusMeta meta = build_corpus(plan, tokenizers, aside);
    files.check_unchanged();
    fsync_directory(aside);
    if (const int failed = failpoint("corpus.rename")) {
      throw_io_error("cannot rename", aside, failed);
    }
    fs::remove_all(folder);  // an invalid one, by find_corpus()
    fs::rename(aside, folder);
    fsync_directory(root);
    log::info(describe(meta, folder));
    return meta;
  } catch (const fs::filesystem_error& failure) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw_io_error("cannot move", folder, failure.code().value());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
}

}  // namespace

std::shared_ptr<const Corpus> open_corpus(const DataOptions& options, Split split,
                                          const text::TokenizerPair& tokenizers, uint64_t seed,
                                          int64_t threads) {
  if (threads < 1) threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  CorpusPlan plan{.inputs = inputs_of(options, split),
                  .rules = rules_for(options, split),
                  .keep_text = split != Split::kTrain,
                  .threads = threads};
  const SampleWeights weights = weights_of(options, split, plan.inputs.size(), seed);
  const fs::path root = options.cache_dir.empty() ? user_cache_dir() : fs::path(options.cache_dir);
  InputFiles files(plan.inputs);
  make_directory(root / "hashes");
  files.hash(root / "hashes", threads);
  plan.key = cache_key(plan, files, tokenizers);
  const fs::path folder = root / hex64(plan.key);

  auto meta = find_corpus(folder, plan.key);
  auto order = meta ? CorpusOrder::find(folder, *meta, weights.key()) : std::nullopt;
  const bool from_cache = meta.has_value();
  if (!order) {
    const FileLock lock = FileLock::wait(root / (hex64(plan.key) + ".lock"));
    meta = find_corpus(folder, plan.key);  // another process may have been first
    if (!meta) meta = build_aside(plan, tokenizers, files, root, folder);
    order = CorpusOrder::find(folder, *meta, weights.key());
    if (!order) {
      CorpusOrder::build(folder, *meta, weights);
      order = CorpusOrder::find(folder, *meta, weights.key());
    }
  }
  if (!order) {
    throw Error(ExitCode::kIo, folder.string() + ": the token cache vanished while it was opened",
                "is another program removing files there? Set data.cache_dir to another folder");
  }
  log_filters(plan, *meta, name_of(split));
  return std::make_shared<MappedCorpus>(
      MappedCorpus::Parts{.folder = folder,
                          .meta = std::move(*meta),
                          .order = std::move(*order),
                          .from_cache = from_cache,
                          .src_vocab_size = tokenizers.src->size(),
                          .tgt_vocab_size = tokenizers.tgt->size()});
}

}  // namespace stretto::data
