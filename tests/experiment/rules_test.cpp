#include "experiment/rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "families/translation/translation_options.h"
#include "tests/base/temp_dir.h"
#include "tests/experiment/sound_experiment.h"

namespace stretto::experiment {
namespace {

using test::problem_of, test::problems_of, test::sound;

TEST(Rules, ASoundExperimentBreaksNone) {
  EXPECT_TRUE(problems_of(sound()).empty());
}

TEST(Rules, HeadsDivideTheWidthOnBothSides) {
  EXPECT_EQ(problem_of([](Experiment& e) {
              translation_of(e).model.encoder.as<models::StackOptions>().num_heads = 7;
            }),
            "`model.encoder.num_heads` (default): 7 heads do not divide model.d_model = 512");
  EXPECT_EQ(problem_of([](Experiment& e) {
              translation_of(e).model.decoder.as<models::StackOptions>().num_heads = 3;
            }),
            "`model.decoder.num_heads` (default): 3 heads do not divide model.d_model = 512");
}

TEST(Rules, HeadsWithAWidthNeedNotDivideThatOfTheModel) {
  const auto problem = [](int64_t head_dim, const std::string& positions) {
    return problem_of([&](Experiment& e) {
      auto& stack = translation_of(e).model.decoder.as<models::StackOptions>();
      stack.num_heads = 7;
      stack.head_dim = head_dim;
      translation_of(e).model.positions = positions;
    });
  };
  EXPECT_EQ(problem(63, "sinusoidal"), "0 problems");
  EXPECT_EQ(problem(64, "sinusoidal"), "0 problems");
  EXPECT_EQ(
      problem(63, "rotary"),
      "`model.decoder.head_dim` (default): rotary positions need an even head width, it is 63");
}

TEST(Rules, HeadsOfKeysDivideThoseOfQueries) {
  EXPECT_EQ(problem_of([](Experiment& e) {
              translation_of(e).model.encoder.as<models::StackOptions>().num_kv_heads = 3;
            }),
            "`model.encoder.num_kv_heads` (default): 3 heads of keys cannot be shared evenly by "
            "num_heads = 8 heads of queries");
  EXPECT_EQ(problem_of([](Experiment& e) {
              translation_of(e).model.decoder.as<models::StackOptions>().num_kv_heads = 16;
            }),
            "`model.decoder.num_kv_heads` (default): 16 heads of keys cannot be shared evenly by "
            "num_heads = 8 heads of queries");
  for (const int64_t fits : {0, 1, 2, 4, 8}) {
    EXPECT_EQ(problem_of([&](Experiment& e) {
                translation_of(e).model.decoder.as<models::StackOptions>().num_kv_heads = fits;
              }),
              "0 problems");
  }
}

TEST(Rules, ZeroGammaStandsAtTheEndOfAPartAlone) {
  const auto problem = [](const std::string& norm) {
    return problem_of([&](auto& e) {
      translation_of(e).model.zero_gamma = true;
      translation_of(e).model.norm = norm;
    });
  };
  for (const std::string norm : {"post", "pre"}) {
    EXPECT_EQ(
        problem(norm),
        "`model.zero_gamma` (default): a gain that starts at 0 has to stand at the end of each "
        "part, but model.norm is \"" +
            norm + "\"");
  }
  EXPECT_EQ(problem("res_post"), "0 problems");
}

TEST(Rules, RDropTakesAnOutputBias) {
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).model.output_bias = true;
              translation_of(e).loss.r_drop = 5;
            }),
            "0 problems");
}

TEST(Rules, RotaryPositionsNeedAnEvenHeadWidth) {
  EXPECT_EQ(
      problem_of([](Experiment& e) {
        translation_of(e).model.positions = "rotary";
        translation_of(e).model.d_model = 24;
        translation_of(e).model.encoder.as<models::StackOptions>().num_heads = 8;
        translation_of(e).model.decoder.as<models::StackOptions>().num_heads = 4;
      }),
      "`model.encoder.num_heads` (default): rotary positions need an even head width, it is 3");
}

TEST(Rules, SinusoidsNeedAnEvenWidth) {
  EXPECT_EQ(problem_of([](Experiment& e) {
              translation_of(e).model.d_model = 25;
              translation_of(e).model.encoder.as<models::StackOptions>().num_heads =
                  translation_of(e).model.decoder.as<models::StackOptions>().num_heads = 5;
            }),
            "`model.d_model` (default): sinusoidal positions need an even d_model, it is 25");
}

