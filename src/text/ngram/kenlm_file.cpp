#include "text/ngram/kenlm_file.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/ngram/ngram_model.h"

namespace stretto::text {
namespace {

constexpr std::string_view kMagicBeforeVersion = "mmap lm http://kheafield.com/code format version";
constexpr std::string_view kIncomplete = "mmap lm http://kheafield.com/code incomplete";
constexpr std::string_view kMagic = "mmap lm http://kheafield.com/code format version 5\n";
constexpr size_t kMagicBytes = (kMagic.size() + 2 + 7) / 8 * 8;  // two zeros, then padding
constexpr size_t kTestedBytes = kMagicBytes + 32;
constexpr size_t kFixedBytes = 20;
constexpr uint64_t kMostNgrams = uint64_t{1} << 40;

template <class T>
void store_value(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// The magic text and the numbers by which a machine of another kind would be noticed.
std::string tested_bytes() {
  std::string bytes(kTestedBytes, '\0');
  bytes.replace(0, kMagic.size(), kMagic);
  store_value<float>(bytes, kMagicBytes, 0.0F);
  store_value<float>(bytes, kMagicBytes + 4, 1.0F);
  store_value<float>(bytes, kMagicBytes + 8, -0.5F);
  store_value<uint32_t>(bytes, kMagicBytes + 12, 1);
  store_value<uint32_t>(bytes, kMagicBytes + 16, 0xFFFFFFFFU);
  store_value<uint64_t>(bytes, kMagicBytes + 24, 1);
  return bytes;
}

void check_head(const KenlmHead& head, const std::string& place) {
  if (head.order() < 2 || head.order() > kMaxNgramOrder) {
    throw Error(ExitCode::kBadData,
                place + ": the model is of order " + std::to_string(head.order()) +
                    ", and orders from 2 to " + std::to_string(kMaxNgramOrder) + " can be read",
                "make a model of such an order, with `lmplz -o 4` for instance");
  }
  if (static_cast<uint32_t>(head.kind) > 5)
    throw_bad_kenlm(place, "its kind is " + std::to_string(static_cast<uint32_t>(head.kind)));
  if (!std::isfinite(head.probing_multiplier) || head.probing_multiplier < 1 ||
      head.probing_multiplier > 1000) {
    throw_bad_kenlm(place, "the size of its hash tables is out of range");
  }
  for (const uint64_t count : head.counts) {
    if (count > kMostNgrams)
      throw_bad_kenlm(place, "it claims " + std::to_string(count) + " n-grams of an order");
  }
  if (head.counts[0] == 0 || head.counts[0] >= 0xFFFFFFF0U)
    throw_bad_kenlm(place, "it claims " + std::to_string(head.counts[0]) + " words");
}

}  // namespace

void throw_bad_kenlm(const std::string& place, const std::string& what) {
  throw Error(ExitCode::kBadData, place + ": this file of KenLM is damaged: " + what,
              "make it again with KenLM's build_binary, or give the ARPA file itself");
}

size_t KenlmHead::bytes() const {
  return (kTestedBytes + kFixedBytes + 8 * counts.size() + 7) / 8 * 8;
}

bool is_kenlm(std::string_view bytes) {
  return bytes.starts_with(kMagicBeforeVersion) || bytes.starts_with(kIncomplete);
}

KenlmHead read_kenlm_head(std::string_view bytes, const std::string& place) {
  if (bytes.starts_with(kIncomplete)) throw_bad_kenlm(place, "it was not written to its end");
  if (bytes.size() < kTestedBytes + kFixedBytes) throw_bad_kenlm(place, "it ends in its head");
  if (!bytes.starts_with(tested_bytes())) {
    throw Error(ExitCode::kBadData,
                place +
                    ": a file of KenLM in another version of the format than 5, or made on a "
                    "machine of another kind",
                "make it again with a build_binary of this machine, or give the ARPA file itself");
  }
  const char* fixed = bytes.data() + kTestedBytes;
  KenlmHead head;
  head.counts.resize(load_value<uint8_t>(fixed));
  head.probing_multiplier = load_value<float>(fixed + 4);
  head.kind = static_cast<KenlmKind>(load_value<uint32_t>(fixed + 8));
  head.has_strings = load_value<uint8_t>(fixed + 12) != 0;
  head.version = load_value<uint32_t>(fixed + 16);
  if (bytes.size() < head.bytes()) throw_bad_kenlm(place, "it ends in its head");
  for (size_t i = 0; i < head.counts.size(); ++i)
    head.counts[i] = load_value<uint64_t>(fixed + kFixedBytes + 8 * i);
  check_head(head, place);
  return head;
}

std::string kenlm_head_bytes(const KenlmHead& head) {
  std::string bytes = tested_bytes();
  bytes.resize(head.bytes());
  store_value<uint8_t>(bytes, kTestedBytes, static_cast<uint8_t>(head.counts.size()));
  store_value<float>(bytes, kTestedBytes + 4, head.probing_multiplier);
  store_value<uint32_t>(bytes, kTestedBytes + 8, static_cast<uint32_t>(head.kind));
  store_value<uint8_t>(bytes, kTestedBytes + 12, head.has_strings ? 1 : 0);
  store_value<uint32_t>(bytes, kTestedBytes + 16, head.version);
  for (size_t i = 0; i < head.counts.size(); ++i)
    store_value<uint64_t>(bytes, kTestedBytes + kFixedBytes + 8 * i, head.counts[i]);
  return bytes;
}

uint64_t kenlm_word_hash(std::string_view word) {
  constexpr uint64_t kFactor = 0xC6A4A7935BD1E995ULL;
  uint64_t hash = word.size() * kFactor;
  const char* at = word.data();
  const char* const whole = at + word.size() / 8 * 8;
  for (; at != whole; at += 8) {
    uint64_t part = load_value<uint64_t>(at) * kFactor;
    part = (part ^ (part >> 47)) * kFactor;
    hash = (hash ^ part) * kFactor;
  }
  if (const size_t rest = word.size() % 8; rest > 0) {
    uint64_t part = 0;
    std::memcpy(&part, at, rest);
    hash = (hash ^ part) * kFactor;
  }
  hash = (hash ^ (hash >> 47)) * kFactor;
  return hash ^ (hash >> 47);
}

uint64_t kenlm_buckets(uint64_t entries, float multiplier) {
  return std::max(entries + 1, static_cast<uint64_t>(multiplier * static_cast<float>(entries)));
}

KenlmWords::KenlmWords(std::string_view bytes, uint32_t count, const std::string& place)
    : bytes_(bytes) {
  begins_.reserve(size_t{count} + 1);
  size_t begin = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t end = bytes.find('\0', begin);
    if (end == std::string_view::npos)
      throw_bad_kenlm(place,
                      "it ends in word " + std::to_string(i) + " of " + std::to_string(count));
    begins_.push_back(begin);
    begin = end + 1;
  }
  begins_.push_back(begin);
  if (count == 0 || word(0) != "<unk>")
    throw_bad_kenlm(place, "its words do not begin where they should");
}

std::string_view KenlmWords::word(uint32_t index) const {
  if (size_t{index} + 1 >= begins_.size()) return {};
  return bytes_.substr(begins_[index], begins_[index + 1] - 1 - begins_[index]);
}

}  // namespace stretto::text
