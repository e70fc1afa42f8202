#include "interchange/added_tokens.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace stretto::interchange {
namespace {

constexpr const char* kDecoderKey = "added_tokens_decoder";
constexpr const char* kSaveTokenizer =
    "save the tokenizer again with a present version of transformers, which writes a "
    "tokenizer.json";

/// A token, and the place where it stands.
struct FoundToken {
  text::AddedToken token;
  const ConfigReader* file = nullptr;
  std::string key;
};

[[noreturn]] void refuse_token(const FoundToken& found, const std::string& what) {
  found.file->refuse(found.key, what, kSaveTokenizer);
}

std::string quoted(const std::string& token) {
  return "`" + printable(token, 60) + "`";
}

/// The token that a value names, as a string or in an object; empty where it names none.
std::string named_content(const nlohmann::json& value) {
  const nlohmann::json* token = &value;
  if (value.is_object()) {
    const auto content = value.find("content");
    if (content != value.end()) token = &*content;
  }
  return token->is_string() ? token->get<std::string>() : std::string();
}

/// The tokens that the files name as special, and those that BERT and RoBERTa have.
std::set<std::string> special_tokens(const TokenizerNotes& notes) {
  std::set<std::string> names{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                              "<s>",   "<pad>", "</s>",  "<unk>", "<mask>"};
  for (const auto* file : {&notes.config, &notes.map}) {
    if (!*file) continue;
    for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                            "cls_token", "mask_token"}) {
      if ((*file)->has(key)) names.insert(named_content((*file)->json().at(key)));
    }
    if (!(*file)->has("additional_special_tokens")) continue;
    for (const nlohmann::json& value : (*file)->json().at("additional_special_tokens")) {
      names.insert(named_content(value));
    }
  }
  return names;
}

bool flag_of_token(const FoundToken& found, const nlohmann::json& value, const char* name,
                   bool fallback) {
  const auto flag = value.find(name);
  if (flag == value.end()) return fallback;
  if (!flag->is_boolean()) {
    refuse_token(found, "has a `" + std::string(name) + "` that is neither true nor false");
  }
  return flag->get<bool>();
}

/// "30522": {"content": "[X]", "special": true, …}
FoundToken token_of_decoder(const ConfigReader& config, const std::string& id,
                            const nlohmann::json& value) {
  FoundToken found{.token = {}, .file = &config, .key = kDecoderKey + ("." + printable(id, 60))};
  auto& token = found.token;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), token.id);
  if (error != std::errc() || end != id.data() + id.size() || token.id < 0) {
    refuse_token(found, "is no id");
  }
  token.content = value.is_object() ? named_content(value) : std::string();
  if (token.content.empty()) refuse_token(found, "has no token as `content`");
  token.single_word = flag_of_token(found, value, "single_word", false);
  token.lstrip = flag_of_token(found, value, "lstrip", false);
  token.rstrip = flag_of_token(found, value, "rstrip", false);
  token.normalized = flag_of_token(found, value, "normalized", true);
  token.special = flag_of_token(found, value, "special", false);
  return found;
}

/// "[X]": 30522
FoundToken token_of_list(const ConfigReader& file, const std::string& content,
                         const nlohmann::json& id, bool is_special) {
  FoundToken found{.token = {.content = content, .normalized = !is_special, .special = is_special},
                   .file = &file,
                   .key = printable(content, 60)};
  if (content.empty()) refuse_token(found, "is an empty token");
  const bool is_id = id.is_number_unsigned() && id.get<uint64_t>() <= uint64_t{INT32_MAX};
  if (!is_id) refuse_token(found, "is no id");
  found.token.id = id.get<int64_t>();
  return found;
}

bool has_decoder(const TokenizerNotes& notes) {
  return notes.config && notes.config->has(kDecoderKey);
}

std::vector<FoundToken> decoder_tokens(const TokenizerNotes& notes) {
  std::vector<FoundToken> found;
  if (!has_decoder(notes)) return found;
  const nlohmann::json& list = notes.config->json().at(kDecoderKey);
  if (!list.is_object()) {
    notes.config->refuse(kDecoderKey, "is no object of ids and tokens", kSaveTokenizer);
  }
  for (const auto& [id, value] : list.items()) {
    found.push_back(token_of_decoder(*notes.config, id, value));
  }
  return found;
}