TEST(Rules, LearnedPositionsReachTheLongestSentence) {
  EXPECT_EQ(
      problem_of([](auto& e) {
        translation_of(e).model.positions = "learned";
        translation_of(e).model.max_positions = 511;
      }),
      "`model.max_positions` (default): 511 learned positions, sentences may have 512 tokens");
}

TEST(Rules, GroupsCanBeRead) {
  const auto problem = [](const char* entry) {
    return problem_of([&](auto& e) { e.optim.groups = {"*.bias lr_scale=2", entry}; });
  };
  EXPECT_EQ(problem("* lr_scale=0.5 weight_decay=0"), "0 problems");
  EXPECT_EQ(problem("* lr_scal=1"),
            "`optim.groups` (default): in `* lr_scal=1`, unknown setting `lr_scal=1`");
  EXPECT_EQ(problem("* lr_scale=fast"),
            "`optim.groups` (default): in `* lr_scale=fast`, `lr_scale=fast` needs a number of at "
            "least 0");
  EXPECT_EQ(problem("encoder.*"), "`optim.groups` (default): `encoder.*` sets nothing");
  Experiment e = sound();
  e.optim.groups = {"* lr_scal=1"};
  EXPECT_EQ(problems_of(e).at(0).hint,
            "did you mean lr_scale? known: lr_scale=NUMBER, weight_decay=NUMBER");
}

TEST(Rules, WhatCannotBeCutOrSummedExactlyIsRefused) {
  const auto adafactor = [](const char* strategy) {
    return problem_of([&](auto& e) {
      e.optim.name = "adafactor";
      e.dist.strategy = strategy;
    });
  };
  EXPECT_NE(adafactor("sharded").find("which slices cut"), std::string::npos);
  EXPECT_EQ(adafactor("parameter_server"), "0 problems");  // rank 0 has all of it
  EXPECT_NE(problem_of([](auto& e) {
              e.optim.name = "adafactor";
              e.train.unfreeze = {"encoder.* 5"};
            }).find("all tensors at once"),
            std::string::npos);
  for (const char* name : {"lamb", "lars", "larc", "novograd"}) {
    EXPECT_EQ(problem_of([&](auto& e) {
                e.dist.deterministic = true;
                e.dist.strategy = "sharded";
                e.optim.name = name;
              }),
              "0 problems");
  }
  EXPECT_NE(problem_of([](auto& e) {
              e.dist.deterministic = true;
              e.dist.compress = "bf16";
            }).find("rounds what"),
            std::string::npos);
}

TEST(Rules, NoiseOnEveryGradientDoesNotGoWithRowsThatHaveNone) {
  const auto noisy = [](const char* name) {
    return problem_of([&](auto& e) {
      e.optim.name = name;
      e.optim.gradient_noise = 0.3;
    });
  };
  EXPECT_NE(noisy("lazy_adam").find("noise gives every row"), std::string::npos);
  EXPECT_EQ(noisy("adam"), "0 problems");
}

TEST(Rules, TheLossScaleLiesBetweenItsBounds) {
  EXPECT_NE(problem_of([](auto& e) {
              e.train.loss_scale.min = 8;
              e.train.loss_scale.max = 4;
            }).find("above train.loss_scale.max"),
            std::string::npos);
  EXPECT_NE(problem_of([](auto& e) {
              e.train.loss_scale.init = 2;
              e.train.loss_scale.min = 8;
            }).find("outside"),
            std::string::npos);
}

// Bounds that are not set are those of the method, which would cut the first scale unseen.
TEST(Rules, TheFirstLossScaleLiesWithinTheBoundsOfItsMethod) {
  struct Row {
    const char* name;
    double init, min, max;
    const char* problem;  ///< "" = none
  };
  const Row rows[] = {
      {"backoff", 100000, 0, 0,
       "`train.loss_scale.init` (default): 100000 is outside of what \"backoff\" allows, "
       "0.0001 to 16384"},
      {"backoff", 100000, 0, 131072, ""},
      {"backoff", 0.5, 0, 0, ""},
      {"backoff", 0.5, 1, 0,
       "`train.loss_scale.init` (default): 0.5 is outside of what \"backoff\" allows, 1 to 16384"},
      {"backoff", 0, 20000, 0,
       "`train.loss_scale.min` (default): 20000 is above the largest scale of \"backoff\", 16384"},
      {"logmax", 65536, 0, 0,
       "`train.loss_scale.init` (default): 65536 is outside of what \"logmax\" allows, "
       "0.0001 to 16384"},
      {"fairseq", 1e9, 0, 0, ""},
      {"static", 1e9, 0, 0, ""},
      {"static", 0.25, 0, 0, ""},
      // Multiplied in fp32.
      {"static", 1e38, 0, 0, ""},
      {"static", 1e39, 0, 0,
       "`train.loss_scale.init` (default): 1e39 is outside of what \"static\" allows, "
       "1.1754943508222875e-38 to 1.7014118346046923e38"},
      {"fairseq", 1e300, 0, 1e300,
       "`train.loss_scale.init` (default): 1e300 is outside of what \"fairseq\" allows, 0.0001 to "
       "1.7014118346046923e38"},
      {"fairseq", 128, 0, 1e300, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name + std::to_string(row.init));
    const auto problem = problem_of([&](auto& e) {
      auto& scale = e.train.loss_scale;
      scale.name = row.name;
      scale.init = row.init;
      scale.min = row.min;
      scale.max = row.max;
    });
    EXPECT_EQ(problem, std::string_view(row.problem).empty() ? "0 problems" : row.problem);
  }
}

