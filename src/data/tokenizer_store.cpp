#include "data/tokenizer_store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/system_info.h"
#include "base/text.h"
#include "base/version.h"
#include "data/cache_folder.h"
#include "data/cached_inputs.h"
#include "data/sample_store.h"
#include "data/start_memory.h"

namespace stretto::data {
namespace {

using Assets = std::map<std::string, std::string>;

/// Part of the key: where the same lines are to make another tokenizer, it makes new stores. So
/// does a new version of the program.
constexpr uint64_t kTrainingVersion = 1;

/// The parts of a store.
enum TokenizerPart : size_t {
  kAssetTexts,  ///< name and bytes of each file
  kAssetEnds,   ///< uint64 [2 * files]
  kNumTokenizerParts,
};

template <class T>
std::string option_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return sized(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return shortest(value);
  } else {
    return std::to_string(value);
  }
}

/// All keys, though some shape no tokenizer that is trained: none that does can be forgotten.
std::string text_of_options(const text::TokenizerOptions& options) {
  std::string text;
  text::TokenizerOptions::fields().for_each(
      [&](const auto& field) { text += " " + option_text(options.*field.member); });
  return text;
}

uint64_t tokenizer_key(const text::TokenizerOptions& options, uint64_t seed, uint64_t lines) {
  return xxh3_64("tokenizer " + std::to_string(kTrainingVersion) + " " + kVersion + "\n" +
                 hex64(lines) + " " + std::to_string(seed) + text_of_options(options));
}

/// The same files, for this process: both may change what is made of them.
std::string name_of_tokenizers(const text::TokenizerOptions& options, const Assets& assets) {
  std::string text;
  for (const auto& [name, bytes] : assets) {
    text += " " + sized(name) + hex64(xxh3_64(bytes)) + std::to_string(bytes.size());
  }
  return "tokenizers of" + text + text_of_options(options);
}

std::optional<text::TokenizerPair> find_tokenizers(const std::string& name) {
  const auto found =
      std::static_pointer_cast<const text::TokenizerPair>(StartMemory::find_read(name));
  return found ? std::optional(*found) : std::nullopt;
}

text::TokenizerPair kept_tokenizers(const std::string& name, text::TokenizerPair made) {
  StartMemory::keep_read(name, std::make_shared<const text::TokenizerPair>(made));
  return made;
}

std::vector<uint64_t> write_assets(const Assets& assets, SampleStoreWriter& writer) {
  uint64_t end = 0;
  const auto add = [&](std::string_view text) {
    writer.append(kAssetTexts, text);
    writer.append_value<uint64_t>(kAssetEnds, end += text.size());
  };
  for (const auto& [name, bytes] : assets) {
    add(name);
    add(bytes);
  }
  return {};
}

/// Whether the ends are those of names and files.
bool has_assets(const SampleStore& store) {
  const auto ends = store.array<uint64_t>(kAssetEnds);
  return !ends.empty() && ends.size() % 2 == 0 && std::is_sorted(ends.begin(), ends.end()) &&
         ends.back() == store.part(kAssetTexts).size();
}

Assets stored_assets(const SampleStore& store) {
  const std::string_view texts = store.part(kAssetTexts);
  uint64_t begin = 0;
  std::vector<std::string> all;
  for (const uint64_t end : store.array<uint64_t>(kAssetEnds)) {
    all.emplace_back(texts.substr(begin, end - begin));
    begin = end;
  }
  Assets assets;
  for (size_t i = 0; i < all.size(); i += 2) assets[all[i]] = std::move(all[i + 1]);
  return assets;
}

/// What `train` gives. What it cannot train on these lines it cannot train on them later either:
/// while a StartMemory lives, each call with the key throws what the first one did.
template <class Train>
text::TokenizerPair train_or_fail_once(uint64_t key, const Train& train) {
  const std::string name = "failure of tokenizer " + hex64(key);
  if (const auto failure = StartMemory::find_read(name)) {
    throw Error(*std::static_pointer_cast<const Error>(failure));
  }
  try {
    return train();
  } catch (const Error& error) {
    if (error.code() != ExitCode::kIo) {
      StartMemory::keep_read(name, std::make_shared<const Error>(error));
    }
    throw;
  }
}

/// A tokenizer that is trained on these lines.
text::TokenizerPair trained_tokenizers(const text::TokenizerOptions& options, uint64_t seed,
                                       text::LineSource* lines, const std::string& cache_dir) {
  const auto make = [&] { return text::make_tokenizers(options, seed, lines, nullptr); };
  const uint64_t text_key = lines == nullptr ? 0 : lines->key();
  if (text_key == 0) return make();
  const uint64_t key = tokenizer_key(options, seed, text_key);
  const auto train = [&] { return train_or_fail_once(key, make); };
  bool has_begun = false;
  std::optional<text::TokenizerPair> made;
  std::optional<Assets> found;
  try {
    const auto store = open_samples({.root = open_cache(cache_dir),
                                     .kind = "tokenizer",
                                     .key = key,
                                     .num_parts = kNumTokenizerParts,
                                     .threads = usable_cores(),
                                     .is_sound = has_assets},
                                    [&](SampleStoreWriter& writer) {
                                      has_begun = true;
                                      made = train();
                                      return write_assets(made->assets, writer);
                                    });
    found = stored_assets(store);
  } catch (const Error& error) {
    // Nothing can be kept. Lines come once, so that a training that failed is not tried again.
    if (error.code() != ExitCode::kIo || (has_begun && !made)) throw;
  }
  if (made) return std::move(*made);
  return found ? text::load_tokenizers(options, *found) : train();
}

}  // namespace

text::TokenizerPair open_tokenizers(const text::TokenizerOptions& options, uint64_t seed,
                                    text::LineSource* lines, const std::string& cache_dir) {
  if (options.type == "vocab" || text::names_tokenizer(options)) {
    const std::string name = "named tokenizers" + text_of_options(options);
    if (auto found = find_tokenizers(name)) return std::move(*found);
    auto made = text::make_tokenizers(options, seed, lines, nullptr);
    const std::string files = name_of_tokenizers(options, made.assets);
    return kept_tokenizers(files, kept_tokenizers(name, std::move(made)));
  }
  auto made = trained_tokenizers(options, seed, lines, cache_dir);
  const std::string files = name_of_tokenizers(options, made.assets);
  return kept_tokenizers(files, std::move(made));
}

text::TokenizerPair open_tokenizers(const text::TokenizerOptions& options, const Assets& assets) {
  Assets own;
  for (const auto& asset : assets) {
    if (text::is_tokenizer_asset(asset.first)) own.insert(asset);
  }
  const std::string name = name_of_tokenizers(options, own);
  if (auto found = find_tokenizers(name)) return std::move(*found);
  return kept_tokenizers(name, text::load_tokenizers(options, own));
}

}  // namespace stretto::data
