#include "data/sample_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/block_sums.h"
#include "data/cache_folder.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeadFile = "head.bin";
constexpr uint64_t kStoreMagic = 0x314D415352545453;  // "STTRSAM1"
constexpr size_t kMaxHeadBytes = size_t{1} << 30;

fs::path part_file(const fs::path& folder, size_t number) {
  return folder / (std::to_string(number) + ".bin");
}

/// The head of a store.
struct StoreHead {
  uint64_t key = 0;
  std::vector<uint64_t> sizes;              ///< [parts] in bytes
  std::vector<std::vector<uint64_t>> sums;  ///< [parts] of their blocks
  std::vector<uint64_t> words;
};

std::string head_bytes(const StoreHead& head) {
  std::vector<uint64_t> all{kStoreMagic, head.key};
  append_list(all, head.sizes);
  for (const auto& sums : head.sums) append_list(all, sums);
  append_list(all, head.words);
  return seal_words(std::move(all));
}

/// Nothing where there is no valid head.
std::optional<StoreHead> read_head(const fs::path& folder) {
  const fs::path path = folder / kHeadFile;
  if (!is_readable_whole(path, kMaxHeadBytes)) return std::nullopt;
  const auto all = unseal_words(read_file(path, kMaxHeadBytes));
  if (!all || all->size() < 2 || all->front() != kStoreMagic) return std::nullopt;
  StoreHead head{.key = (*all)[1], .sizes = {}, .sums = {}, .words = {}};
  size_t at = 2;
  if (!take_list(*all, at, head.sizes)) return std::nullopt;
  head.sums.resize(head.sizes.size());
  for (auto& sums : head.sums) {
    if (!take_list(*all, at, sums)) return std::nullopt;
  }
  if (!take_list(*all, at, head.words)) return std::nullopt;
  return head;
}

}  // namespace

std::string_view SampleStore::part(size_t number) const {
  return files_.empty() ? std::string_view(memory_.at(number)) : files_.at(number).bytes();
}

uint64_t SampleStore::num_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < std::max(files_.size(), memory_.size()); ++i) bytes += part(i).size();
  return bytes;
}

SampleStoreWriter::SampleStoreWriter(const fs::path& folder, size_t num_parts)
    : folder_(folder), sizes_(num_parts) {
  if (folder.empty()) memory_.resize(num_parts);
  for (size_t i = 0; !folder.empty() && i < num_parts; ++i) {
    files_.push_back(std::make_unique<FileWriter>(part_file(folder, i)));
  }
}

void SampleStoreWriter::append(size_t part, std::string_view bytes) {
  if (bytes.empty()) return;
  sizes_[part] += bytes.size();
  if (folder_.empty()) {
    memory_[part] += bytes;
  } else {
    files_[part]->append(bytes.data(), bytes.size());
  }
}

void SampleStoreWriter::finish(uint64_t key, const std::vector<uint64_t>& words) {
  StoreHead head{.key = key, .sizes = sizes_, .sums = {}, .words = words};
  for (const auto& file : files_) {
    file->close();
    head.sums.push_back(file->sums());
  }
  const std::string bytes = head_bytes(head);
  FileWriter file(folder_ / kHeadFile);
  file.append(bytes.data(), bytes.size());
  file.close();
}

SampleStore SampleStoreWriter::take(std::vector<uint64_t> words) {
  SampleStore store;
  store.memory_ = std::move(memory_);
  store.words_ = std::move(words);
  return store;
}

fs::path StorePlace::folder() const {
  return root / hex64(key);
}

std::optional<SampleStore> read_samples(const StorePlace& place) {
  const fs::path folder = place.folder();
  std::error_code failure;
  SampleStore store;
  store.use_ = StoreUse(folder, place.kind);
  if (store.use_.is_too_late()) return std::nullopt;
  auto head = read_head(folder);
  if (!head || head->key != place.key || head->sizes.size() != place.num_parts) return std::nullopt;
  for (size_t i = 0; i < head->sizes.size(); ++i) {
    const fs::path path = part_file(folder, i);
    if (!fs::is_regular_file(path, failure)) return std::nullopt;
    const std::string_view bytes = store.files_.emplace_back(path).bytes();
    if (bytes.size() != head->sizes[i]) return std::nullopt;
    if (!has_sums(bytes, head->sums[i], place.threads)) return std::nullopt;
  }
  store.words_ = std::move(head->words);
  store.from_cache_ = true;
  if (place.is_sound && !place.is_sound(store)) return std::nullopt;
  return store;
}

std::optional<SampleStore> find_samples(const StorePlace& place, bool& damaged) {
  std::error_code failure;
  damaged = fs::exists(place.folder(), failure);
  if (!damaged) return std::nullopt;
  const auto read = [&](bool& is_damaged) {
    auto found = read_samples(place);
    is_damaged = !found;
    return found;
  };
  return find_beside_others(read, damaged);
}

SampleStore open_samples(const StorePlace& place, const StoreBuild& build) {
  auto [found, is_new] = find_or_build(
      place.folder(), [&](bool& damaged) { return find_samples(place, damaged); },
      [&](const fs::path& aside) {
        SampleStoreWriter writer(aside, place.num_parts);
        const auto words = build(writer);
        writer.finish(place.key, words);
        mark_new_store(aside, place.kind);
      });
  found.from_cache_ = !is_new;
  if (is_new) remove_unused_stores(place.root, place.kind);
  return std::move(found);
}

SampleStore samples_in_memory(size_t num_parts, const StoreBuild& build) {
  SampleStoreWriter writer({}, num_parts);
  auto words = build(writer);
  return writer.take(std::move(words));
}

void append_text(std::vector<uint64_t>& words, std::string_view text) {
  words.push_back(text.size());
  const size_t begin = words.size();
  words.resize(begin + (text.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  std::memcpy(words.data() + begin, text.data(), text.size());
}

bool take_text(std::span<const uint64_t> words, size_t& at, std::string& text) {
  if (at >= words.size() || words[at] / sizeof(uint64_t) > words.size()) return false;
  const auto bytes = static_cast<size_t>(words[at]);
  const size_t size = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  if (size > words.size() - at - 1) return false;
  text.resize(bytes);
  std::memcpy(text.data(), words.data() + at + 1, bytes);
  at += 1 + size;
  return true;
}

}  // namespace stretto::data
