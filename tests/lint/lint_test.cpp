#include "lint/lint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

namespace fs = std::filesystem;

using testing::codes_of;
using testing::kSound;
using testing::kTensors;
using testing::kTwoHeads;
using testing::lint_of;

struct BadConfig {
  const char* code;
  const char* key;
  std::vector<std::string> overrides;
  LintContext context = {};
  const char* file = kSound;
};

const std::vector<BadConfig>& bad_configs() {
  static const std::vector<BadConfig> list{
      {"LB001",
       "schedule.warmup_steps",
       {"optim.reference_batch=1000", "optim.lr_scaling=linear", "schedule.warmup_steps=0"}},
      {"LB002", "schedule.warmup_steps", {"train.update_freq=32", "schedule.warmup_steps=100"}},
      {"LB003",
       "optim.reference_batch",
       {"optim.reference_batch=100", "optim.lr_scaling=linear", "optim.lr=1e-5"}},
      {"LB004", "optim.lr", {"train.update_freq=32", "optim.lr=5e-3"}},
      {"LB005", "optim.lr_scaling", {"optim.reference_batch=1000", "optim.lr_scaling=linear"}},
      {"LB006",
       "optim.lr_scaling",
       {"optim.name=sgd", "optim.reference_batch=1000", "optim.lr_scaling=sqrt"}},
      {"LB007",
       "schedule.warmup",
       {"train.update_freq=32", "schedule.warmup=constant", "schedule.warmup_init_lr=1e-4"}},
      {"LB008", "optim.weight_decay", {"optim.weight_decay=0.1"}},
      {"LB009",
       "optim.no_decay",
       {"optim.name=adamw", "optim.weight_decay=0.1", "optim.no_decay=none"},
       {.tensors = kTensors}},
      {"LB010", "train.update_freq", {"train.update_freq=2"}, {.files = {.epoch = 25'000}}},
      {"LB011",
       "train.update_freq",
       {"train.update_freq=20", "schedule.name=constant", "schedule.warmup_steps=0"}},
      {"LB012", "optim.beta2", {"optim.beta2=0.9999"}},
      {"LB013", "train.average_last", {"train.average_last=5", "train.save_every=1500"}},
      {"LB014", "optim.clip_norm", {"optim.name=larc", "optim.clip_norm=1"}},
      {"LB015", "schedule.warmup_steps", {"schedule.warmup_steps=8000"}},
      {"LB016", "model.zero_gamma", {"model.norm=res_post", "train.update_freq=32"}},
      {"LB017",
       "data.max_samples",
       {"data.max_samples=16", "optim.reference_batch=4096", "optim.lr_scaling=sqrt"}},
      {"LB018", "train.update_freq", {"train.update_freq=1"}, {}, kTwoHeads},
      {"BN001",
       "data.max_tokens",
       {"model.norm_layer=batch_norm", "data.max_tokens=300", "data.max_src_tokens=300",
        "data.max_tgt_tokens=300"}},
      {"BN002",
       "dist.batch_norm",
       {"model.norm_layer=batch_norm", "dist.batch_norm=all", "optim.reference_batch=1000",
        "optim.lr_scaling=linear"}},
      {"BN003", "dist.batch_norm", {"dist.batch_norm=all"}},
      {"LN001",
       "model.decoder.hidden_dim",
       {"model.decoder.name=lstm", "model.decoder.cell=norm_lstm", "model.decoder.hidden_dim=8"}},
      {"MP001",
       "train.loss_scale.name",
       {"train.precision=mixed_fp16", "train.loss_scale.name=none"}},
      {"MP002",
       "train.loss_scale.init",
       {"train.precision=mixed_fp16", "train.loss_scale.name=static",
        "train.loss_scale.init=65536"}},
      {"MP003", "train.loss_scale.name", {"train.loss_scale.name=backoff"}},
      {"DP001", "dist.compress", {"dist.compress=fp16"}},
      {"DP002", "dist.bucket_bytes", {"dist.bucket_bytes=4096"}},
      {"DP003", "train.update_freq", {"train.update_freq=2"}, {.processes = 3}},
      {"EV001", "data.valid_src", {"data.valid_src=[]", "data.valid_tgt=[]"}},
      {"EV002", "eval.every", {"eval.every=10000"}},
      {"EV003", "eval.bleu_sentences", {"eval.best_metric=bleu", "eval.bleu_sentences=100"}},
      {"EV004", "eval.every", {"eval.every=5"}},
      {"SC001", "schedule.total_steps", {"schedule.name=cosine", "schedule.total_steps=8000"}},
      {"SC002", "schedule.total_steps", {"schedule.name=linear", "schedule.total_steps=20000"}},
      {"SC003", "schedule.warmup_steps", {"schedule.warmup_steps=0"}},
      {"SC004", "optim.lr", {"optim.lr=0.5"}},
      {"SC005", "loss.label_smoothing", {"loss.label_smoothing=0.5"}},
      {"RG001", "loss.r_drop", {"loss.r_drop=5", "model.dropout=0"}},
      {"CK001", "train.save_every", {"train.save_every=10000"}},
      {"CK002", "train.average_last", {"train.average_last=3", "train.save_every=5000"}},
      {"CK003",
       "train.save_every",
       {"train.forensics.policy=rollback", "train.save_every=9000", "eval.every=9000"}},
      {"CF001", "optim.nesterov", {"optim.nesterov=true"}},
      {"CF002", "optim.name", {"optim.name=lazy_adam"}},
      {"CF004",
       "optim.weight_noise_tensors",
       {"optim.weight_noise=0.1", "optim.weight_noise_tensors=[\"encoder.*\"]",
        "train.freeze=[\"encoder.*\"]"},
       {.tensors = kTensors}},
  };
  return list;
}

TEST(Lint, EachBadConfigurationRaisesItsCodeAtItsKey) {
  for (const auto& bad : bad_configs()) {
    SCOPED_TRACE(bad.code);
    bool found = false;
    for (const auto& finding : lint_of(bad.overrides, bad.context, bad.file)) {
      if (finding.code != bad.code) continue;
      found = true;
      EXPECT_EQ(finding.key, bad.key);
      EXPECT_FALSE(finding.reason.empty());
      EXPECT_FALSE(finding.fix.empty());
      EXPECT_FALSE(finding.source.empty());
    }
    EXPECT_TRUE(found);
  }
}

TEST(Lint, EveryRuleHasABadConfigurationAndACodeOfItsOwn) {
  std::vector<std::string> tested;
  for (const auto& bad : bad_configs()) tested.push_back(bad.code);
  EXPECT_EQ(tested, lint_codes());
  EXPECT_EQ(std::set<std::string>(tested.begin(), tested.end()).size(), tested.size());
}

TEST(Lint, ASoundConfigurationRaisesNothing) {
  const std::vector<std::vector<std::string>> sound{
      {},
      {"train.update_freq=128", "optim.lr=1e-3"},  // Ott et al. 2018, with its warm-up of 4,000
      {"train.update_freq=32", "schedule.warmup_steps=900"},  // a tenth of the run
      {"train.update_freq=32", "optim.name=radam", "schedule.name=constant",
       "schedule.warmup_steps=0"},
      {"optim.name=adamw", "optim.weight_decay=0.1"},
      {"optim.name=adamw", "optim.weight_decay=0.1", "optim.no_decay=[\"*.bias\", \"*norm.*\"]"},
      {"optim.name=sgd", "optim.lr=0.1", "optim.momentum_form=rate_inside"},
      {"optim.reference_batch=1000", "optim.lr_scaling=sqrt"},
      {"data.max_samples=16"},  // of a rate that is not scaled
      {"data.max_samples=128", "optim.reference_batch=1000", "optim.lr_scaling=sqrt"},
      {"optim.name=sgd", "optim.reference_batch=1000", "optim.lr_scaling=linear"},
      {"optim.reference_batch=4096", "optim.lr_scaling=linear"},
      {"train.precision=mixed_fp16", "dist.compress=fp16"},
      {"train.precision=mixed_bf16", "dist.compress=bf16"},
      {"train.precision=auto_fp16", "dist.compress=fp16"},  // fp16 where it matters
      {"train.precision=auto_fp16", "train.loss_scale.name=fairseq", "train.loss_scale.init=64"},
      {"train.precision=auto_fp16", "train.loss_scale.init=64"},
      {"schedule.name=noam", "optim.lr=2"},
      {"schedule.name=cosine", "train.average_last=5"},
      {"model.norm_layer=batch_norm"},
      {"model.norm=res_post"},  // not a large batch
      {"model.norm=res_post", "model.zero_gamma=true", "train.update_freq=32"},
      {"model.norm=pre", "train.update_freq=32"},  // its parts end in no norm
      {"model.norm_layer=batch_norm", "dist.batch_norm=all"},
      {"dist.bucket_bytes=1048576"},
      {"optim.nesterov=false", "optim.momentum=0.9"},  // not read, and as they are by default
      {"optim.name=rmsprop", "optim.momentum=0.5"},
      {"optim.name=ftrl", "optim.l1=0.1", "optim.l2=0.1"},
      {"optim.name=lazy_adam", "model.tie_embeddings=decoder"},
      {"optim.name=lazy_adam", "optim.lazy_tables=[\"encoder.*\"]"},
      {"optim.weight_noise=0.1", "optim.weight_noise_tensors=[\"encoder.*\"]"},
      {"train.precision=mixed_fp16", "train.loss_scale.init=64"},  // auto is fairseq
      {"schedule.name=noam", "optim.lr=2", "schedule.warmup_init_lr=1e-5",
       "schedule.warmup=constant"},
  };
  for (const auto& overrides : sound) {
    for (const auto& finding : lint_of(overrides, {.tensors = kTensors})) {
      ADD_FAILURE() << (overrides.empty() ? "" : overrides.front()) << ": " << finding.code << " "
                    << finding.key << ": " << finding.reason;
    }
  }
}

TEST(Lint, AnUpdateWithAMicroBatchForEachHeadRaisesNothing) {
  EXPECT_EQ(codes_of(lint_of({}, {}, kTwoHeads)), std::vector<std::string>{});
  EXPECT_EQ(codes_of(lint_of({"train.update_freq=3"}, {}, kTwoHeads)), std::vector<std::string>{});
  const auto found = lint_of({"train.update_freq=1"}, {}, kTwoHeads);
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"LB018"});
  EXPECT_TRUE(found[0].reason.starts_with("an update has 1 micro-batch, each of one of 2 heads"))
      << found[0].reason;
  EXPECT_EQ(found[0].fix, "train.update_freq = 2 or more; a lower data.max_tokens keeps the batch");
  // Nor is it advised to take one of them away.
  const LintContext short_text{.files = {.epoch = 25'000}};
  EXPECT_EQ(codes_of(lint_of({}, short_text, kTwoHeads)), std::vector<std::string>{});
  EXPECT_EQ(codes_of(lint_of({"train.update_freq=3"}, short_text, kTwoHeads)),
            std::vector<std::string>{"LB010"});
}

/// As a page's anchor: "How long a warm-up" is how-long-a-warm-up.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find_first_not_of("# "))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

/// Whether the page has that section, with a paragraph under its heading.
bool explains(const fs::path& page, const std::string& anchor) {
  std::ifstream text(page);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("#") || anchor_of(line) != anchor) continue;
    while (std::getline(text, line) && line.empty()) {
    }
    return !line.empty() && !line.starts_with("#");
  }
  return false;
}

TEST(Lint, SourcesInTheManualAreThere) {
  const std::regex place("docs/([a-z-]+\\.md)#([a-z-]+)");
  size_t found = 0;
  for (const auto& bad : bad_configs()) {
    for (const auto& finding : lint_of(bad.overrides, bad.context, bad.file)) {
      std::smatch match;
      if (!std::regex_search(finding.source, match, place)) {
        EXPECT_EQ(finding.source.find("docs/"), std::string::npos) << finding.source;
        // Else it is somebody's paper, with its year, or another program's practice.
        EXPECT_TRUE(std::regex_search(finding.source, std::regex("(19|20)[0-9]{2}|OpenSeq2Seq")))
            << finding.code << ": " << finding.source;
        continue;
      }
      ++found;
      EXPECT_TRUE(explains(fs::path(STRETTO_SOURCE_DIR) / "docs" / match[1].str(), match[2].str()))
          << finding.code << ": " << finding.source;
    }
  }
  EXPECT_GE(found, 8u);
  EXPECT_FALSE(
      explains(fs::path(STRETTO_SOURCE_DIR) / "docs" / "large-batches.md", "no-such-section"));
}

TEST(Lint, ManyMicroBatchesWithAdamWantAWarmUpAndARunOfSomeLength) {
  struct Row {
    std::vector<std::string> overrides;
    bool noted;
  };
  const std::string many = "train.update_freq=20", very_many = "train.update_freq=128";
  for (const auto& [overrides, noted] : std::vector<Row>{
           {{many}, false},
           {{"train.update_freq=16", "schedule.warmup_steps=0"}, false},
           {{"train.update_freq=17", "schedule.warmup_steps=0"}, true},
           {{many, "schedule.warmup_steps=100"}, true},  // neither 500 updates nor a tenth
           {{many, "schedule.warmup_steps=500"}, false},
           {{many, "schedule.warmup_steps=250", "train.max_steps=2000"}, false},
           {{many, "schedule.warmup_steps=300", "train.max_steps=900"}, true},  // a short run
           {{"train.update_freq=8", "schedule.warmup_steps=300", "train.max_steps=900"}, false},
           {{very_many, "schedule.warmup_steps=100"}, true},  // a large batch as well
           {{very_many}, false},                              // Ott et al. 2018
           {{many, "optim.name=adamw", "schedule.warmup_steps=100"}, true},
           {{many, "optim.name=radam", "schedule.warmup_steps=100"}, false},
           {{many, "optim.name=lamb", "schedule.warmup_steps=100"}, false},
           {{"data.max_tokens=1024", many, "schedule.warmup_steps=0", "schedule.name=constant",
             "data.max_src_tokens=100", "data.max_tgt_tokens=100"},
            true},
       }) {
    const auto codes = codes_of(lint_of(overrides));
    EXPECT_EQ(std::count(codes.begin(), codes.end(), "LB011"), noted ? 1 : 0)
        << ::testing::PrintToString(overrides) << ::testing::PrintToString(codes);
  }
}

TEST(Lint, OfRadamBothWhatWasPublishedAndWhatWasMeasuredIsSaid) {
  for (const char* length : {"train.max_steps=900", "train.max_steps=9000"}) {
    std::string fix;
    for (const auto& finding :
         lint_of({"train.update_freq=20", "schedule.warmup_steps=100", length})) {
      if (finding.code == "LB011") fix = finding.fix;
    }
    EXPECT_NE(fix.find("stay at 16 or below"), std::string::npos) << length << ": " << fix;
    EXPECT_NE(fix.find("\"radam\" helped in published runs, and lost more in ours"),
              std::string::npos)
        << fix;
    EXPECT_EQ(fix.find("use optim.name"), std::string::npos) << fix;
  }
}

TEST(Lint, AScaledRateIsNotedWhereSamplesLeaveHalfOfTheTokensOut) {
  const auto noted = [](const char* samples, const char* scaling = "optim.lr_scaling=sqrt") {
    const auto codes = codes_of(lint_of({samples, scaling, "optim.reference_batch=4096"}));
    return std::count(codes.begin(), codes.end(), "LB017") == 1;
  };
  // Half of 4,096 tokens, at 25 a sentence.
  EXPECT_TRUE(noted("data.max_samples=81"));
  EXPECT_FALSE(noted("data.max_samples=82"));
  EXPECT_FALSE(noted("data.max_samples=0"));
  EXPECT_FALSE(noted("data.max_samples=8", "optim.lr_scaling=none"));
  // Then 16 samples count as 640 tokens.
  const std::vector<std::string> overrides{"data.max_samples=16", "data.max_src_tokens=40",
                                           "data.max_tgt_tokens=40", "optim.reference_batch=640",
                                           "optim.lr_scaling=sqrt"};
  EXPECT_TRUE(lint_of(overrides).empty());
  auto longer = overrides;
  longer[1] = "data.max_src_tokens=60";
  const auto found = lint_of(longer);
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"LB017"});
  EXPECT_EQ(found[0].reason,
            "16 samples are about 400 tokens, and optim.lr is scaled for the most that a "
            "micro-batch may have, 960");
}

