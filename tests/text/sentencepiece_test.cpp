#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "tests/base/failure.h"
#include "tests/text/special_ids.h"
#include "text/sentencepiece_check.h"
#include "text/tokenizer.h"
#include "text/tokenizer_options.h"

namespace stretto::text {
namespace {

using stretto::testing::kBos;
using stretto::testing::kEos;
using stretto::testing::kPad;
using stretto::testing::kUnk;

std::vector<std::string> phrases() {
  const std::vector<std::string> nouns{"cat", "house", "river", "garden", "teacher", "window"};
  const std::vector<std::string> verbs{"sees", "finds", "keeps", "paints", "remembers"};
  std::vector<std::string> lines;
  for (const auto& subject : nouns) {
    for (const auto& verb : verbs) {
      for (const auto& object : nouns) {
        lines.push_back("The " + subject + " " + verb + " the old " + object + " .");
      }
    }
  }
  return lines;
}

std::string trained(const std::string& algorithm, int64_t threads = 2, int64_t size = 0) {
  if (size == 0) size = algorithm == "unigram" ? 36 : 80;  // what this little text allows
  return train_sentencepiece(phrases(),
                             {.algorithm = algorithm, .vocab_size = size, .num_threads = threads});
}

template <class Call>
std::string message_of(Call call, ExitCode code = ExitCode::kBadData) {
  return testing::failure(code, call).message();
}

// ---- A writer of protobuf messages, to make models that the trainer never would.

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string field(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}
std::string piece(const std::string& text, float score, uint64_t type = 1) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return field(1, field(1, text) + varint(2 << 3 | 5) + bits + field(3, type));
}

/// Pieces with the specials at unusual places; a sentence of `a`s and `b`s becomes characters.
std::string unusual_model() {
  std::string model = piece("\xE2\x96\x81", -1) + piece("<unk>", 0, 2) + piece("a", -1) +
                      piece("</s>", 0, 3) + piece("b", -1) + piece("<s>", 0, 3);
  const std::string trainer = field(3, uint64_t{1}) + field(40, uint64_t{1}) +
                              field(41, uint64_t{5}) + field(42, uint64_t{3}) + varint(43 << 3) +
                              varint(static_cast<uint64_t>(int64_t{-1}));
  return model + field(2, trainer) + field(3, field(1, std::string("identity")));
}

TEST(SentencePieceTrain, GivesTheTextBack) {
  for (const char* algorithm : {"bpe", "unigram"}) {
    const auto tokenizer = make_sentencepiece(trained(algorithm), "m.model");
    for (const std::string& line : phrases()) {
      std::vector<int64_t> ids;
      tokenizer->encode(line, ids);
      EXPECT_EQ(tokenizer->decode(ids), line);
      for (const int64_t id : ids) {
        EXPECT_GT(id, kEos);
        EXPECT_LT(id, tokenizer->size());
      }
    }
  }
}

TEST(SentencePieceTrain, PutsTheSpecialsFirstAndHasTheAskedSize) {
  const auto tokenizer = make_sentencepiece(trained("bpe"), "m.model");
  EXPECT_EQ(tokenizer->size(), 80);
  EXPECT_EQ(tokenizer->piece(kPad), "<pad>");
  EXPECT_EQ(tokenizer->piece(kUnk), "<unk>");
  EXPECT_EQ(tokenizer->piece(kBos), "<s>");
  EXPECT_EQ(tokenizer->piece(kEos), "</s>");
  EXPECT_EQ(tokenizer->specials(), stretto::testing::kSpecials);
}

TEST(SentencePieceTrain, DoesNotDependOnThreadsOrRepetition) {
  for (const char* algorithm : {"bpe", "unigram"}) {
    const std::string one = trained(algorithm, 1);
    const auto tokenizer = make_sentencepiece(one, "m"),
               again = make_sentencepiece(trained(algorithm, 4), "m");
    ASSERT_EQ(tokenizer->size(), again->size());
    for (int64_t id = 0; id < tokenizer->size(); ++id) {
      EXPECT_EQ(tokenizer->piece(id), again->piece(id)) << algorithm;
    }
    EXPECT_EQ(one, trained(algorithm, 1));
  }
}

// Ids and texts by the Python package (0.2.3) on the same lines with the same arguments.
TEST(SentencePieceTrain, GivesTheIdsOfTheReference) {
  const auto tokenizer = make_sentencepiece(trained("bpe"), "m.model");
  const std::string known = "The teacher remembers the old window .";
  std::vector<int64_t> ids;
  tokenizer->encode(known, ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{10, 43, 16, 18, 18, 54, 12, 11, 42, 7}));
  EXPECT_EQ(tokenizer->decode(ids), known);
  ids.clear();
  tokenizer->encode("A  cat, the house\xC2\xA0!", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{56, 1, 34, 1, 12, 39, 56, 1}));
  EXPECT_EQ(tokenizer->decode(ids), " \xE2\x81\x87  cat \xE2\x81\x87  the house  \xE2\x81\x87 ");
}

