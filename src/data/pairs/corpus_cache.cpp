#include "data/pairs/corpus_cache.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// Removes what killed builds of this key left. The caller holds the key's lock.
void remove_stale_builds(const fs::path& root, const std::string& prefix) {
  for (const auto& entry : fs::directory_iterator(root)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with(prefix)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

std::string description(const CorpusMeta& meta, const fs::path& folder) {
  return "tokenised " + counted(meta.filters.kept, "pair") + ", " +
         human_bytes(meta.num_ids * meta.id_bytes + meta.num_pairs * 12 + meta.text_bytes) +
         " in " + folder.string();
}

/// Puts a finished folder in the place of a damaged one, or of none.
void put_in_place(const fs::path& aside, const fs::path& folder) {
  fsync_directory(aside);
  if (const int failed = failpoint("corpus.rename")) throw_io_error("cannot rename", aside, failed);
  std::error_code failure;
  fs::remove_all(folder, failure);
  if (failure) throw_io_error("cannot remove", folder, failure.value());
  rename_path(aside, folder);
  fsync_directory(folder.parent_path());
}

}  // namespace

InputFiles::InputFiles(const std::vector<ParallelInput>& inputs) {
  for (const ParallelInput& input : inputs) {
    for (const std::string& path : {input.src, input.tgt, input.src2}) {
      if (path.empty()) continue;
      const fs::path file = parse_input_path(path).file;
      if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
    }
  }
  for (const fs::path& file : files_) stamps_.push_back(file_stamp(file));
}

void InputFiles::hash(const fs::path& memory_dir, int64_t threads) {
  hashes_ = content_hashes(files_, memory_dir, threads);
}

uint64_t InputFiles::hash_of(const std::string& path) const {
  const auto found = std::find(files_.begin(), files_.end(), parse_input_path(path).file);
  return hashes_[static_cast<size_t>(found - files_.begin())];
}

void InputFiles::check_unchanged() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (file_stamp(files_[i]) == stamps_[i]) continue;
    throw Error(ExitCode::kBadData, files_[i].string() + ": changed while it was being read",
                "start again when nothing writes to it any more");
  }
}

void make_cache_directory(const fs::path& path) {
  try {
    make_directories(path);
  } catch (const Error& error) {
    throw Error(ExitCode::kIo, std::string("the token cache: ") + error.what(),
                "set data.cache_dir to a folder where you may write");
  }
}

CorpusCache::CorpusCache(CorpusPlan plan, text::TokenizerPair tokenizers, InputFiles files,
                         SampleWeights weights, fs::path root)
    : plan_(std::move(plan)),
      tokenizers_(std::move(tokenizers)),
      files_(std::move(files)),
      weights_(std::move(weights)),
      root_(std::move(root)),
      folder_(root_ / hex64(plan_.key)) {}

FileLock CorpusCache::lock() const {
  return FileLock::wait(root_ / (hex64(plan_.key) + ".lock"));
}

void CorpusCache::tell(const std::string& damaged) {
  if (damaged.empty() || damaged == told_) return;
  told_ = damaged;
  log::warn("token cache " + folder_.string() + ": " + damaged +
            " is damaged; it is made again from the text");
}

CorpusCache::Opened CorpusCache::open() {
  std::string unused;  // who holds the lock says what is damaged
  if (auto meta = find_corpus(folder_, plan_.key, unused)) {
    auto order = CorpusOrder::find(folder_, *meta, weights_.key(), plan_.threads, unused);
    if (order) return {std::move(*meta), std::move(*order), true};
  }
  const FileLock held = lock();
  return make();
}

CorpusCache::Opened CorpusCache::make() {
  bool found = false;
  CorpusMeta meta = find_or_build(found);
  std::string damaged_order, damaged_corpus;
  auto order = CorpusOrder::find(folder_, meta, weights_.key(), plan_.threads, damaged_order);
  if (!order) {
    tell(damaged_order);
    if (!CorpusOrder::build(folder_, meta, weights_, plan_.threads, damaged_corpus)) {
      tell(damaged_corpus);
      meta = build();
      found = false;
      CorpusOrder::build(folder_, meta, weights_, plan_.threads, damaged_corpus);
    }
    order = CorpusOrder::find(folder_, meta, weights_.key(), plan_.threads, damaged_order);
  }
  if (!order) {
    throw Error(
        ExitCode::kIo,
        folder_.string() + ": the token cache vanished or was damaged while it was opened",
        "is another program writing there? Set data.cache_dir to another folder, on another "
        "disk");
  }
  return {std::move(meta), std::move(*order), found};
}

CorpusMeta CorpusCache::find_or_build(bool& found) {
  std::string damaged;
  auto meta = find_corpus(folder_, plan_.key, damaged);  // another process may have been first
  found = meta.has_value();
  if (meta) return std::move(*meta);
  tell(damaged);
  return build();
}

// Beside the final place, and then renamed; on failure nothing stays behind.
CorpusMeta CorpusCache::build() {
  const std::string prefix = ".tmp-" + folder_.filename().string();
  remove_stale_builds(root_, prefix);
  const fs::path aside = root_ / (prefix + "-" + std::to_string(::getpid()));
  make_cache_directory(aside);
  try {
    const CorpusMeta meta = build_corpus(plan_, tokenizers_, aside);
    files_.check_unchanged();
    put_in_place(aside, folder_);
    log::info(description(meta, folder_));
    return meta;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
}

std::unique_ptr<const CorpusMaps> CorpusCache::replace(const CorpusMaps& damaged,
                                                       const std::string& file) {
  const FileLock held = lock();
  std::string unused;
  auto meta = find_corpus(folder_, plan_.key, unused);
  if (!meta || file_stamp(folder_ / kMetaFile) == damaged.stamp()) {
    if (std::exchange(made_anew_, true)) {
      throw Error(ExitCode::kIo,
                  "token cache " + folder_.string() + ": " + file +
                      " is damaged again, after it was made anew",
                  "this disk or this memory cannot be trusted: set data.cache_dir to another disk, "
                  "and look at the kernel log (dmesg)");
    }
    tell(file);
    meta = build();
    // For the next start: this process has its order.
    CorpusOrder::build(folder_, *meta, weights_, plan_.threads, unused);
  }
  if (meta->num_pairs != damaged.meta().num_pairs || meta->num_ids != damaged.meta().num_ids) {
    throw Error(ExitCode::kBadData,
                "token cache " + folder_.string() + ": made again it holds other text than before",
                "start again: the training text has changed");
  }
  return std::make_unique<const CorpusMaps>(folder_, *meta);
}

}  // namespace stretto::data