TEST(Lint, BatchNormWantsEnoughSamplesHoweverManyTokens) {
  const auto found = lint_of({"model.norm_layer=batch_norm", "data.max_samples=15"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"BN001"});
  EXPECT_EQ(found[0].key, "data.max_samples");
  EXPECT_NE(found[0].reason.find("about 15 sentences"), std::string::npos) << found[0].reason;
  EXPECT_TRUE(lint_of({"model.norm_layer=batch_norm", "data.max_samples=16"}).empty());
}

TEST(Lint, SmoothingIsJudgedByTheVocabulary) {
  const auto noted = [](const std::vector<std::string>& overrides, int64_t in_file = 0) {
    const auto codes = codes_of(lint_of(overrides, {.files = {.classes = in_file}}));
    return std::count(codes.begin(), codes.end(), "SC005") == 1;
  };
  const std::string tiny = "tokenizer.vocab_size=16", large = "tokenizer.vocab_size=32768";
  EXPECT_FALSE(noted({tiny, "loss.label_smoothing=0.1"}));
  EXPECT_FALSE(noted({tiny, "loss.label_smoothing=0.17"}));
  EXPECT_TRUE(noted({tiny, "loss.label_smoothing=0.18"}));
  EXPECT_FALSE(noted({large, "loss.label_smoothing=0.27"}));
  EXPECT_TRUE(noted({large, "loss.label_smoothing=0.28"}));
  EXPECT_FALSE(noted({large, "loss.label_smoothing=0"}));
  // A vocabulary file has what it has; tokenizer.vocab_size does not count beside it.
  const std::vector<std::string> file{"tokenizer.type=vocab", "tokenizer.src_vocab=v", large};
  const auto with = [&](const char* smoothing) {
    auto words = file;
    words.push_back(smoothing);
    return words;
  };
  EXPECT_TRUE(noted(with("loss.label_smoothing=0.2"), 16));
  EXPECT_FALSE(noted(with("loss.label_smoothing=0.2"), 30000));
  // Not known: the plain limit.
  EXPECT_FALSE(noted(with("loss.label_smoothing=0.3")));
  EXPECT_TRUE(noted(with("loss.label_smoothing=0.31")));
  EXPECT_TRUE(noted({"tokenizer.model=m", tiny, "loss.label_smoothing=0.31"}));
  EXPECT_FALSE(noted({"tokenizer.model=m", tiny, "loss.label_smoothing=0.2"}));
}

