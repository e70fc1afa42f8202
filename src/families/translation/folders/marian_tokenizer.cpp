#include "families/translation/folders/marian_tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "interchange/config_reader.h"
#include "text/sentencepiece_check.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMarianVocabularyBytes = size_t{128} << 20;
constexpr const char *kSourceSpm = "source.spm", *kTargetSpm = "target.spm",
                     *kJointVocab = "vocab.json", *kSrcVocabJson = "src.vocab.json",
                     *kTgtVocabJson = "tgt.vocab.json", *kTargetVocabJson = "target_vocab.json",
                     *kMarianSettings = "tokenizer_config.json";

std::string read_tokenizer_file(const fs::path& path, size_t max_bytes) {
  if (!fs::exists(path)) {
    throw Error(ExitCode::kUsage, "no tokenizer: " + path.string() + " is missing",
                "copy source.spm, target.spm and vocab.json of the model into the folder");
  }
  return read_file(path, max_bytes);
}

/// A file of the folder, and what is in it.
struct MarianFile {
  fs::path path;
  std::string bytes;
};

MarianFile read_marian_file(const fs::path& path, size_t max_bytes) {
  return {path, read_tokenizer_file(path, max_bytes)};
}

/// Readers of a run know the names of a run's files; here those of the folder are named.
void require_sound_side(const MarianFile& model, const MarianFile& vocabulary) {
  const std::string where = vocabulary.path.string();
  text::make_mapped_sentencepiece(model.bytes, model.path.string(),
                                  {.bytes = vocabulary.bytes, .where = where});
}

/// A special token of tokenizer_config.json: a string, or an object with its content.
std::string content_of(const nlohmann::json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (!token.is_object()) return "";
  const auto found = token.find("content");
  return found != token.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Whether the target has a vocabulary of its own.
bool reads_two_vocabularies(const fs::path& folder, bool shares_tables) {
  const bool has_second = !shares_tables && fs::exists(folder / kTargetVocabJson);
  const fs::path path = folder / kMarianSettings;
  if (!fs::exists(path)) return has_second;
  const ConfigReader settings = read_config_file(path, kMaxSmallTextBytes);
  constexpr std::array<std::pair<const char*, const char*>, 3> kTokens{
      {{"unk_token", "<unk>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}}};
  for (const auto& [key, wanted] : kTokens) {
    if (!settings.has(key)) continue;
    const std::string content = content_of(settings.json()[key]);
    if (content == wanted) continue;
    settings.refuse(key, "is `" + printable(content) + "`",
                    std::string("the token of this kind is `") + wanted + "` here");
  }
  const bool separate = settings.flag("separate_vocabs", has_second);
  if (separate && shares_tables) {
    settings.refuse("separate_vocabs",
                    "is true, but share_encoder_decoder_embeddings of config.json is, too",
                    "one of the files belongs to another model");
  }
  return separate;
}

/// `bytes` is JSON even where a piece is not UTF-8.
std::string json_of(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Pieces of a run's SentencePiece model with the ids that the run gives them; "" where two ids
/// have one piece.
std::string vocabulary_of(const text::Tokenizer& tokenizer) {
  nlohmann::ordered_json::object_t vocabulary;
  std::set<std::string> seen;
  for (int64_t id = 0; id < tokenizer.size(); ++id) {
    const std::string piece = tokenizer.piece(id);
    if (!seen.insert(piece).second) return "";
    vocabulary.emplace_back(piece, id);  // another key than all before
  }
  return json_of(std::move(vocabulary));
}

const std::string* find_asset(const text::TokenizerPair& tokenizers, const char* name) {
  const auto found = tokenizers.assets.find(name);
  return found == tokenizers.assets.end() ? nullptr : &found->second;
}

std::string settings_of(bool joint, int64_t max_tokens) {
  return json_of({{"tokenizer_class", "MarianTokenizer"},
                  {"model_max_length", max_tokens},
                  {"separate_vocabs", !joint},
                  {"unk_token", "<unk>"},
                  {"eos_token", "</s>"},
                  {"pad_token", "<pad>"},
                  {"additional_special_tokens", nlohmann::ordered_json::array()}});
}

}  // namespace

TokenizerAssets read_marian_tokenizer(const fs::path& folder, bool shares_tables) {
  const bool has_two = reads_two_vocabularies(folder, shares_tables);
  auto source = read_marian_file(folder / kSourceSpm, text::kMaxSentencePieceBytes),
       target = read_marian_file(folder / kTargetSpm, text::kMaxSentencePieceBytes),
       vocabulary = read_marian_file(folder / kJointVocab, kMaxMarianVocabularyBytes);
  require_sound_side(source, vocabulary);
  TokenizerAssets assets;
  if (has_two) {
    auto second = read_marian_file(folder / kTargetVocabJson, kMaxMarianVocabularyBytes);
    require_sound_side(target, second);
    assets[kSrcVocabJson] = std::move(vocabulary.bytes);
    assets[kTgtVocabJson] = std::move(second.bytes);
  } else {
    require_sound_side(target, vocabulary);
    assets[kJointVocab] = std::move(vocabulary.bytes);
  }
  assets["src.model"] = std::move(source.bytes);
  assets["tgt.model"] = std::move(target.bytes);
  return assets;
}

std::map<std::string, std::string> marian_tokenizer_files(const text::TokenizerPair& tokenizers,
                                                          int64_t max_tokens) {
  const auto asset = [&](const char* name) { return find_asset(tokenizers, name); };
  const std::string *both = asset("tokenizer.model"), *src = asset("src.model"),
                    *tgt = asset("tgt.model");
  if (both != nullptr) src = tgt = both;
  if (src == nullptr || tgt == nullptr) return {};
  std::map<std::string, std::string> files{
      {kSourceSpm, *src},
      {kTargetSpm, *tgt},
      {kMarianSettings, settings_of(tokenizers.joint, max_tokens)}};
  const auto vocabulary = [&](const char* name, const text::Tokenizer& tokenizer) {
    const std::string* own = asset(name);
    return own != nullptr ? *own : vocabulary_of(tokenizer);
  };
  files[kJointVocab] = vocabulary(tokenizers.joint ? kJointVocab : kSrcVocabJson, *tokenizers.src);
  if (!tokenizers.joint) files[kTargetVocabJson] = vocabulary(kTgtVocabJson, *tokenizers.tgt);
  for (const auto& [name, bytes] : files) {
    if (bytes.empty()) return {};
  }
  return files;
}

}  // namespace stretto::interchange