TEST(Rules, ARunNeedsAStopThatCanBeReached) {
  EXPECT_EQ(problem_of([](auto& e) { e.train.max_steps = 0; }),
            "`train.max_steps` (default): the run would never stop");
  EXPECT_EQ(problem_of([](auto& e) { e.train.patience = 20; }),
            "`train.patience` (default): can never stop the run: 20 validations every 1,000 "
            "updates do not fit into 20,000");
  EXPECT_EQ(problem_of([](auto& e) { e.train.patience = 19; }), "0 problems");
  EXPECT_EQ(problem_of([](auto& e) {
              e.train.patience = 1;
              e.eval.every = INT64_MAX;
            }),
            "`train.patience` (default): can never stop the run: 1 validation every "
            "9,223,372,036,854,775,807 updates do not fit into 20,000");
}

TEST(Rules, AValidationAtTheStartNeedsText) {
  EXPECT_EQ(problem_of([](auto& e) { e.eval.at_start = true; }), "0 problems");
  EXPECT_EQ(problem_of([](auto& e) {
              e.eval.at_start = true;
              translation_of(e).data.valid_src.clear();
              translation_of(e).data.valid_tgt.clear();
            }),
            "`eval.at_start` (default): needs validation text");
}

TEST(Rules, AveragedCheckpointsMustBeKept) {
  config::Origins origins;
  origins.set(
      "train.keep_last",
      {.file = "a.toml", .order = {.source = 0, .line = 3, .column = 1}, .override_text = ""});
  Experiment e = sound();
  e.train.average_last = 5;
  e.train.keep_last = 2;
  const auto problems = problems_of(e, origins);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].what, "5 checkpoints are to be averaged, train.keep_last keeps 2");
  EXPECT_TRUE(problems_of(e).empty()) << "the default of keep_last gives way";
}

TEST(Rules, WeightsHaveOneAverageAndItsBeginningNeedsValidations) {
  EXPECT_EQ(problem_of([](auto& e) {
              e.train.ema_decay = 0.999;
              e.train.average_nonmono = 5;
            }),
            "`train.ema_decay` (default): weights have one average: a moving one, or the mean from "
            "some validation on");
  EXPECT_EQ(problem_of([](auto& e) {
              e.train.average_nonmono = 5;
              translation_of(e).data.valid_src.clear();
              translation_of(e).data.valid_tgt.clear();
            }),
            "`train.average_nonmono` (default): needs validation text");
}

TEST(Rules, AStopByTheCurveNeedsValidationsOfALoss) {
  EXPECT_EQ(problem_of([](auto& e) { e.train.stop = "compute_optimal"; }), "0 problems");
  EXPECT_EQ(problem_of([](auto& e) {
              e.train.stop = "compute_optimal";
              e.eval.every = 5000;
            }),
            "`train.stop` (default): can never stop the run: it looks at 8 validations, and "
            "train.max_steps has 4");
  EXPECT_EQ(problem_of([](auto& e) {
              e.train.stop = "compute_optimal";
              e.eval.best_metric = "bleu";
            }),
            "`train.stop` (default): \"compute_optimal\" goes by a loss, and of bleu more is "
            "better");
  EXPECT_EQ(problem_of([](auto& e) {
              e.train.stop = "compute_optimal";
              translation_of(e).data.valid_src.clear();
              translation_of(e).data.valid_tgt.clear();
            }),
            "`train.stop` (default): needs validation text");
}

TEST(Rules, BothSidesOfTheDataHaveEquallyManyFiles) {
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.train_tgt.push_back("/b"); }),
            "`data.train_src` (default): 1 source file and 2 target files");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.valid_src.clear(); }),
            "`data.valid_src` (default): 0 source files and 1 target file");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.test_src = {"/a"}; }),
            "`data.test_tgt` (default): 1 source file and 0 target files");
}