TEST(Lint, RDropWithoutDropoutIsNotedWhateverTheParts) {
  const auto noted = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> all{"loss.r_drop=5", "model.dropout=0"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const auto codes = codes_of(lint_of(all));
    return std::count(codes.begin(), codes.end(), "RG001") == 1;
  };
  EXPECT_TRUE(noted({}));
  EXPECT_FALSE(noted({"loss.r_drop=0"}));
  EXPECT_FALSE(noted({"model.attention_dropout=0.1"}));
  EXPECT_FALSE(noted({"model.src_word_dropout=0.1"}));
  EXPECT_FALSE(noted({"model.tgt_word_dropout=0.1"}));
  const std::string encoder = "model.encoder.name=lstm", decoder = "model.decoder.name=lstm";
  EXPECT_FALSE(noted({encoder, decoder}));
  const std::string off = "model.encoder.dropout=0";
  EXPECT_FALSE(noted({encoder, decoder, off}));
  EXPECT_TRUE(noted({encoder, decoder, off, "model.decoder.dropout=0"}));
  EXPECT_FALSE(noted(
      {encoder, decoder, off, "model.decoder.dropout=0", "model.decoder.zoneout_hidden=0.1"}));
}

TEST(Lint, HeavySmoothingSaysWhatTheLossCannotFallBelow) {
  // 1 of 4 entries to the other three: 0.75 ln(4/3) + 0.25 ln 12 = 0.837; ln 4 = 1.386
  const auto found =
      lint_of({"tokenizer.type=vocab", "tokenizer.src_vocab=v", "loss.label_smoothing=0.25"},
              {.files = {.classes = 4}});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"SC005"});
  EXPECT_NE(found[0].reason.find("all 3 other entries"), std::string::npos) << found[0].reason;
  EXPECT_NE(found[0].reason.find("below 0.84"), std::string::npos) << found[0].reason;
  EXPECT_NE(found[0].reason.find("costs 1.39"), std::string::npos) << found[0].reason;
}

