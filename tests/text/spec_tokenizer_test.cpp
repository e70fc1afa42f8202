#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "text/byte_bpe.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

using Ids = std::vector<int64_t>;
using Spans = std::vector<CodePointSpan>;

struct Encoded {
  Ids ids;
  Spans spans;
};

Encoded pieces_with_offsets(const Tokenizer& tokenizer, const std::string& line) {
  Encoded out;
  tokenizer.encode_with_spans(line, out.ids, out.spans);
  Ids alone;
  tokenizer.encode(line, alone);
  EXPECT_EQ(alone, out.ids) << "offsets change no id";
  return out;
}

std::shared_ptr<const Tokenizer> made(const TokenizerSpec& spec) {
  return make_spec_tokenizer(spec, "t.json", 1);
}

TokenizerSpec bert_spec() {
  return parse_vocab_txt("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nete\n##s\n中\n.\n!\nfin\n'\nt\n",
                         "v");
}

/// Bytes, then th, Ġth, the.
TokenizerSpec byte_spec() {
  TokenizerSpec spec;
  spec.model = TokenizerSpec::Model::kByteBpe;
  spec.decoder = TokenizerSpec::Decoder::kBytes;
  for (const std::string& byte : byte_alphabet()) {
    spec.vocab.emplace_back(byte, static_cast<int64_t>(spec.vocab.size()));
  }
  spec.vocab.insert(spec.vocab.end(), {{"th", 256}, {"Ġth", 257}, {"the", 258}, {"<s>", 259}});
  spec.merges = {{"t", "h"}, {"Ġ", "th"}, {"th", "e"}};
  return spec;
}

/// A line in pieces, with `+` before those that continue a word.
std::string words(const Tokenizer& tokenizer, const std::string& line) {
  Ids ids;
  tokenizer.encode(line, ids);
  std::string text;
  for (const int64_t id : ids) {
    if (!text.empty()) text += ' ';
    text += (tokenizer.continues_word(id) ? "+" : "") + tokenizer.piece(id);
  }
  return text;
}

TEST(SpecTokenizer, PiecesContinueWords) {
  EXPECT_EQ(words(*made(bert_spec()), "étés fin! x [MASK]"), "ete +##s fin ! [UNK] [MASK]");
  EXPECT_EQ(words(*made(byte_spec()), "a the t,\tb"), "+a Ġth +e Ġ +t +, ĉ +b");
  TokenizerSpec with_added = byte_spec();
  with_added.added = {{.content = "thing", .id = 260}};
  EXPECT_EQ(words(*made(with_added), " thingth"), "Ġ thing +th");
  EXPECT_FALSE(made(byte_spec())->continues_word(259)) << "<s>";
  EXPECT_FALSE(made(byte_spec())->continues_word(-1));
  EXPECT_FALSE(made(byte_spec())->continues_word(1000));
}

TEST(SpecTokenizer, CutsTextOfBert) {
  const auto bert = made(bert_spec());
  const Encoded text = pieces_with_offsets(*bert, " Étés中. x");
  EXPECT_EQ(text.ids, (Ids{5, 6, 7, 8, 1}));
  EXPECT_EQ(text.spans, (Spans{{1, 4}, {4, 5}, {5, 6}, {6, 7}, {8, 9}}));
}

TEST(SpecTokenizer, OffsetsAreThoseOfTheOriginalText) {
  const auto bert = made(bert_spec());
  // Decomposed accents and a control character lie inside of the piece; ﬁ stays, as it has no
  // canonical decomposition.
  const Encoded text = pieces_with_offsets(*bert,
                                           "e\u0301t\x01"
                                           "e\u0301s");
  EXPECT_EQ(text.ids, (Ids{5, 6}));
  EXPECT_EQ(text.spans, (Spans{{0, 5}, {6, 7}}));
  EXPECT_EQ(pieces_with_offsets(*bert, "ﬁn").ids, Ids{1});
}

TEST(SpecTokenizer, FindsAddedTokens) {
  TokenizerSpec spec = bert_spec();
  spec.added.push_back({.content = "ÉTÉ!", .id = 13, .normalized = true});
  const auto bert = made(spec);
  const Encoded text = pieces_with_offsets(*bert, "ete[MASK] éTé! ete");
  EXPECT_EQ(text.ids, (Ids{5, 4, 13, 5}));
  EXPECT_EQ(text.spans, (Spans{{0, 3}, {3, 9}, {10, 14}, {15, 18}}));
  EXPECT_EQ(bert->size(), 14);
  EXPECT_EQ(bert->piece(13), "ÉTÉ!");
}

TEST(SpecTokenizer, TellsItsSpecials) {
  const SpecialIds bert = made(bert_spec())->specials();
  EXPECT_EQ(bert, (SpecialIds{.pad = 0, .unk = 1, .bos = 2, .eos = 3, .mask = 4}));
  const SpecialIds bytes = made(byte_spec())->specials();
  EXPECT_EQ(bytes, (SpecialIds{.bos = 259}));
  TokenizerSpec other = byte_spec();
  other.sequences.single = {{}, {.part = SequenceTemplate::Part::kSpecial, .id = 7}};
  EXPECT_EQ(made(other)->specials().eos, 7) << "what stands behind the text";
}

