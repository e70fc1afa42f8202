#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "text/characters.h"
#include "text/leading_specials.h"
#include "text/sentencepiece_check.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/train_tokenizer.h"
#include "text/train_vocabulary.h"

namespace stretto::text {
namespace {

constexpr size_t kMaxVocabularyBytes = size_t{1} << 30;
constexpr const char* kSrcVocab = "src.vocab";
constexpr const char* kTgtVocab = "tgt.vocab";

/// Whose text a model is for.
enum class Whose : uint8_t { kBoth, kSrc, kTgt };

/// What a run folder calls the three kinds of models in one file: a tokenizer.json, a list of
/// characters, a SentencePiece model.
constexpr const char *kJsonEnding = ".json", *kCharactersEnding = ".chars",
                     *kModelEnding = ".model";
constexpr std::array<const char*, 3> kEndings{kJsonEnding, kCharactersEnding, kModelEnding};

/// Under which a run folder keeps a model in one file.
std::string asset_name(Whose whose, const std::string& ending) {
  switch (whose) {
    case Whose::kSrc:
      return "src" + ending;
    case Whose::kTgt:
      return "tgt" + ending;
    case Whose::kBoth:
      break;
  }
  return "tokenizer" + ending;
}

/// Under which a run folder keeps the ids of pieces, where SentencePiece models do not give them.
/// One of both sides, or one of each.
std::string ids_name(Whose whose) {
  switch (whose) {
    case Whose::kSrc:
      return "src.vocab.json";
    case Whose::kTgt:
      return "tgt.vocab.json";
    case Whose::kBoth:
      break;
  }
  return "vocab.json";
}

std::optional<bool> wants_lowercase(const TokenizerOptions& options) {
  if (options.lowercase == "auto") return std::nullopt;
  return options.lowercase == "yes";
}

/// Ordinary ids of a vocabulary of vocab_size, whose specials come first.
int64_t ordinary_ids(const TokenizerOptions& options) {
  return options.vocab_size - kNumLeadingSpecials;
}

std::string train(const TokenizerOptions& options, const std::vector<std::string>& lines) {
  if (options.type == "char") return train_characters(lines, ordinary_ids(options));
  if (options.type != "sentencepiece") {
    const bool bytes = options.type == "byte_bpe";
    return write_tokenizer_json(train_tokenizer(
        lines, {.model = bytes ? TokenizerSpec::Model::kByteBpe : TokenizerSpec::Model::kWordPiece,
                .vocab_size = options.vocab_size,
                .lowercase = wants_lowercase(options).value_or(true)}));
  }
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

void add_model(Assets& assets, Whose whose, std::string bytes) {
  const char* ending = is_json_model(bytes)       ? kJsonEnding
                       : is_character_file(bytes) ? kCharactersEnding
                                                  : kModelEnding;
  std::string name = asset_name(whose, ending);
  assets[std::move(name)] = std::move(bytes);
}

std::string model_of_file(const TokenizerOptions& options, const std::string& path) {
  return model_bytes(read_file(path, kMaxSentencePieceBytes), path,
                     {.is_wordpiece = options.type == "wordpiece",
                      .merges = options.merges,
                      .lowercase = wants_lowercase(options)});
}

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
  if (options.type == "word") return {{kSrcVocab, read_file(options.model, kMaxVocabularyBytes)}};
  if (!options.model.empty()) {
    if (!options.src_model.empty() || !options.tgt_model.empty()) {
      throw Error(ExitCode::kUsage, "tokenizer.model stands beside src_model or tgt_model",
                  "give tokenizer.model alone, or tokenizer.src_model and tokenizer.tgt_model");
    }
    Assets joint;
    add_model(joint, Whose::kBoth, model_of_file(options, options.model));
    return joint;
  }
  if (options.src_model.empty() || options.tgt_model.empty()) {
    const bool src = options.src_model.empty();
    throw Error(ExitCode::kUsage,
                std::string("tokenizer.") + (src ? "src_model" : "tgt_model") + ": missing",
                "the other side has a model; give both, or one tokenizer.model for both sides");
  }
  std::string src = model_of_file(options, options.src_model);
  std::string tgt = model_of_file(options, options.tgt_model);
  const bool joint = src == tgt;
  Assets assets;
  add_model(assets, joint ? Whose::kBoth : Whose::kSrc, std::move(src));
  if (!joint) add_model(assets, Whose::kTgt, std::move(tgt));
  return assets;
}

Assets train_models(const TokenizerOptions& options, uint64_t seed, LineSource* train_src,
                    LineSource* train_tgt) {
  if (train_src == nullptr) {
    throw Error(ExitCode::kUsage, "tokenizer: no model is given and there is no training text",
                "set tokenizer.model, or name training text in [data] to train one");
  }
  const TrainingSample sample{.max_lines = options.max_training_lines, .seed = seed};
  std::vector<std::string> lines;
  Assets assets;
  sample_lines(*train_src, 1, sample, lines);
  if (options.type == "word") {
    assets[kSrcVocab] = train_vocabulary(lines, ordinary_ids(options));
    return assets;
  }
  if (options.joint || train_tgt == nullptr) {
    if (train_tgt != nullptr) sample_lines(*train_tgt, 2, sample, lines);
    add_model(assets, Whose::kBoth, train(options, lines));
    return assets;
  }
  add_model(assets, Whose::kSrc, train_side(options, lines, "source"));
  lines.clear();
  sample_lines(*train_tgt, 2, sample, lines);
  add_model(assets, Whose::kTgt, train_side(options, lines, "target"));
  return assets;
}

/// The configured file, or where none is configured the asset's name in the run folder: for
/// messages.
std::string place_of(const std::string& path, const std::string& asset, bool configured) {
  return configured && !path.empty() ? path : asset;
}

const std::string& asset_of(const Assets& assets, const std::string& name) {
  const auto found = assets.find(name);
  if (found != assets.end()) return found->second;
  throw Error(ExitCode::kUsage, "the run folder has no `" + name + "`",
              "copy the run folder again with its tokenizer files");
}

std::shared_ptr<const Tokenizer> load_vocabulary(const Assets& assets, const char* name,
                                                 const std::string& path,
                                                 const TokenizerOptions& options, bool configured) {
  return make_vocabulary(asset_of(assets, name), place_of(path, name, configured),
                         options.subwords);
}

/// Null where there is no such model.
std::shared_ptr<const Tokenizer> find_model(const Assets& assets, Whose whose,
                                            const std::string& path, bool configured) {
  for (const char* ending : kEndings) {
    const std::string name = asset_name(whose, ending);
    const auto found = assets.find(name);
    if (found == assets.end()) continue;
    return make_model_tokenizer(found->second, place_of(path, name, configured));
  }
  return nullptr;
}

std::shared_ptr<const Tokenizer> load_model(const Assets& assets, Whose whose,
                                            const std::string& path, bool configured) {
  auto model = find_model(assets, whose, path, configured);
  if (model != nullptr) return model;
  throw Error(ExitCode::kUsage,
              "the run folder has no `" + asset_name(whose, kModelEnding) + "` and no `" +
                  asset_name(whose, kJsonEnding) + "`",
              "copy the run folder again with its tokenizer files");
}

std::shared_ptr<const Tokenizer> load_mapped(const Assets& assets, Whose model, Whose ids) {
  const std::string name = asset_name(model, kModelEnding), vocab = ids_name(ids);
  const auto begin = assets.find(kBeginPieceAsset);
  return make_mapped_sentencepiece(
      asset_of(assets, name), name,
      {.bytes = asset_of(assets, vocab),
       .where = vocab,
       .begin = begin == assets.end() ? std::string_view() : std::string_view(begin->second)});
}

bool has_mapped_ids(const Assets& assets) {
  return assets.contains(ids_name(Whose::kBoth)) || assets.contains(ids_name(Whose::kSrc));
}

/// Marian's: a model for each side, and one vocabulary or two.
TokenizerPair load_mapped_pair(const Assets& assets) {
  const bool joint = assets.contains(ids_name(Whose::kBoth));
  return {.src = load_mapped(assets, Whose::kSrc, joint ? Whose::kBoth : Whose::kSrc),
          .tgt = load_mapped(assets, Whose::kTgt, joint ? Whose::kBoth : Whose::kTgt),
          .joint = joint,
          .assets = assets};
}

/// @param configured  whether the assets are the files that the options name, for messages
TokenizerPair build(Assets assets, const TokenizerOptions& options, bool configured) {
  if (has_mapped_ids(assets)) return load_mapped_pair(assets);
  TokenizerPair pair;
  if (assets.contains(kSrcVocab) || (assets.empty() && options.type == "vocab")) {
    const std::string& src = options.type == "word" ? options.model : options.src_vocab;
    pair.src = load_vocabulary(assets, kSrcVocab, src, options, configured);
    pair.tgt = !assets.contains(kTgtVocab)
                   ? pair.src
                   : load_vocabulary(assets, kTgtVocab, options.tgt_vocab, options, configured);
  } else if (auto joint = find_model(assets, Whose::kBoth, options.model, configured)) {
    pair.src = pair.tgt = std::move(joint);
  } else {
    pair.src = load_model(assets, Whose::kSrc, options.src_model, configured);
    pair.tgt = load_model(assets, Whose::kTgt, options.tgt_model, configured);
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
  for (const auto& asset : assets) {
    if (is_tokenizer_asset(asset.first)) mine.insert(asset);
  }
  return build(std::move(mine), options, false);
}

bool is_tokenizer_asset(std::string_view name) {
  if (name == kSrcVocab || name == kTgtVocab || name == kBeginPieceAsset) return true;
  for (const Whose whose : {Whose::kBoth, Whose::kSrc, Whose::kTgt}) {
    for (const char* ending : kEndings) {
      if (name == asset_name(whose, ending)) return true;
    }
    if (name == ids_name(whose)) return true;
  }
  return false;
}

}  // namespace stretto::text