TEST(Lint, AConstantWarmUpOfNoamNamesTheRateThatItJumpsTo) {
  const auto found = lint_of({"train.update_freq=32", "schedule.name=noam", "optim.lr=2",
                              "schedule.warmup=constant", "schedule.warmup_init_lr=1e-4",
                              "schedule.warmup_steps=4095"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"LB007"});
  // 2 / sqrt(512 * 4096)
  EXPECT_NE(found[0].reason.find(" to 0.00138"), std::string::npos) << found[0].reason;
}

TEST(Lint, ProcessesThatShareEvenlyOrNearlySoRaiseNothing) {
  const auto idle = [](const char* update_freq, int64_t processes) {
    return codes_of(lint_of({update_freq}, {.processes = processes}));
  };
  EXPECT_EQ(idle("train.update_freq=8", 4), std::vector<std::string>{});
  EXPECT_EQ(idle("train.update_freq=1", 2), std::vector<std::string>{});         // cut in two
  EXPECT_EQ(idle("train.update_freq=8", 3), std::vector<std::string>{"DP003"});  // 8 of 9
  EXPECT_EQ(idle("train.update_freq=2", 5), std::vector<std::string>{"DP003"});  // 4 halves
  EXPECT_EQ(idle("train.update_freq=200", 3), std::vector<std::string>{});       // 200 of 201
}

