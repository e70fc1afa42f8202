#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/input_files.h"
#include "data/pairs/corpus_build.h"
#include "data/pairs/corpus_order.h"
#include "data/pairs/mapped_corpus.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// The place of one corpus in the token cache: finds what is there, makes what is not, and makes
/// anew what is damaged, which it says once for each damage.
///
/// A corpus is made beside its place under a lock and renamed, so that of several processes one
/// makes it and the others find it, and a build that is killed leaves nothing that is used.
class CorpusCache final : public CorpusSource {
 public:
  /// @param files    of the plan's inputs, hashed
  /// @param weights  whose order is wanted
  CorpusCache(CorpusPlan plan, text::TokenizerPair tokenizers, InputFiles files,
              SampleWeights weights, std::filesystem::path root);

  struct Opened {
    CorpusMeta meta;
    CorpusOrder order;
    bool from_cache = false;
  };
  /// Errors are those of build_corpus(); Error(kIo) when the files are removed meanwhile.
  Opened open();

  /// What was mapped had damage: maps what another process has made meanwhile, or makes the corpus
  /// anew, once. Throws Error(kIo) when that is damaged as well: this disk or memory cannot be
  /// trusted.
  std::unique_ptr<const CorpusMaps> replace(const CorpusMaps& damaged,
                                            const std::string& file) override;

  const std::filesystem::path& folder() const { return folder_; }
  const CorpusPlan& plan() const { return plan_; }

 private:
  FileLock lock() const;
  /// Under the lock.
  Opened make();
  CorpusMeta find_or_build(bool& found);
  CorpusMeta build();
  void tell(const std::string& damaged);

  CorpusPlan plan_;
  text::TokenizerPair tokenizers_;
  InputFiles files_;
  SampleWeights weights_;
  std::filesystem::path root_, folder_;
  std::string told_;        ///< the damage that was reported last
  bool made_anew_ = false;  ///< by replace()
};

}  // namespace stretto::data