TEST(Rules, ASideWithoutFilesIsNamedAndTheOtherOneHasTheLine) {
  config::Origins origins;
  origins.set(
      "data.valid_src",
      {.file = "a.toml", .order = {.source = 0, .line = 3, .column = 1}, .override_text = ""});
  Experiment e = sound();
  translation_of(e).data.valid_tgt.clear();
  const auto problems = problems_of(e, origins);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "data.valid_tgt");
  EXPECT_EQ(problems[0].hint,
            "a.toml:3:1: `data.valid_src` and `data.valid_tgt` go together, file for file");
}

TEST(Rules, ThereIsTrainingTextWithOneWeightForEachFile) {
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).data.train_src.clear();
              translation_of(e).data.train_tgt.clear();
            }),
            "`data.train_src` (default): there is no training text");
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).data.train_tsv = {"/b.tsv"};
              translation_of(e).data.train_weights = {1};
            }),
            "`data.train_weights` (default): 1 weight for 2 training files");
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).data.train_tsv = {"/b.tsv"};
              translation_of(e).data.src_column = 2;
            }),
            "`data.tgt_column` (default): both sides are column 2 of the TSV files");
}

TEST(Rules, ASeparatorOfColumnsIsOneCharacter) {
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.separator = ";;"; }),
            "`data.separator` (default): `;;` does not stand between fields");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.separator = "\n"; }),
            "`data.separator` (default): `\\x0a` does not stand between fields");
}

TEST(Rules, ASentenceFitsIntoABatch) {
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.max_tokens = 500; }),
            "`data.max_tokens` (default): 500 is less than the longest sentence that is let in "
            "(512)");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).data.max_ratio = 0.5; }),
            "`data.max_ratio` (default): must be 0 (off) or at least 1, got 0.5");
}

TEST(Rules, TyingAllEmbeddingsNeedsOneVocabulary) {
  const std::string expected =
      "`model.tie_embeddings` (default): \"all\" needs one vocabulary for both sides";
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).tokenizer.joint = false; }), expected);
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).tokenizer.src_model = "/a.model";
              translation_of(e).tokenizer.tgt_model = "/b.model";
            }),
            expected);
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).tokenizer.type = "vocab";
              translation_of(e).tokenizer.src_vocab = "/a";
              translation_of(e).tokenizer.tgt_vocab = "/b";
            }),
            expected);
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).tokenizer.joint = false;
              translation_of(e).model.tie_embeddings = "decoder";
            }),
            "0 problems");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).tokenizer.model = "/a.model"; }),
            "0 problems");
}

TEST(Rules, ARunThatBeginsWithAnotherOnesWeightsNeedNameNoTokenizer) {
  const auto taken_over = [](auto& e) {
    e.train.init_from = "/run";
    translation_of(e).tokenizer.joint = false;
    translation_of(e).tokenizer.type = "vocab";
  };
  EXPECT_EQ(problem_of(taken_over), "0 problems");
  EXPECT_EQ(problem_of([&](auto& e) {
              taken_over(e);
              e.train.init_vocabulary = "match";
              translation_of(e).model.tie_embeddings = "decoder";
            }),
            "`tokenizer.type` (default): \"vocab\" needs tokenizer.src_vocab");
  EXPECT_EQ(problem_of([](auto& e) { e.train.init_vocabulary = "match"; }),
            "`train.init_vocabulary` (default): there is no other run whose rows could be matched");
}

TEST(Rules, TokenizerFilesDoNotContradictEachOther) {
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).tokenizer.model = translation_of(e).tokenizer.src_model =
                  translation_of(e).tokenizer.tgt_model = "/a.model";
            }),
            "`tokenizer.model` (default): stands beside src_model or tgt_model");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).tokenizer.src_model = "/a.model"; }),
            "`tokenizer.src_model` (default): the other side's model is missing");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).tokenizer.src_vocab = "/a"; }),
            "`tokenizer.src_vocab` (default): a vocabulary file beside type = \"sentencepiece\"");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).tokenizer.type = "vocab"; }),
            "`tokenizer.type` (default): \"vocab\" needs tokenizer.src_vocab");
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).tokenizer.type = "vocab";
              translation_of(e).tokenizer.src_vocab = "/a";
              translation_of(e).tokenizer.model = "/a.model";
            }),
            "`tokenizer.model` (default): a model of raw text beside type = \"vocab\"");
}

