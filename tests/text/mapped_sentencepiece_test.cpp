#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

using testing::failure;

std::string small_model(const std::string& third) {
  std::vector<std::string> lines;
  for (int i = 0; i < 60; ++i) {
    lines.push_back("red house");
    lines.push_back("old house " + third);
  }
  return train_sentencepiece(lines, {.algorithm = "bpe", .vocab_size = 30, .num_threads = 1});
}

/// `</s>` first and `<pad>` last, as in Marian's; pieces in the opposite order of the models'.
std::string vocabulary_of(const std::vector<std::string>& models) {
  std::vector<std::string> pieces{"</s>", "<unk>"};
  for (const auto& model : models) {
    const auto tokenizer = make_sentencepiece(model, "test.model");
    for (int64_t id = tokenizer->size() - 1; id > 3; --id) {
      const std::string piece = tokenizer->piece(id);
      if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(piece);
    }
  }
  pieces.insert(pieces.end(), {">>deu<<", "<pad>"});
  auto ids = nlohmann::json::object();
  for (size_t id = 0; id < pieces.size(); ++id) ids[pieces[id]] = id;
  return ids.dump();
}

struct BothSides {
  std::string src = small_model("tree"), tgt = small_model("b\xC3\xA4r");
  std::string vocab = vocabulary_of({src, tgt});
  TokenizerPair pair() const {
    return load_tokenizers({}, {{"src.model", src}, {"tgt.model", tgt}, {"vocab.json", vocab}});
  }
};

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::string& line) {
  std::vector<int64_t> ids;
  tokenizer.encode(line, ids);
  std::vector<std::string> pieces;
  for (const int64_t id : ids) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

TEST(MappedSentencePiece, IdsAndSpecialsAreThoseOfTheVocabulary) {
  const BothSides sides;
  const auto ids_of = nlohmann::json::parse(sides.vocab);
  const auto tokenizer = sides.pair().src;
  const auto last = static_cast<int64_t>(ids_of.size()) - 1;
  EXPECT_EQ(tokenizer->size(), last + 1);
  EXPECT_EQ(tokenizer->specials(), (SpecialIds{.pad = last, .unk = 1, .bos = last, .eos = 0}));
  const auto plain = make_sentencepiece(sides.src, "test.model");
  std::vector<int64_t> ids, own;
  tokenizer->encode("old red tree", ids);
  plain->encode("old red tree", own);
  ASSERT_EQ(ids.size(), own.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], ids_of.at(plain->piece(own[i])).get<int64_t>());
  }
  EXPECT_EQ(tokenizer->decode(ids), "old red tree");
}

TEST(MappedSentencePiece, BothSidesShareTheIdsOfOneVocabulary) {
  const BothSides sides;
  const auto pair = sides.pair();
  EXPECT_TRUE(pair.joint);
  EXPECT_NE(pair.src, pair.tgt);
  EXPECT_NE(pair.src->fingerprint(), pair.tgt->fingerprint());
  EXPECT_EQ(pair.src->specials(), pair.tgt->specials());
  for (int64_t id = 0; id < pair.src->size(); ++id) {
    EXPECT_EQ(pair.src->piece(id), pair.tgt->piece(id));
  }
  EXPECT_EQ(load_tokenizers({}, pair.assets).src->fingerprint(), pair.src->fingerprint());
}

TEST(MappedSentencePiece, EachSideMayHaveAVocabulary) {
  const BothSides sides;
  const auto pair = load_tokenizers({}, {{"src.model", sides.src},
                                         {"tgt.model", sides.tgt},
                                         {"src.vocab.json", vocabulary_of({sides.src})},
                                         {"tgt.vocab.json", vocabulary_of({sides.tgt})}});
  EXPECT_FALSE(pair.joint);
  EXPECT_EQ(pieces_of(*pair.tgt, "b\xC3\xA4r"), pieces_of(*sides.pair().tgt, "b\xC3\xA4r"));
}

TEST(MappedSentencePiece, ALanguageAtTheBeginningIsOnePiece) {
  const auto tokenizer = BothSides().pair().src;
  auto with = pieces_of(*tokenizer, ">>deu<< red house");
  const auto without = pieces_of(*tokenizer, "red house");
  ASSERT_EQ(with.size(), without.size() + 1);
  EXPECT_EQ(with.front(), ">>deu<<");
  with.erase(with.begin());
  EXPECT_EQ(with, without);
  EXPECT_EQ(pieces_of(*tokenizer, ">>fra<< red").front(), "<unk>");
  EXPECT_NE(pieces_of(*tokenizer, "red >>deu<<").front(), ">>deu<<");
  EXPECT_GT(pieces_of(*tokenizer, ">>deu red").size(), 2u);  // not closed: text
}

