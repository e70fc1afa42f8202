// Scores that sacreBLEU 2.6.0 gave for a small awkward corpus: empty lines, CJK, emoji with
// joiners, numbers, Greek and Turkish capitals, and a segment long enough for TER to meet its
// candidate limit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "metrics/scorers.h"

namespace stretto::metrics {
namespace {

const std::vector<std::string> kHypotheses = {
    "The quick brown fox jumps over the lazy dog.",
    "",
    "中文 句子测试。",
    "I like 😀 and 👩‍👩‍👧 a lot",
    "Er zahlte 1,000.50 € am 2021-11-05 (heute).",
    "a b c a b c a b c a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g",
    "ΣΟΦΟΣ İstanbul STRASSE É",
    "yes",
};
const std::vector<std::string> kReferenceA = {
    "The fast brown fox jumped over the lazy dog.",
    "nothing",
    "中文 的 句子测试！",
    "I like 😀😀 and 👩‍👩‍👧 very much",
    "Er zahlte 1,000.50 € am 05.11.2021 (heute).",
    "g f e d c b a z y x w v u t s r q p o n m l k j i h g f e d c b a b c a b c a b",
    "σοφος istanbul straße é",
    "",
};
const std::vector<std::string> kReferenceB = {
    "A quick brown fox leaps over a lazy dog .",
    "",
    "中文句子测试。",
    "I love 😀 and 👩‍👩‍👧 a lot",
    "Am 2021-11-05 (heute) zahlte er 1,000.50 €.",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c a b c a b c a b c d e f g",
    "σοφος i̇stanbul strasse é",
    "yes !",
};

struct Case {
  const char* metric;
  const char* tokenize;
  bool lowercase;
  double against_a, against_b, against_both;
};

const Case kCases[] = {
    {"bleu", "13a", false, 29.441838, 78.245273, 86.794928},
    {"bleu", "13a", true, 29.676453, 83.335358, 91.314096},
    {"bleu", "intl", false, 37.766205, 77.733577, 87.202100},
    {"bleu", "intl", true, 38.040886, 82.766042, 91.670977},
    {"bleu", "none", false, 27.619575, 74.412781, 85.116928},
    {"bleu", "none", true, 27.854656, 79.218149, 89.291533},
    {"bleu", "char", false, 53.173066, 76.424762, 88.443471},
    {"bleu", "char", true, 58.844492, 86.658316, 97.370913},
    {"chrf", "13a", false, 48.383436, 72.736921, 72.595301},
    {"chrf", "13a", true, 53.490830, 83.926995, 82.530558},
    {"chrf++", "13a", false, 50.154115, 73.995482, 74.825480},
    {"chrf++", "13a", true, 54.326183, 84.132129, 82.868895},
    {"ter", "13a", false, 61.971831, 20.547945, 11.111111},
};

TEST(MetricsGolden, AwkwardTextScoresAsInSacrebleu) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.metric) + " " + c.tokenize + (c.lowercase ? " lower-cased" : ""));
    const ScoreOptions options{
        .metric = c.metric, .tokenize = c.tokenize, .lowercase = c.lowercase};
    using Sets = std::vector<std::vector<std::string>>;
    EXPECT_NEAR(compute(options, kHypotheses, Sets{kReferenceA}).score, c.against_a, 2e-6);
    EXPECT_NEAR(compute(options, kHypotheses, Sets{kReferenceB}).score, c.against_b, 2e-6);
    EXPECT_NEAR(compute(options, kHypotheses, Sets{kReferenceA, kReferenceB}).score, c.against_both,
                2e-6);
  }
}

}  // namespace
}  // namespace stretto::metrics
