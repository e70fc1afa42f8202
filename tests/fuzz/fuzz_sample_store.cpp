// Fuzz target: a sample store with any head and any parts, all checksums of which are right. A
// reader takes it and gives samples inside of its parts, or it refuses it. Nothing may throw but
// Error.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "data/cache_files.h"
#include "data/documents/stored_documents.h"
#include "data/pairs/corpus.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/stored_corpus.h"
#include "data/sample_store.h"
#include "data/speech/stored_speech.h"

namespace {

using namespace stretto;

constexpr int64_t kVocabSize = 50;

void require(bool fact) {
  if (!fact) std::abort();
}

/// Takes numbers and parts from an input.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  /// A byte is a number; after the byte 255 come eight that are one.
  uint64_t number() {
    const uint64_t small = byte();
    if (small != 255) return small;
    uint64_t number = 0;
    for (int i = 0; i < 64; i += 8) number |= byte() << i;
    return number;
  }
  std::vector<uint64_t> numbers() {
    std::vector<uint64_t> all(byte());
    for (auto& each : all) each = number();
    return all;
  }
  std::string_view bytes() {
    const auto taken = rest_.substr(0, byte());
    rest_.remove_prefix(std::min(taken.size(), rest_.size()));
    return taken;
  }

 private:
  uint64_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::string_view rest_;
};

template <class T>
void write_numbers(Input& input, size_t part, data::SampleStoreWriter& writer) {
  for (const uint64_t number : input.numbers()) writer.append_value(part, static_cast<T>(number));
}

void read_documents(std::string_view bytes) {
  Input input(bytes);
  auto store = data::samples_in_memory(data::kNumDocumentsParts, [&](auto& writer) {
    write_numbers<uint16_t>(input, data::kDocumentIds, writer);
    write_numbers<uint64_t>(input, data::kDocumentEnds, writer);
    return input.numbers();
  });
  const std::vector<std::string> paths{"a", "b"};
  const auto facts = data::document_facts(store, paths);
  if (!facts) return;
  const data::StoredDocuments documents(
      {.store = std::move(store), .facts = *facts, .name = "fuzz", .vocab_size = kVocabSize});
  for (int64_t i = 0; i < documents.size(); ++i) {
    std::vector<int64_t> ids;
    require(documents.begin(i) <= documents.end(i));
    try {
      documents.append(documents.begin(i), documents.end(i), ids);
    } catch (const Error&) {
      require(ids.empty());
    }
    for (const int64_t id : ids) require(id < kVocabSize);
  }
}

void read_batches(const std::shared_ptr<const data::StoredCorpus>& corpus) {
  int64_t seen = 0;
  const auto batches = data::make_eval_batches(corpus, 20);
  for (int64_t i = 0; i < batches->num_batches(); ++i) {
    const auto batch = batches->load(0, i);
    seen += batch.num_sequences();
    for (const int64_t id : data::source(batch).values) require(id < kVocabSize);
  }
  require(seen == corpus->num_pairs());
}

/// An order of the input, or the right one of these lengths.
data::SampleStore order_of(Input& input, const data::PairLengths& lengths) {
  auto store = data::samples_in_memory(data::kNumOrderParts, [&](auto& writer) {
    write_numbers<uint32_t>(input, data::kOrderSamples, writer);
    write_numbers<uint32_t>(input, data::kOrderPairs, writer);
    write_numbers<uint32_t>(input, data::kRunLengths, writer);
    write_numbers<uint64_t>(input, data::kRunEnds, writer);
    return input.numbers();
  });
  if (data::CorpusOrder::is_sound(store, lengths.ends.size())) return store;
  return data::samples_in_memory(data::kNumOrderParts, [&](auto& writer) {
    return data::build_order(lengths, {}, writer, /*window=*/3);
  });
}

void read_pairs(std::string_view bytes) {
  Input input(bytes);
  auto store = data::samples_in_memory(data::kNumCorpusParts, [&](auto& writer) {
    write_numbers<uint16_t>(input, data::kPairIds, writer);
    write_numbers<uint64_t>(input, data::kPairEnds, writer);
    write_numbers<uint32_t>(input, data::kSourceLengths, writer);
    writer.append(data::kPairTexts, input.bytes());
    write_numbers<uint64_t>(input, data::kPairTextEnds, writer);
    return input.numbers();
  });
  const std::vector<std::string> files{"a", "b"};
  auto facts = data::corpus_facts(store, files);
  if (!facts) return;
  const data::PairLengths lengths{.ends = store.array<uint64_t>(data::kPairEnds),
                                  .src_lens = store.array<uint32_t>(data::kSourceLengths),
                                  .input_ends = facts->input_ends};
  data::CorpusOrder order(order_of(input, lengths));
  const auto corpus =
      std::make_shared<data::StoredCorpus>(data::StoredCorpus::Parts{.pairs = std::move(store),
                                                                     .facts = *facts,
                                                                     .order = std::move(order),
                                                                     .folder = "fuzz",
                                                                     .src_vocab_size = kVocabSize,
                                                                     .tgt_vocab_size = kVocabSize});
  for (int64_t i = 0; facts->has_text && i < corpus->num_pairs(); ++i) {
    require(corpus->src_text(i).size() + corpus->tgt_text(i).size() <= 255);
  }
  read_batches(corpus);
}

/// A head of these words over two parts of one byte.
void read_head(std::string_view bytes) {
  static const auto root = [] {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("stretto_sample_store_fuzz_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / hex64(1));
    for (const char* name : {"0.bin", "1.bin"}) std::ofstream(folder / hex64(1) / name) << 'a';
    return folder;
  }();
  const uint64_t sum = xxh3_64(std::string_view("a"));
  // As a store of two parts begins.
  std::vector<uint64_t> words{0x314D415352545453, 1, 2, 1, 1, 1, sum, 1, sum};
  Input input(bytes);
  const uint64_t kept = input.number();
  words.resize(std::min<size_t>(words.size(), kept));
  for (const uint64_t number : input.numbers()) words.push_back(number);
  std::ofstream(root / hex64(1) / "head.bin", std::ios::binary)
      << (kept == 200 ? std::string(bytes) : data::seal_words(words));
  bool damaged = false;
  const auto store =
      data::find_samples({.root = root, .kind = "fuzz", .key = 1, .num_parts = 2}, damaged);
  require(damaged == !store);
  if (store) require(store->part(0) == "a" && store->part(1) == "a");
}

void read_speech(std::string_view bytes) {
  Input input(bytes);
  auto store = data::samples_in_memory(data::kNumSpeechParts, [&](auto& writer) {
    for (const auto part :
         {data::kSpeechIds, data::kSpeechTexts, data::kSpeechSpeakers, data::kSpeechPaths}) {
      writer.append(part, input.bytes());
    }
    write_numbers<uint64_t>(input, data::kSpeechSounds, writer);
    write_numbers<uint64_t>(input, data::kSpeechRecords, writer);
    return input.numbers();
  });
  const data::SpeechPlace place{.path = "fuzz"};
  if (!data::is_sound_speech(store, place, /*end=*/0)) return;
  const auto source = data::make_stored_speech(std::move(store), place, {}, "");
  for (int64_t i = 0; i < source->size(); ++i) {
    require(source->id(i).size() + source->text(i).size() + source->speaker(i).size() <= 3 * 255);
    require(source->facts(i).end > source->facts(i).begin && source->facts(i).rate > 0);
    require(!source->place(i).empty() || source->path(i).empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto read : {&read_documents, &read_pairs, &read_head, &read_speech}) {
    try {
      read(bytes);
    } catch (const Error&) {
    }
  }
  return 0;
}
