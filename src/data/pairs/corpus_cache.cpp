#include "data/pairs/corpus_cache.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/cache_folder.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

std::string description(const CorpusMeta& meta, const fs::path& folder) {
  return "tokenised " + counted(meta.filters.kept, "pair") + ", " +
         human_bytes(meta.num_ids * meta.id_bytes + meta.num_pairs * 12 + meta.text_bytes) +
         " in " + folder.string();
}

}  // namespace

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
  make_private(folder_);  // earlier releases left it open
  std::string unused;     // the holder of the lock says what is damaged
  if (auto meta = find_corpus(folder_, plan_.key, files_of(plan_.inputs), unused)) {
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
  if (!order) throw_vanished(folder_);
  return {std::move(meta), std::move(*order), found};
}

CorpusMeta CorpusCache::find_or_build(bool& found) {
  std::string damaged;
  // Another process may have been first.
  auto meta = find_corpus(folder_, plan_.key, files_of(plan_.inputs), damaged);
  found = meta.has_value();
  if (meta) return std::move(*meta);
  tell(damaged);
  return build();
}

CorpusMeta CorpusCache::build() {
  CorpusMeta meta;
  build_aside(folder_, [&](const fs::path& aside) {
    meta = build_corpus(plan_, tokenizers_, aside);
    files_.check_unchanged();
  });
  log::info(description(meta, folder_));
  return meta;
}

std::unique_ptr<const CorpusMaps> CorpusCache::replace(const CorpusMaps& damaged,
                                                       const std::string& file) {
  const FileLock held = lock();
  std::string unused;
  auto meta = find_corpus(folder_, plan_.key, files_of(plan_.inputs), unused);
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