TEST(SentencePieceTrain, SaysTheLargestPossibleSize) {
  const std::string said = message_of([] { trained("bpe", 2, 5000); }, ExitCode::kUsage);
  EXPECT_NE(said.find("largest possible size is "), std::string::npos) << said;
  const size_t at = said.find("tokenizer.vocab_size=");
  ASSERT_NE(at, std::string::npos) << said;
  const int64_t largest = std::stoll(said.substr(at + std::strlen("tokenizer.vocab_size=")));
  EXPECT_EQ(make_sentencepiece(trained("bpe", 2, largest), "m")->size(), largest);
}

TEST(SentencePieceTrain, SaysTheSmallestPossibleSize) {
  const std::string said = message_of([] { trained("bpe", 2, 16); }, ExitCode::kUsage);
  EXPECT_NE(said.find("cannot hold"), std::string::npos) << said;
}

// The key says what the trainer takes.
TEST(SentencePieceTrain, TakesACoverageFromTheSmallestThatTheKeyAllows) {
  TokenizerOptions options;
  const double least = config::schema_of(options).find("character_coverage")->range.min;
  const auto train = [](double coverage) {
    return train_sentencepiece(phrases(), {.vocab_size = 60, .character_coverage = coverage});
  };
  EXPECT_FALSE(train(least).empty());
  const std::string below = message_of([&] { train(least - 0.001); });
  EXPECT_NE(below.find("character_coverage() >= 0.98"), std::string::npos) << below;
}

TEST(SentencePieceTrain, RefusesNoText) {
  EXPECT_NE(message_of([] { train_sentencepiece({}, {}); }).find("no text"), std::string::npos);
}

TEST(SentencePiece, MovesTheSpecialsToOurPlacesAndKeepsTheOthersInOrder) {
  const auto tokenizer = make_sentencepiece(unusual_model(), "odd.model");
  EXPECT_EQ(tokenizer->specials(), stretto::testing::kSpecials);
  ASSERT_EQ(tokenizer->size(), 7);  // six pieces, and a place for the padding that it lacks
  EXPECT_EQ(tokenizer->piece(4), "\xE2\x96\x81");
  EXPECT_EQ(tokenizer->piece(5), "a");
  EXPECT_EQ(tokenizer->piece(6), "b");
  std::vector<int64_t> ids;
  tokenizer->encode("ab z", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{4, 5, 6, 4, kUnk}));
  EXPECT_EQ(tokenizer->decode({kBos, 4, 5, 6, kEos, kPad}), "ab");
}

TEST(SentencePiece, ShowsUnknownPiecesAsTheLibraryDoes) {
  const auto tokenizer = make_sentencepiece(unusual_model(), "odd.model");
  EXPECT_EQ(tokenizer->decode({4, 5, kUnk}), "a \xE2\x81\x87 ");
  EXPECT_EQ(tokenizer->decode({4, 5, 99, -7}), tokenizer->decode({4, 5, kUnk, kUnk}));
}

TEST(SentencePiece, NamesOfSpecialsInTheTextAreText) {
  const auto tokenizer = make_sentencepiece(trained("bpe"), "m.model");
  std::vector<int64_t> ids;
  tokenizer->encode("<s> </s> <pad>", ids);
  for (const int64_t id : ids) {
    EXPECT_NE(id, kBos);
    EXPECT_NE(id, kEos);
    EXPECT_NE(id, kPad);
  }
}

TEST(SentencePiece, FingerprintChangesWithTheModel) {
  const std::string a = trained("bpe"), b = trained("bpe", 2, 81);
  EXPECT_EQ(make_sentencepiece(a, "x")->fingerprint(), make_sentencepiece(a, "y")->fingerprint());
  EXPECT_NE(make_sentencepiece(a, "x")->fingerprint(), make_sentencepiece(b, "x")->fingerprint());
}

TEST(SentencePieceCheck, RefusesEveryTruncation) {
  const std::string model = unusual_model();
  for (size_t size = 0; size < model.size(); ++size) {
    try {
      make_sentencepiece(model.substr(0, size), "cut.model");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_NE(std::string(error.what()).find("cut.model"), std::string::npos);
    }
  }
}

