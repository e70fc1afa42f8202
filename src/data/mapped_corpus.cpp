#include "data/mapped_corpus.h"

#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace stretto::data {
namespace {

template <class T>
const T* array(const MappedFile& file) {
  return reinterpret_cast<const T*>(file.bytes().data());
}

uint64_t folder_bytes(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::error_code vanished;  // another process may be renaming an order
    const auto size = entry.file_size(vanished);
    if (!vanished) bytes += size;
  }
  return bytes;
}

template <class Id>
bool copy_ids(const Id* from, uint64_t count, int64_t vocab_size, std::vector<int64_t>& out) {
  bool fits = true;
  for (uint64_t i = 0; i < count; ++i) {
    fits = fits && from[i] < static_cast<uint64_t>(vocab_size);
    out.push_back(static_cast<int64_t>(from[i]));
  }
  return fits;
}

}  // namespace

MappedCorpus::MappedCorpus(Parts parts)
    : parts_(std::move(parts)),
      ids_(parts_.folder / kIdsFile),
      starts_(parts_.folder / kStartsFile),
      src_lens_(parts_.folder / kSrcLensFile) {
  if (parts_.meta.has_text != 0) {
    text_ = MappedFile(parts_.folder / kTextFile);
    text_ends_ = MappedFile(parts_.folder / kTextEndsFile);
  }
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

void MappedCorpus::throw_damaged() const {
  throw Error(ExitCode::kBadData, parts_.folder.string() + ": this token cache is damaged",
              "remove the folder; it is made again from the text");
}

MappedCorpus::Span MappedCorpus::find(int64_t sample) const {
  if (sample < 0 || sample >= num_pairs()) {
    throw std::out_of_range("corpus: sample " + std::to_string(sample) + " of " +
                            std::to_string(num_pairs()));
  }
  const uint64_t pair = order().pair_of(static_cast<uint64_t>(sample));
  if (pair >= parts_.meta.num_pairs) throw_damaged();
  const Span span{.begin = array<uint64_t>(starts_)[pair],
                  .middle = array<uint64_t>(starts_)[pair] + array<uint32_t>(src_lens_)[pair],
                  .end = array<uint64_t>(starts_)[pair + 1]};
  if (span.begin >= span.middle || span.middle >= span.end || span.end > parts_.meta.num_ids) {
    throw_damaged();
  }
  return span;
}

void MappedCorpus::read(uint64_t begin, uint64_t end, int64_t vocab_size,
                        std::vector<int64_t>& out) const {
  const bool fits = parts_.meta.id_bytes == 2
                        ? copy_ids(array<uint16_t>(ids_) + begin, end - begin, vocab_size, out)
                        : copy_ids(array<uint32_t>(ids_) + begin, end - begin, vocab_size, out);
  // An id outside the vocabulary would be read as a row outside the embedding table.
  if (!fits) throw_damaged();
}

std::vector<int64_t> MappedCorpus::src(int64_t sample) const {
  const Span span = find(sample);
  std::vector<int64_t> ids;
  read(span.begin, span.middle, parts_.src_vocab_size, ids);
  return ids;
}

std::vector<int64_t> MappedCorpus::tgt(int64_t sample) const {
  const Span span = find(sample);
  std::vector<int64_t> ids;
  read(span.middle, span.end, parts_.tgt_vocab_size, ids);
  return ids;
}

void MappedCorpus::append(int64_t sample, Batch& batch) const {
  const Span span = find(sample);
  read(span.begin, span.middle, parts_.src_vocab_size, batch.src.ids);
  read(span.middle, span.end, parts_.tgt_vocab_size, batch.tgt.ids);
  batch.sample_ids.push_back(sample);
  batch.src.offsets.push_back(static_cast<int32_t>(batch.src.ids.size()));
  batch.tgt.offsets.push_back(static_cast<int32_t>(batch.tgt.ids.size()));
}

std::string MappedCorpus::text(int64_t sample, uint64_t side) const {
  if (parts_.meta.has_text == 0) {
    throw std::logic_error("corpus: the text of a training corpus is not kept");
  }
  find(sample);
  const uint64_t line = 2 * order().pair_of(static_cast<uint64_t>(sample)) + side;
  const uint64_t* ends = array<uint64_t>(text_ends_);
  const uint64_t begin = line == 0 ? 0 : ends[line - 1];
  if (begin > ends[line] || ends[line] > text_.size()) throw_damaged();
  return std::string(text_.bytes().substr(begin, ends[line] - begin));
}

std::string MappedCorpus::src_text(int64_t sample) const {
  return text(sample, 0);
}
std::string MappedCorpus::tgt_text(int64_t sample) const {
  return text(sample, 1);
}

}  // namespace stretto::data
