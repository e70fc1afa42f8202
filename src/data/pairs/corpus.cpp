#include "data/pairs/corpus.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/input_files.h"
#include "data/pairs/corpus_build.h"
#include "data/pairs/corpus_order.h"
#include "data/pairs/stored_corpus.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

SampleWeights weights_of(const DataOptions& options, Split split, size_t num_inputs,
                         uint64_t seed) {
  if (split != Split::kTrain || options.train_weights.empty()) return {};
  if (options.train_weights.size() != num_inputs) {
    throw Error(ExitCode::kUsage,
                "data.train_weights has " +
                    counted(static_cast<int64_t>(options.train_weights.size()), "number") +
                    " for " + counted(static_cast<int64_t>(num_inputs), "input"),
                "give one weight for each src/tgt pair of files, then one for each TSV file");
  }
  return {.weights = options.train_weights, .seed = seed};
}

/// Sentences are distinguished by it.
void require_ends(const text::TokenizerPair& tokenizers) {
  for (const bool source : {true, false}) {
    if ((source ? tokenizers.src : tokenizers.tgt)->specials().eos >= 0) continue;
    throw Error(ExitCode::kUsage,
                std::string("the tokenizer of the ") + (source ? "source" : "target") +
                    " has no end-of-sentence, with which every sentence ends",
                "use a tokenizer that has one");
  }
}

/// A hash of everything that shapes the cached files. Paths do not count: a moved corpus is the
/// same one.
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
    if (input.separator != '\t') add("separator " + std::string(1, input.separator));
    if (!input.has_two_sources()) continue;
    const InputPath second = parse_input_path(input.src2);
    add("second source " + hex64(files.hash_of(input.src2)) + " " +
        std::to_string(input.src2_column) + " " + second.member + " " +
        second.file.extension().string());
  }
  add(hex64(tokenizers.src->fingerprint()) + " " + hex64(tokenizers.tgt->fingerprint()));
  add(std::to_string(tokenizers.src->size()) + " " + std::to_string(tokenizers.tgt->size()));
  add(std::to_string(plan.rules.max_src_tokens) + " " + std::to_string(plan.rules.max_tgt_tokens));
  add(shortest(plan.rules.max_ratio));
  add(std::to_string(static_cast<int>(plan.rules.invalid_utf8)) + " " +
      std::to_string(static_cast<int>(plan.rules.too_long)) + (plan.keep_text ? " text" : "") +
      (plan.bad_samples.skips ? " skip" : ""));
  return xxh3_64(text);
}

/// Says what was left out or changed, and where to look at it; for a cached corpus too.
void log_filters(const CorpusPlan& plan, const CorpusFacts& facts, const std::string& name) {
  auto kinds = describe_filters(plan, facts.filters);
  const std::string cut = cut_text(facts.src_counts, facts.tgt_counts);
  if (!cut.empty()) kinds.push_back("cut off " + cut);
  if (!kinds.empty()) log::info(name + " pairs that the filters found: " + join(kinds, "; "));
}

/// The order of the samples of a corpus: found, or made beside it.
CorpusOrder open_order(const StorePlace& corpus, const SampleStore& pairs, const CorpusFacts& facts,
                       const SampleWeights& weights) {
  const PairLengths lengths{.ends = pairs.array<uint64_t>(kPairEnds),
                            .src_lens = pairs.array<uint32_t>(kSourceLengths),
                            .input_ends = facts.input_ends};
  return CorpusOrder(
      open_samples({.root = corpus.root,
                    .kind = "orders_of_pairs",
                    .key = CorpusOrder::key_of(corpus.key, weights),
                    .num_parts = kNumOrderParts,
                    .threads = corpus.threads,
                    .is_sound =
                        [&](const SampleStore& store) {
                          return CorpusOrder::is_sound(store, lengths.ends.size());
                        }},
                   [&](SampleStoreWriter& store) { return build_order(lengths, weights, store); }));
}

}  // namespace

std::shared_ptr<const Corpus> open_corpus(const DataOptions& options, Split split,
                                          const text::TokenizerPair& tokenizers, uint64_t seed,
                                          int64_t threads) {
  require_ends(tokenizers);
  if (threads < 1) threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const CorpusPlan plan{.inputs = inputs_of(options, split),
                        .rules = rules_for(options, split),
                        .bad_samples = bad_sample_rule(options),
                        .keep_text = split != Split::kTrain,
                        .threads = threads};
  const SampleWeights weights = weights_of(options, split, plan.inputs.size(), seed);
  const fs::path root = open_cache(options.cache_dir);
  const auto names = files_of(plan.inputs);
  InputFiles files(names);
  files.hash(root / "hashes", threads);
  std::optional<CorpusFacts> facts;
  const StorePlace place{.root = root,
                         .kind = "pairs",
                         .key = cache_key(plan, files, tokenizers),
                         .num_parts = kNumCorpusParts,
                         .threads = threads,
                         .is_sound = [&](const SampleStore& store) {
                           facts = corpus_facts(store, names);
                           return facts && facts->input_ends.size() == plan.inputs.size();
                         }};
  auto pairs = open_samples(place, [&](SampleStoreWriter& store) {
    auto words = build_corpus(plan, tokenizers, store);
    files.check_unchanged();
    return words;
  });
  if (!pairs.from_cache()) {
    log::info("tokenised " + counted(facts->filters.kept, "pair") + ", " +
              human_bytes(pairs.num_bytes()) + " in " + place.folder().string());
  }
  auto order = open_order(place, pairs, *facts, weights);
  require_within(plan.bad_samples, facts->filters.left_out);
  log_filters(plan, *facts, name_of(split));
  return std::make_shared<StoredCorpus>(
      StoredCorpus::Parts{.pairs = std::move(pairs),
                          .facts = std::move(*facts),
                          .order = std::move(order),
                          .folder = place.folder(),
                          .src_vocab_size = tokenizers.src->size(),
                          .tgt_vocab_size = tokenizers.tgt->size()});
}

}  // namespace stretto::data