// A piece is looked up by its text: what the source's model does not know may be a piece of the
// target's.
TEST(MappedSentencePiece, TextThatOnlyTheOtherSideKnowsHasItsId) {
  const BothSides sides;
  const auto source = sides.pair().src;
  const auto pieces = pieces_of(*source, "r \xC3\xA4 e");
  EXPECT_NE(std::find(pieces.begin(), pieces.end(), "\xC3\xA4"), pieces.end());
  const auto unknown = pieces_of(*source, "r \xE7\x8C\xAB e");
  EXPECT_NE(std::find(unknown.begin(), unknown.end(), "<unk>"), unknown.end());
}

TEST(MappedSentencePiece, SpecialsAreLeftOutOfTextAndCannotBeSpelt) {
  const auto tokenizer = BothSides().pair().tgt;
  const auto specials = tokenizer->specials();
  std::vector<int64_t> ids;
  tokenizer->encode("old house", ids);
  ids.insert(ids.begin(), specials.pad);
  ids.push_back(specials.eos);
  EXPECT_EQ(tokenizer->decode(ids), "old house");
  EXPECT_NE(tokenizer->decode({ids[1], specials.unk}), tokenizer->decode({ids[1]}));
  // The model knows no character of `</s>`: it is one unknown piece with this text.
  const auto other = make_mapped_sentencepiece(small_model("tree"), "test.model",
                                               {R"({"</s>": 0, "<unk>": 1, "<pad>": 2})", "vocab"});
  for (const auto& piece : pieces_of(*other, "</> </s> <pad>")) EXPECT_EQ(piece, "<unk>");
  EXPECT_EQ(tokenizer->piece(-1), "<unk>");
  EXPECT_EQ(tokenizer->piece(tokenizer->size()), "<unk>");
}

TEST(MappedSentencePiece, ADecoderMayBeginWithAnotherPiece) {
  const std::string model = small_model("tree");
  const std::string vocab = R"({"</s>": 0, "<unk>": 1, "<s>": 2, "<pad>": 3})";
  const auto tokenizer = make_mapped_sentencepiece(model, "m", {vocab, "v", "<s>"});
  EXPECT_EQ(tokenizer->specials(), (SpecialIds{.pad = 3, .unk = 1, .bos = 2, .eos = 0}));
  EXPECT_EQ(tokenizer->decode({2, 0, 3}), "");
  EXPECT_NE(tokenizer->fingerprint(),
            make_mapped_sentencepiece(model, "m", {vocab, "v"})->fingerprint());
  failure(ExitCode::kBadData, [&] { make_mapped_sentencepiece(model, "m", {vocab, "v", "<x>"}); });
  const auto pair = load_tokenizers(
      {},
      {{"src.model", model}, {"tgt.model", model}, {"vocab.json", vocab}, {"begin.piece", "<s>"}});
  EXPECT_EQ(pair.tgt->specials().bos, 2);
  EXPECT_EQ(load_tokenizers({}, pair.assets).tgt->specials().bos, 2);
}

TEST(MappedSentencePiece, SpansAreThoseOfTheLine) {
  const auto tokenizer = BothSides().pair().src;
  const std::string line = ">>deu<< red house";
  std::vector<int64_t> ids, same;
  std::vector<CodePointSpan> spans;
  tokenizer->encode_with_spans(line, ids, spans);
  tokenizer->encode(line, same);
  EXPECT_EQ(ids, same);
  ASSERT_EQ(spans.size(), ids.size());
  EXPECT_EQ(spans.front(), (CodePointSpan{0, 7}));
  EXPECT_GE(spans[1].begin, 7);
  EXPECT_EQ(spans.back().end, 17);
}

TEST(MappedSentencePiece, BrokenVocabulariesAreRefused) {
  const std::string model = small_model("tree");
  const auto refused = [&](const std::string& vocab) {
    return failure(ExitCode::kBadData,
                   [&] {
                     make_mapped_sentencepiece(model, "source.spm", {vocab, "vocab.json"});
                   })
        .message();
  };
  EXPECT_NE(refused(R"({"</s>": 0, "<unk>": 1})").find("<pad>"), std::string::npos);
  EXPECT_NE(refused(R"({"</s>": 0, "<unk>": 1, "<pad>": 1})").find("both have id 1"),
            std::string::npos);
  EXPECT_NE(refused(R"({"</s>": 0, "<unk>": 1, "<pad>": -2})").find("vocab.json"),
            std::string::npos);
  EXPECT_NE(refused("[]").find("vocab.json"), std::string::npos);
  EXPECT_NE(refused("{").find("vocab.json"), std::string::npos);
}

TEST(MappedSentencePiece, ARunWithoutAModelIsRefused) {
  const BothSides sides;
  failure(ExitCode::kUsage, [&] {
    load_tokenizers({}, {{"src.model", sides.src}, {"vocab.json", sides.vocab}});
  });
}

}  // namespace
}  // namespace stretto::text