TEST(Rules, PatienceAndBleuNeedWhatTheyLookAt) {
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).data.valid_src.clear();
              translation_of(e).data.valid_tgt.clear();
              e.train.patience = 3;
            }),
            "`train.patience` (default): needs validation text");
  EXPECT_EQ(problem_of([](auto& e) {
              e.eval.best_metric = "bleu";
              translation_of(e).eval.bleu = false;
            }),
            "`eval.best_metric` (default): \"bleu\" needs eval.bleu = true");
}

TEST(Rules, DecodingOptionsFitTogether) {
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).decode.nbest = 6; }),
            "`decode.nbest` (default): 6 hypotheses from a beam of 5");
  EXPECT_EQ(problem_of([](auto& e) { translation_of(e).decode.alignment_layer = 6; }),
            "`decode.alignment_layer` (default): there is no layer 6 in a decoder of 6");
  EXPECT_EQ(problem_of([](auto& e) {
              translation_of(e).decode.max_len_a = 0;
              translation_of(e).decode.max_len_b = 3;
              translation_of(e).decode.min_len = 4;
            }),
            "`decode.min_len` (default): outputs must have at least 4 and at most 3 tokens");
}

TEST(Rules, BucketsAreAutomaticOrOfSomeSize) {
  const auto problem = [](int64_t bytes) {
    return problem_of([&](auto& e) { e.dist.bucket_bytes = bytes; });
  };
  EXPECT_EQ(problem(0), "0 problems");
  EXPECT_EQ(problem(4096), "0 problems");
  EXPECT_EQ(problem(4095),
            "`dist.bucket_bytes` (default): must be 0 (automatic) or at least 4096, got 4095");
}

TEST(Rules, ARuleIsSilentAboutAKeyThatHasAProblemAlready) {
  Experiment e = sound();
  translation_of(e).model.d_model = 7;
  e.train.max_steps = 0;
  std::vector<config::Problem> problems{
      {"a.toml:1:1", "`model.d_model` is wrong", "", "model.d_model"}};
  check_rules(e, {}, problems);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[1].what, "the run would never stop");
}

TEST(Rules, SegmentationsAreDrawnOfRawTextAlone) {
  const auto problem = [](const std::string& type) {
    return problem_of([&](Experiment& e) {
      translation_of(e).data.tgt_subword_sampling = 0.1;
      translation_of(e).tokenizer.type = type;
      if (type == "vocab") translation_of(e).tokenizer.src_vocab = "/v";
    });
  };
  EXPECT_EQ(problem("sentencepiece"), "0 problems");
  EXPECT_NE(problem("vocab").find("`data.tgt_subword_sampling`"), std::string::npos)
      << problem("vocab");
}

/// What is wrong with one override.
std::vector<config::Problem> problems_with(const std::string& override_text) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  config::load_text("[data]\ntrain_src = [\"a\"]\ntrain_tgt = [\"b\"]\n", "my.toml", "/nowhere",
                    {override_text}, experiment_schema(options), experiment_schema(fallback),
                    problems);
  return problems;
}

TEST(Rules, RDropHasAnAlphaAndWordDropoutAProbability) {
  for (const char* fine : {"loss.r_drop=0", "loss.r_drop=5", "data.src_subword_sampling=1",
                           "model.src_word_dropout=0.1", "model.tgt_word_dropout=0"}) {
    EXPECT_TRUE(problems_with(fine).empty()) << fine;
  }
  for (const char* wrong : {"loss.r_drop=-1", "data.tgt_subword_sampling=1.5",
                            "model.src_word_dropout=1", "model.tgt_word_dropout=-0.1"}) {
    const auto problems = problems_with(wrong);
    ASSERT_EQ(problems.size(), 1u) << wrong;
  }
}

TEST(Rules, FilesThatAreNamedMustExistAndArchivesForTheirMembers) {
  const stretto::testing::TempDir folder;
  Experiment e = sound();
  translation_of(e).data.train_src = {folder.write("a.src", ""),
                                      folder.write("x.zip", "") + ":member"};
  translation_of(e).data.train_tgt = {folder.write("a.tgt", ""),
                                      (folder.path() / "y.zip").string() + ":member"};
  translation_of(e).data.valid_src = translation_of(e).data.valid_tgt = {};
  translation_of(e).data.cache_dir = "/not/yet/there";
  const auto problems = missing_files(experiment_schema(e), {}, {});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, "`data.train_tgt` (default)");
  EXPECT_EQ(problems[0].what, "no file " + (folder.path() / "y.zip").string());
}

}  // namespace
}  // namespace stretto::experiment