TEST(Lint, WhereNoMicroBatchIsCutProcessesStandIdle) {
  const auto found = lint_of({"train.update_freq=1", "dist.deterministic=true"}, {.processes = 2});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"DP003"});
  EXPECT_NE(found[0].reason.find("50 % of the time (dist.deterministic"), std::string::npos)
      << found[0].reason;
  const auto norms =
      codes_of(lint_of({"train.update_freq=1", "model.norm_layer=batch_norm"}, {.processes = 2}));
  EXPECT_EQ(std::count(norms.begin(), norms.end(), "DP003"), 1);
}

// One finite update has to follow the checkpoint before those that fail.
TEST(Lint, ARollbackNeedsACheckpointAndTheFailuresAfterIt) {
  struct Row {
    std::vector<std::string> overrides;
    const char* has;  // "" = not noted
  };
  for (auto [overrides, has] : std::vector<Row>{
           {{}, ""},
           {{"train.save_every=6000"}, "only the best of validation"},
           {{"train.save_every=6000", "train.keep_best=0"}, "nothing"},
           {{"train.save_every=6000", "eval.every=5000"}, "nothing"},
           {{"train.save_every=4949"}, ""},
           {{"train.save_every=4950", "eval.every=4950"}, "nothing"},
           {{"train.save_every=4950", "eval.every=4949"}, "only the best of validation"},
           {{"train.save_every=4998", "train.forensics.stop_after=1"}, ""},
           {{"train.save_every=4999", "train.forensics.stop_after=1"},
            "only the best of validation"},
       }) {
    overrides.insert(overrides.end(), {"train.forensics.policy=rollback", "train.max_steps=5000",
                                       "schedule.warmup_steps=500"});
    std::string reason;
    for (const auto& finding : lint_of(overrides)) {
      if (finding.code == "CK003") reason = finding.reason;
    }
    const std::string text = std::string("a rollback has ") + has + " to go back to";
    EXPECT_TRUE(*has == '\0' ? reason.empty() : reason.starts_with(text))
        << overrides.front() << ": " << reason;
  }
}