TEST(SpecTokenizer, GivesTextBack) {
  const auto bert = made(bert_spec());
  EXPECT_EQ(bert->decode({2, 5, 6, 8, 10, 11, 12, 1, 3, 0, 4}), "etes. fin ' t [UNK]");
  const auto bytes = made(byte_spec());
  Ids ids;
  bytes->encode("the thé 中\n", ids);
  EXPECT_EQ(bytes->decode(ids), "the thé 中\n");
  ids.resize(ids.size() - 2);
  EXPECT_EQ(bytes->decode(ids), "the thé \uFFFD") << "a character that was cut";
}

TEST(SpecTokenizer, CutsBytes) {
  const auto bytes = made(byte_spec());
  const Encoded text = pieces_with_offsets(*bytes, "the thé");
  EXPECT_EQ(text.ids, (Ids{258, 257, 0xC3, 0xA9}));
  EXPECT_EQ(text.spans, (Spans{{0, 3}, {3, 6}, {6, 7}, {6, 7}})) << "two bytes of one character";
}

TEST(SpecTokenizer, MayBeginTextWithASpace) {
  TokenizerSpec spec = byte_spec();
  spec.add_prefix_space = true;
  const auto bytes = made(spec);
  EXPECT_EQ(pieces_with_offsets(*bytes, "tha").ids, (Ids{257, 'a'}));
  EXPECT_EQ(pieces_with_offsets(*bytes, "tha").spans, (Spans{{0, 2}, {2, 3}}));
  EXPECT_EQ(pieces_with_offsets(*bytes, " tha").ids, (Ids{257, 'a'}));
  EXPECT_EQ(pieces_with_offsets(*bytes, "").ids, Ids{});
}

TEST(SpecTokenizer, OffsetsMayLeaveSpacesOut) {
  TokenizerSpec spec = byte_spec();
  spec.trim_offsets = false;
  EXPECT_EQ(pieces_with_offsets(*made(spec), " tha th").spans, (Spans{{1, 3}, {3, 4}, {5, 7}}));
  spec.trim_offsets = true;
  EXPECT_EQ(pieces_with_offsets(*made(spec), " tha th").spans, (Spans{{0, 3}, {3, 4}, {5, 7}}))
      << "the first space counts as added";
  EXPECT_EQ(pieces_with_offsets(*made(spec), "a  ").spans, (Spans{{0, 1}, {2, 2}, {3, 3}}));
}

TEST(SpecTokenizer, ASpecialPieceInTextIsText) {
  const auto bytes = made(byte_spec());
  EXPECT_EQ(pieces_with_offsets(*bytes, "<s>").ids, (Ids{'<', 's', '>'}));
}

TEST(SpecTokenizer, InvalidBytesAreReplacementCharacters) {
  const auto bytes = made(byte_spec());
  EXPECT_EQ(pieces_with_offsets(*bytes, "a\xFF").ids, pieces_with_offsets(*bytes, "a\uFFFD").ids);
  EXPECT_EQ(pieces_with_offsets(*bytes, "\xE4\xB8z").spans.back(), (CodePointSpan{2, 3}));
  EXPECT_EQ(pieces_with_offsets(*made(bert_spec()), "ete\xFF").ids, Ids{5}) << "BERT drops them";
}

TEST(SpecTokenizer, RefusesWhatCannotBe) {
  TokenizerSpec merges = byte_spec();
  merges.merges.emplace_back("th", "x");
  EXPECT_STREQ(testing::failure(ExitCode::kBadData, [&] { made(merges); }).what(),
               "t.json: merge 4 needs `thx`, which is not in the vocabulary");
  TokenizerSpec twice = bert_spec();
  twice.added.push_back({.content = "É", .id = 13});
  twice.added.push_back({.content = "e", .id = 14});
  EXPECT_STREQ(testing::failure(ExitCode::kBadData, [&] { made(twice); }).what(),
               "t.json: added token `e` is normalised to the same text as another one");
  TokenizerSpec nothing = bert_spec();
  nothing.added.push_back({.content = "\u0301", .id = 13});
  EXPECT_STREQ(testing::failure(ExitCode::kBadData, [&] { made(nothing); }).what(),
               "t.json: added token `\u0301` is normalised to nothing");
}

TEST(SpecTokenizer, ThreadsDoNotDisturbEachOther) {
  const auto bytes = made(byte_spec());
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back("the " + std::to_string(i) + " thé 中");
  const auto all = [&] {
    Ids ids;
    for (const auto& line : lines) bytes->encode(line, ids);
    return ids;
  };
  const Ids alone = all();
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) threads.emplace_back([&] { result = all(); });
  for (auto& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, alone);
}

}  // namespace
}  // namespace stretto::text
