#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

/// A SentencePiece model of a few pieces, and one for each byte.
class ByteFallbackModel {
 public:
  static std::string bytes() {
    std::string model = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);
    for (const char* text : {"▁", "▁the", "▁cat", "s", "at", "."}) model += piece(text, 1);
    for (int byte = 0; byte < 256; ++byte) {
      std::array<char, 8> name{};
      std::snprintf(name.data(), name.size(), "<0x%02X>", byte);
      model += piece(name.data(), 6);
    }
    const std::string trainer = number(3, 1) + number(35, 1) + number(40, 0) + number(41, 1) +
                                number(42, 2) + varint(43 << 3) + varint(~uint64_t{0});
    return model + part(2, trainer) + part(3, part(1, "identity"));
  }

 private:
  static std::string varint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
    return bytes + static_cast<char>(value);
  }
  static std::string part(int field, const std::string& bytes) {
    return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
  }
  static std::string number(int field, uint64_t value) {
    return varint(static_cast<uint64_t>(field) << 3) + varint(value);
  }
  static std::string piece(const std::string& text, uint64_t type) {
    const float score = -static_cast<float>(type);
    std::string bits(4, '\0');
    std::memcpy(bits.data(), &score, 4);
    return part(1, part(1, text) + varint(2 << 3 | 5) + bits + number(3, type));
  }
};

std::shared_ptr<const Tokenizer> bytes_of_gpt2() {
  TokenizerSpec spec;
  spec.model = TokenizerSpec::Model::kByteBpe;
  spec.decoder = TokenizerSpec::Decoder::kBytes;
  for (const std::string& byte : byte_alphabet()) {
    spec.vocab.emplace_back(byte, std::ssize(spec.vocab));
  }
  spec.vocab.insert(spec.vocab.end(), {{"th", 256}, {"Ġth", 257}, {"<s>", 258}});
  spec.merges = {{"t", "h"}, {"Ġ", "th"}};
  return make_spec_tokenizer(spec, "t.json", 1);
}

struct StreamedKind {
  const char* name;
  std::shared_ptr<const Tokenizer> tokenizer;
};

std::vector<StreamedKind> streamed_kinds() {
  const auto words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nete\n##s\n中\n.\n!\nfin\n'\nt\n";
  return {{"bytes of GPT-2", bytes_of_gpt2()},
          {"SentencePiece with bytes", make_sentencepiece(ByteFallbackModel::bytes(), "m")},
          {"WordPiece", make_spec_tokenizer(parse_vocab_txt(words, "v"), "t.json", 1)},
          {"words", make_vocabulary("the\ncat\nsees\n", "v")},
          {"words cut by BPE", make_vocabulary("the\nhou@@\nse\n", "v")},
          {"words cut by SentencePiece", make_vocabulary("▁the\n▁hou\nse\n▁\n", "v")},
          {"words cut by WordPiece", make_vocabulary("the\nhou\n##se\n", "v")}};
}

/// The parts of a stream, of which none ends within a character.
std::string streamed(const Tokenizer& tokenizer, const std::vector<int64_t>& context,
                     const std::vector<int64_t>& ids) {
  StreamDecoder stream(tokenizer, context);
  std::string text;
  for (const int64_t id : ids) {
    const std::string fresh = stream.add(id);
    EXPECT_TRUE(is_valid_utf8(fresh));
    text += fresh;
  }
  return text + stream.finish();
}

TEST(StreamDecoder, PartsAreTogetherTheTextOfAllTokens) {
  RandomStream random(5);
  for (const auto& [name, tokenizer] : streamed_kinds()) {
    for (int round = 0; round < 60; ++round) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(round));
      std::vector<int64_t> context, ids;
      const char* prompts[] = {"", "the cat", "the house. the cats at the house sees the cat fin!"};
      tokenizer->encode(prompts[round % 3], context);
      const int length = round % 10 == 0 ? 500 : round;
      for (int i = 0; i < length; ++i) {
        ids.push_back(
            static_cast<int64_t>(random.uniform() * static_cast<double>(tokenizer->size())));
      }
      std::vector<int64_t> all = context;
      all.insert(all.end(), ids.begin(), ids.end());
      const std::string before = tokenizer->decode(context), whole = tokenizer->decode(all);
      ASSERT_TRUE(whole.starts_with(before));
      EXPECT_EQ(streamed(*tokenizer, context, ids), whole.substr(before.size()));
    }
  }
}

TEST(StreamDecoder, TextComesAsSoonAsItIsCertain) {
  const auto tokenizer = bytes_of_gpt2();
  StreamDecoder stream(*tokenizer);
  std::vector<int64_t> ids;
  tokenizer->encode("thé€", ids);
  ASSERT_EQ(ids.size(), 6U);  // th, two bytes, three bytes
  const std::vector<std::string> parts{"th", "", "é", "", "", "€"};
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(stream.add(ids[i]), parts[i]) << i;
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, BytesThatSpellNoCharacterComeAtTheEnd) {
  const auto tokenizer = make_sentencepiece(ByteFallbackModel::bytes(), "m");
  std::vector<int64_t> ids;
  tokenizer->encode("€", ids);
  ASSERT_GE(ids.size(), 3U);
  ids.pop_back();
  StreamDecoder stream(*tokenizer);
  for (const int64_t id : ids) EXPECT_EQ(stream.add(id), "");
  EXPECT_EQ(stream.finish(), "\uFFFD\uFFFD");
}

TEST(StreamDecoder, ASpaceInFrontOfAWordIsThereBehindAPrompt) {
  const auto tokenizer = make_sentencepiece(ByteFallbackModel::bytes(), "m");
  std::vector<int64_t> prompt, word;
  tokenizer->encode("the", prompt);
  tokenizer->encode("cat", word);
  EXPECT_EQ(streamed(*tokenizer, prompt, word), " cat");
  EXPECT_EQ(streamed(*tokenizer, {}, word), "cat");
}

}  // namespace
}  // namespace stretto::text