TEST(Lint, WhatMayBecomeFp16NeedsALossScale) {
  EXPECT_EQ(codes_of(lint_of({"train.precision=auto_fp16", "train.loss_scale.name=none"})),
            std::vector<std::string>{"MP001"});
}

TEST(Lint, AFixedScaleNamesTheGradientThatOverflows) {
  const auto found = lint_of(
      {"train.precision=mixed_fp16", "train.loss_scale.name=static", "train.loss_scale.init=1e9"});
  ASSERT_EQ(codes_of(found), std::vector<std::string>{"MP002"});
  EXPECT_NE(found[0].reason.find("a gradient above 6.5504e-5 overflows"), std::string::npos)
      << found[0].reason;
}

TEST(Lint, ARunOfEpochsIsAsLongAsItsTextLets) {
  const LintContext text{.files = {.epoch = 100 * 4096}};
  const std::vector<std::string> epochs{"train.max_steps=0", "train.max_epochs=3",
                                        "eval.every=100"};
  const auto codes = [&](std::vector<std::string> more, const LintContext& context) {
    more.insert(more.begin(), epochs.begin(), epochs.end());
    return codes_of(lint_of(more, context));
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes({}, text), Codes{"LB015"});                      // 4,000 updates of warm-up
  EXPECT_EQ(codes({}, {}), Codes{});                               // nobody knows
  EXPECT_EQ(codes({"schedule.warmup_steps=400"}, text), Codes{});  // the guess may be off twofold
  EXPECT_EQ(codes({"schedule.warmup_steps=460"}, text), Codes{"LB015"});
  const std::string warmup = "schedule.warmup_steps=30", linear = "schedule.name=linear";
  EXPECT_EQ(codes({warmup, linear, "schedule.total_steps=100000"}, text), Codes{"SC002"});
  EXPECT_EQ(codes({warmup, linear, "schedule.total_steps=100000"}, {}), Codes{});
  EXPECT_EQ(codes({warmup, linear, "schedule.total_steps=500"}, text), Codes{});
  EXPECT_EQ(codes({warmup, linear, "schedule.total_steps=200"}, text), Codes{});
  EXPECT_EQ(codes({warmup, linear, "schedule.total_steps=100"}, text), Codes{"SC001"});
  // The epochs end what train.max_steps would let go on, and the schedule with it.
  EXPECT_EQ(codes({warmup, linear, "train.max_steps=9000"}, text), Codes{"SC002"});
  EXPECT_EQ(codes({warmup, linear, "train.max_steps=500"}, text), Codes{});
  const auto found = lint_of({"train.max_steps=0", "train.max_epochs=3"}, text);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].reason,
            "most of the run is warm-up: 4,000 of about 300 updates (guessed from the size of the "
            "text)");
}

