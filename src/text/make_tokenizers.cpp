#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

constexpr size_t kMaxVocabularyBytes = size_t{1} << 30;
constexpr size_t kMaxModelBytes = size_t{512} << 20;
constexpr const char* kJointModel = "tokenizer.model";
constexpr const char* kSrcModel = "src.model";
constexpr const char* kTgtModel = "tgt.model";
constexpr const char* kSrcVocab = "src.vocab";
constexpr const char* kTgtVocab = "tgt.vocab";

std::string train(const TokenizerOptions& options, const std::vector<std::string>& lines) {
  return train_sentencepiece(lines, {.algorithm = options.algorithm,
                                     .vocab_size = options.vocab_size,
                                     .character_coverage = options.character_coverage});
}

/// One of two models; messages say whose text it is.
std::string train_side(const TokenizerOptions& options, const std::vector<std::string>& lines,
                       const std::string& side) {
  try {
    return train(options, lines);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + " (" + side + " side)", error.advice());
  }
}

/// What make_tokenizers() found or made, by the names under which a run folder keeps it.
using Assets = std::map<std::string, std::string>;

Assets read_vocabularies(const TokenizerOptions& options) {
  if (options.src_vocab.empty()) {
    throw Error(ExitCode::kUsage, "tokenizer.src_vocab: missing",
                "tokenizer.type = \"vocab\" needs a vocabulary file: one token a line, or a "
                "fairseq dict.txt");
  }
  Assets assets{{kSrcVocab, read_file(options.src_vocab, kMaxVocabularyBytes)}};
  if (!options.tgt_vocab.empty()) {
    std::string tgt = read_file(options.tgt_vocab, kMaxVocabularyBytes);
    if (tgt != assets[kSrcVocab]) assets[kTgtVocab] = std::move(tgt);
  }
  return assets;
}

Assets read_models(const TokenizerOptions& options) {
  if (!options.model.empty()) {
    if (!options.src_model.empty() || !options.tgt_model.empty()) {
      throw Error(ExitCode::kUsage, "tokenizer.model stands beside src_model or tgt_model",
                  "give tokenizer.model alone, or tokenizer.src_model and tokenizer.tgt_model");
    }
    return {{kJointModel, read_file(options.model, kMaxModelBytes)}};
  }
  if (options.src_model.empty() || options.tgt_model.empty()) {
    const bool src = options.src_model.empty();
    throw Error(ExitCode::kUsage,
                std::string("tokenizer.") + (src ? "src_model" : "tgt_model") + ": missing",
                "the other side has a model; give both, or one tokenizer.model for both sides");
  }
  std::string src = read_file(options.src_model, kMaxModelBytes);
  std::string tgt = read_file(options.tgt_model, kMaxModelBytes);
  if (src == tgt) return {{kJointModel, std::move(src)}};
  return {{kSrcModel, std::move(src)}, {kTgtModel, std::move(tgt)}};
}

Assets train_models(const TokenizerOptions& options, uint64_t seed, LineSource* train_src,
                    LineSource* train_tgt) {
  if (train_src == nullptr || train_tgt == nullptr) {
    throw Error(ExitCode::kUsage, "tokenizer: no model is given and there is no training text",
                "set tokenizer.model, or data.train_src and data.train_tgt to train one");
  }
  const TrainingSample sample{.max_lines = options.max_training_lines, .seed = seed};
  std::vector<std::string> lines;
  sample_lines(*train_src, 1, sample, lines);
  if (options.joint) {
    sample_lines(*train_tgt, 2, sample, lines);
    return {{kJointModel, train(options, lines)}};
  }
  Assets assets{{kSrcModel, train_side(options, lines, "source")}};
  lines.clear();
  sample_lines(*train_tgt, 2, sample, lines);
  assets[kTgtModel] = train_side(options, lines, "target");
  return assets;
}

/// Where an asset came from, for messages: the configured file, or its name in the run folder.
std::string place_of(const std::string& asset, const TokenizerOptions* options) {
  if (options == nullptr) return asset;
  const std::string& path = asset == kJointModel ? options->model
                            : asset == kSrcModel ? options->src_model
                            : asset == kTgtModel ? options->tgt_model
                            : asset == kSrcVocab ? options->src_vocab
                                                 : options->tgt_vocab;
  return path.empty() ? asset : path;
}

/// @param configured  whether the assets are the files that the options name, for messages
TokenizerPair build(Assets assets, const TokenizerOptions& options, bool configured) {
  const bool vocabulary = assets.contains(kSrcVocab) || (assets.empty() && options.type == "vocab");
  const auto make = [&](const std::string& name) -> std::shared_ptr<const Tokenizer> {
    const auto found = assets.find(name);
    if (found == assets.end()) {
      throw Error(ExitCode::kUsage, "the run folder has no `" + name + "`",
                  "copy the run folder again with its tokenizer files");
    }
    const std::string where = place_of(name, configured ? &options : nullptr);
    return vocabulary ? make_vocabulary(found->second, where, options.subwords)
                      : make_sentencepiece(found->second, where);
  };
  TokenizerPair pair;
  const std::string src_name = vocabulary ? kSrcVocab : kSrcModel;
  const std::string tgt_name = vocabulary ? kTgtVocab : kTgtModel;
  if (!vocabulary && assets.contains(kJointModel)) {
    pair.src = pair.tgt = make(kJointModel);
  } else if (vocabulary && !assets.contains(tgt_name)) {
    pair.src = pair.tgt = make(src_name);
  } else {
    pair.src = make(src_name);
    pair.tgt = make(tgt_name);
  }
  pair.joint = pair.src == pair.tgt;
  pair.assets = std::move(assets);
  return pair;
}

}  // namespace

bool names_tokenizer(const TokenizerOptions& options) {
  if (options.type == "vocab") return !options.src_vocab.empty();
  return !options.model.empty() || !options.src_model.empty() || !options.tgt_model.empty();
}

TokenizerPair make_tokenizers(const TokenizerOptions& options, uint64_t seed, LineSource* train_src,
                              LineSource* train_tgt) {
  if (options.type == "vocab") return build(read_vocabularies(options), options, true);
  return build(names_tokenizer(options) ? read_models(options)
                                        : train_models(options, seed, train_src, train_tgt),
               options, true);
}

TokenizerPair load_tokenizers(const TokenizerOptions& options,
                              const std::map<std::string, std::string>& assets) {
  Assets mine;
  for (const char* name : {kJointModel, kSrcModel, kTgtModel, kSrcVocab, kTgtVocab}) {
    const auto found = assets.find(name);
    if (found != assets.end()) mine.insert(*found);
  }
  return build(std::move(mine), options, false);
}

}  // namespace stretto::text
