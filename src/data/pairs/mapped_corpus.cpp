#include "data/pairs/mapped_corpus.h"

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "data/cache_files.h"
#include "data/pairs/pair_columns.h"

namespace stretto::data {
namespace {

uint64_t folder_bytes(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  std::error_code vanished;  // another process may be renaming an order
  std::filesystem::directory_iterator entry(folder, vanished);
  for (const std::filesystem::directory_iterator end; !vanished && entry != end;
       entry.increment(vanished)) {
    std::error_code unknown;
    const auto size = entry->file_size(unknown);
    if (!unknown) bytes += size;
  }
  return bytes;
}

}  // namespace

// The stamp first: should another build take the place of this one now, its maps have an older
// stamp than the folder, which costs one look more.
CorpusMaps::CorpusMaps(const std::filesystem::path& folder, const CorpusMeta& meta)
    : meta_(meta),
      stamp_(file_stamp(folder / kMetaFile)),
      ids_(open_checked(folder, meta, kIdsFile)),
      starts_(open_checked(folder, meta, kStartsFile)),
      src_lens_(open_checked(folder, meta, kSrcLensFile)) {
  if (meta.has_text == 0) return;
  text_.emplace(open_checked(folder, meta, kTextFile));
  text_ends_.emplace(open_checked(folder, meta, kTextEndsFile));
}

const char* CorpusMaps::find(uint64_t pair, int side, Span& span) const {
  const uint64_t* starts = starts_.elements<uint64_t>(pair, 2);
  if (starts == nullptr) return kStartsFile;
  const uint32_t* length = src_lens_.elements<uint32_t>(pair, 1);
  if (length == nullptr) return kSrcLensFile;
  const uint64_t middle = starts[0] + *length;
  // With right checksums it is so; but nothing is read outside of the file on the word of a hash.
  if (starts[0] >= middle || middle >= starts[1] || starts[1] > meta_.num_ids) return kStartsFile;
  span = side == 0 ? Span{starts[0], middle} : Span{middle, starts[1]};
  return nullptr;
}

const char* CorpusMaps::append_ids(uint64_t pair, int side, int64_t vocab_size,
                                   std::vector<int64_t>& out) const {
  Span span;
  if (const char* damaged = find(pair, side, span)) return damaged;
  return load_ids(ids_, {span.begin, span.end}, {meta_.id_bytes, vocab_size}, out) ? nullptr
                                                                                   : kIdsFile;
}

const char* CorpusMaps::read_text(uint64_t pair, int side, std::string& out) const {
  const uint64_t line = 2 * pair + static_cast<uint64_t>(side);
  const uint64_t* ends =
      text_ends_->elements<uint64_t>(line == 0 ? 0 : line - 1, line == 0 ? 1 : 2);
  if (ends == nullptr) return kTextEndsFile;
  const uint64_t begin = line == 0 ? 0 : ends[0], end = line == 0 ? ends[0] : ends[1];
  if (begin > end) return kTextEndsFile;
  const char* text = text_->bytes(begin, end - begin);
  if (text == nullptr) return kTextFile;
  out.assign(text, end - begin);
  return nullptr;
}

MappedCorpus::MappedCorpus(Parts parts) : parts_(std::move(parts)) {
  all_maps_.push_back(std::make_unique<const CorpusMaps>(parts_.folder, parts_.meta));
  maps_ = all_maps_.back().get();
  cache_bytes_ = folder_bytes(parts_.folder);
}

int64_t MappedCorpus::num_pairs() const {
  return static_cast<int64_t>(order().num_samples());
}
int64_t MappedCorpus::num_src_tokens() const {
  return static_cast<int64_t>(order().src_tokens());
}
int64_t MappedCorpus::num_tgt_tokens() const {
  return static_cast<int64_t>(order().tgt_tokens());
}

template <class Use>
void MappedCorpus::read(const Use& use) const {
  while (true) {
    const CorpusMaps* const maps = maps_.load(std::memory_order_acquire);
    const char* const damaged = use(*maps);
    if (damaged == nullptr) return;
    const std::lock_guard lock(replacing_);
    if (maps_ != maps) continue;  // another thread has met it too
    all_maps_.push_back(parts_.source->replace(*maps, damaged));
    maps_.store(all_maps_.back().get(), std::memory_order_release);
  }
}

uint64_t MappedCorpus::pair_of(int64_t sample) const {
  if (sample < 0 || sample >= num_pairs()) {
    throw std::out_of_range("corpus: sample " + std::to_string(sample) + " of " +
                            std::to_string(num_pairs()));
  }
  return order().pair_of(static_cast<uint64_t>(sample));
}

std::vector<int64_t> MappedCorpus::ids(int64_t sample, int side) const {
  const uint64_t pair = pair_of(sample);
  std::vector<int64_t> found;
  read([&](const CorpusMaps& maps) {
    return maps.append_ids(pair, side, side == 0 ? parts_.src_vocab_size : parts_.tgt_vocab_size,
                           found);
  });
  return found;
}

std::vector<int64_t> MappedCorpus::src(int64_t sample) const {
  return ids(sample, 0);
}
std::vector<int64_t> MappedCorpus::tgt(int64_t sample) const {
  return ids(sample, 1);
}

void MappedCorpus::append(int64_t sample, Batch& batch) const {
  const uint64_t pair = pair_of(sample);
  read([&](const CorpusMaps& maps) {
    const size_t before = source(batch).values.size();
    const char* damaged = maps.append_ids(pair, 0, parts_.src_vocab_size, source(batch).values);
    if (damaged != nullptr) return damaged;
    damaged = maps.append_ids(pair, 1, parts_.tgt_vocab_size, target(batch).values);
    if (damaged != nullptr) source(batch).values.resize(before);
    return damaged;
  });
  batch.sample_ids.push_back(sample);
  source(batch).close_sequence();
  target(batch).close_sequence();
}

std::string MappedCorpus::text(int64_t sample, int side) const {
  if (parts_.meta.has_text == 0) {
    throw std::logic_error("corpus: the text of a training corpus is not kept");
  }
  const uint64_t pair = pair_of(sample);
  std::string line;
  read([&](const CorpusMaps& maps) { return maps.read_text(pair, side, line); });
  return line;
}

std::string MappedCorpus::src_text(int64_t sample) const {
  return text(sample, 0);
}
std::string MappedCorpus::tgt_text(int64_t sample) const {
  return text(sample, 1);
}

}  // namespace stretto::data