TEST(SentencePieceCheck, RefusesALongPiece) {
  const std::string model = unusual_model() + piece(std::string(500'000, 'x'), -1);
  EXPECT_NE(message_of([&] { make_sentencepiece(model, "m"); }).find("500000 bytes"),
            std::string::npos);
  EXPECT_NO_THROW(
      check_sentencepiece_model(unusual_model() + piece(std::string(4096, 'x'), -1), "m"));
}

// The library builds a double array of all pieces, and an object for every setting.
TEST(SentencePieceCheck, RefusesWhatTheLibraryWouldTakeMuchMemoryFor) {
  std::string pieces = unusual_model();
  for (int i = 0; i < 1500; ++i) pieces += piece(std::string(4096, 'x'), -1);
  const auto refused = [](const std::string& model, const char* part) {
    const std::string what = message_of([&] { check_sentencepiece_model(model, "m"); });
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  refused(pieces, "its pieces would take more than");
  std::string settings;
  for (int i = 0; i < 4'000'000; ++i) settings += std::string_view("\xFA\x01\0", 3);
  std::string length;
  for (size_t rest = settings.size(); rest > 0; rest >>= 7) {
    length += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
  }
  refused(unusual_model() + "\x12" + length + settings, "the settings in it would take more than");
}

TEST(SentencePieceCheck, RefusesScoresThatAreNotNumbers) {
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -3e38f}) {
    const std::string model = unusual_model() + piece("c", score);
    EXPECT_NE(message_of([&] { make_sentencepiece(model, "m"); }).find("score"), std::string::npos);
  }
}

TEST(SentencePieceCheck, RefusesOtherFiles) {
  for (const std::string& bytes : {std::string("the cat sees"), std::string("\x1F\x8B\x08"),
                                   std::string(64, '\0'), std::string(64, '\xFF'), std::string()}) {
    message_of([&] { make_sentencepiece(bytes, "m"); });
  }
}

/// A charsmap of `units` 32-bit words and the given strings.
std::string charsmap(const std::vector<uint32_t>& units, const std::string& strings) {
  const auto size = static_cast<uint32_t>(units.size() * 4);
  std::string blob(4 + size, '\0');
  std::memcpy(blob.data(), &size, 4);
  std::memcpy(blob.data() + 4, units.data(), size);
  return blob + strings;
}

TEST(SentencePieceCheck, AcceptsATableThatStaysInsideItself) {
  std::vector<uint32_t> units(256, 0);
  units[0] = 0x80u << 10;                                           // root: base 0x80
  units[0x80 ^ 'a'] = (0x80u ^ 'a' ^ 0x10u) << 10 | 1u << 8 | 'a';  // leads to base 0x10, a leaf
  units[0x10] = 0x80000000u | 2;                                    // replacement at byte 2
  EXPECT_NO_THROW(check_charsmap(charsmap(units, std::string("x\0y\0", 4)), "m"));
}

TEST(SentencePieceCheck, RefusesATableThatPointsOutsideItself) {
  std::vector<uint32_t> far(256, 0);
  far[0] = 0x1FFFFFu << 10;
  message_of([&] { check_charsmap(charsmap(far, std::string("x\0", 2)), "m"); });

  std::vector<uint32_t> beyond(256, 0);
  beyond[0] = 0x80u << 10;
  beyond[0x80 ^ 'a'] = (0x80u ^ 'a' ^ 0x10u) << 10 | 1u << 8 | 'a';
  beyond[0x10] = 0x80000000u | 400;
  message_of([&] { check_charsmap(charsmap(beyond, std::string("x\0", 2)), "m"); });
  beyond[0x10] = 0x80000000u;
  message_of([&] { check_charsmap(charsmap(beyond, "x"), "m"); });  // no end
  message_of([&] { check_charsmap("abc", "m"); });
  message_of([&] { check_charsmap(std::string("\xFF\xFF\xFF\xFFzzzz", 8), "m"); });
}

TEST(SentencePiece, TellsWhereItsPiecesStand) {
  const auto tokenizer = make_sentencepiece(trained("bpe"), "m.model");
  for (const std::string line : {"The cat sees é the", " The  old\xFF gardens"}) {
    std::vector<int64_t> ids, alone;
    std::vector<CodePointSpan> spans;
    tokenizer->encode_with_spans(line, ids, spans);
    tokenizer->encode(line, alone);
    EXPECT_EQ(ids, alone);
    ASSERT_EQ(spans.size(), ids.size());
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_EQ(spans[i].begin, spans[i - 1].end) << line;
    EXPECT_EQ(spans.back().end, 18) << line;
  }
}

}  // namespace
}  // namespace stretto::text