std::vector<FoundToken> listed_tokens(const TokenizerNotes& notes) {
  std::vector<FoundToken> found;
  if (!notes.added) return found;
  const auto specials = special_tokens(notes);
  for (const auto& [content, id] : notes.added->json().items()) {
    found.push_back(token_of_list(*notes.added, content, id, specials.contains(content)));
  }
  return found;
}

/// transformers reads the first of both alone. Two that say the same differ in no id.
void require_same_ids(const std::vector<FoundToken>& decoder,
                      const std::vector<FoundToken>& listed) {
  std::unordered_map<std::string, const FoundToken*> by_content;
  for (const auto& found : decoder) by_content.emplace(found.token.content, &found);
  for (const auto& found : listed) {
    const auto other = by_content.find(found.token.content);
    if (other == by_content.end() || other->second->token.id == found.token.id) continue;
    refuse_token(found, "has the id " + std::to_string(found.token.id) +
                            ", and in tokenizer_config.json `" + other->second->key + "`");
  }
}

/// The added tokens of a spec by their text: a folder may have as many as it has bytes.
class AddedByContent {
 public:
  explicit AddedByContent(std::vector<text::AddedToken>& added) : added_(added) {
    for (size_t i = 0; i < added.size(); ++i) places_.emplace(added[i].content, i);
  }
  /// Replaces the token of the same text, or adds it behind the others.
  void set(const text::AddedToken& token, bool replaces) {
    const auto [there, is_new] = places_.emplace(token.content, added_.size());
    if (is_new) {
      added_.push_back(token);
    } else if (replaces) {
      added_[there->second] = token;
    }
  }

 private:
  std::vector<text::AddedToken>& added_;
  std::unordered_map<std::string, size_t> places_;
};

void take_memory(const std::vector<FoundToken>& found, Allowance& allowance) {
  constexpr size_t kMaxTokenBytes = size_t{64} << 10;
  constexpr uint64_t kBytesOfToken = sizeof(FoundToken) + 256, kCopies = 8;
  for (const auto& one : found) {
    const uint64_t size = one.token.content.size();
    if (size > kMaxTokenBytes) {
      refuse_token(one, "is a token of " + with_thousands(static_cast<int64_t>(size)) +
                            " bytes, at most 65,536 are allowed");
    }
    allowance.take(kBytesOfToken + kCopies * size, "its added tokens");
  }
}

}  // namespace

TokenizerNotes read_tokenizer_notes(const std::filesystem::path& folder, bool with_added,
                                    Allowance& allowance) {
  const auto read = [&](const char* file) {
    return find_config_file(folder / file, kMaxNotesBytes, allowance);
  };
  return {.config = read("tokenizer_config.json"),
          .map = read("special_tokens_map.json"),
          .added = with_added ? read("added_tokens.json") : std::nullopt};
}

void take_added_tokens(const TokenizerNotes& notes, const std::filesystem::path& vocabulary,
                       text::TokenizerSpec& spec, Allowance& allowance) {
  auto found = decoder_tokens(notes);
  take_memory(found, allowance);
  auto listed = listed_tokens(notes);
  take_memory(listed, allowance);
  const bool states_all = has_decoder(notes);
  if (states_all) {
    require_same_ids(found, listed);
  } else {
    found = std::move(listed);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.token.id < b.token.id; });
  std::unordered_map<std::string, int64_t> ids(spec.vocab.begin(), spec.vocab.end());
  const auto size = static_cast<int64_t>(spec.vocab.size());
  int64_t next = size;
  AddedByContent added(spec.added);
  for (const FoundToken& one : found) {
    const auto& token = one.token;
    const auto [known, is_new] = ids.emplace(token.content, next);
    if (is_new) ++next;
    if (token.id != known->second) {
      const std::string own = std::to_string(known->second) +
                              (known->second < size ? " in " : " behind the vocabulary of ") +
                              vocabulary.filename().string();
      refuse_token(one, states_all ? "is " + quoted(token.content) + ", which has the id " + own
                                   : "has the id " + std::to_string(token.id) + ", and " + own);
    }
    added.set(token, states_all);
  }
}

}  // namespace stretto::interchange