TEST(Lint, AWarmUpThatIsAShareIsJudgedByItsUpdates) {
  const auto codes = [](const std::vector<std::string>& overrides,
                        const LintContext& context = {}) {
    return codes_of(lint_of(overrides, context));
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes({"schedule.warmup_ratio=0.1"}), Codes{});
  EXPECT_EQ(codes({"schedule.warmup_ratio=0.1", "schedule.total_steps=8000"}), Codes{})
      << "the share is one of them, whatever the schedule";
  const auto found = lint_of({"schedule.warmup_ratio=0.8"});
  ASSERT_EQ(codes_of(found), Codes{"LB015"});
  EXPECT_EQ(found[0].key, "schedule.warmup_ratio");
  EXPECT_EQ(found[0].reason, "most of the run is warm-up: 7,200 of 9,000 updates");
  // How long three epochs are is not known, only that there is a warm-up.
  const std::vector<std::string> epochs{"train.max_steps=0", "train.max_epochs=3", "eval.every=100",
                                        "schedule.warmup_ratio=0.05"};
  EXPECT_EQ(codes(epochs), Codes{});
  EXPECT_EQ(codes(epochs, {.files = {.epoch = 100 * 4096}}), Codes{});
}

TEST(Lint, AFindingTellsWhereTheValueStands) {
  const auto written = lint_of({"optim.lr=0.5"});
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].place, "command line, `optim.lr=0.5`");
  const auto left = lint_of({"train.max_steps=5000"});  // 4,000 of them are warm-up
  ASSERT_EQ(codes_of(left), std::vector<std::string>{"LB015"});
  EXPECT_EQ(left[0].place, "default");
}

TEST(Lint, TheManualExplainsEveryCode) {
  const auto page = read_file(fs::path(STRETTO_SOURCE_DIR) / "docs" / "large-batches.md");
  for (const auto& code : lint_codes()) {
    const size_t row = page.find("| " + code + " |");
    ASSERT_NE(row, std::string::npos) << code;
    const auto line = page.substr(row, page.find('\n', row) - row);
    EXPECT_FALSE(line.ends_with("| |")) << code << " has no source";
  }
}

}  // namespace
}  // namespace stretto::lint
