#include "experiment/tensor_patterns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/rules.h"
#include "experiment/tensor_keys.h"
#include "families/text_classification/text_classification_options.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

const std::vector<optim::TensorName> kTensors{
    {"embedding.weight", false, {"encoder.embedding.weight", "output.weight"}},
    {"encoder.layers.0.ffn.up.weight"},
    {"encoder.layers.0.ffn.up.bias", true},
    {"encoder.layers.0.norm.weight", true},
    {"decoder.layers.0.ffn.up.weight"}};

std::vector<std::string> told(const std::vector<PatternProblem>& problems) {
  std::vector<std::string> lines;
  for (const auto& problem : problems) lines.push_back(problem.key + ": " + problem.what);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(InitEntries, AreReadOrRefusedWithWhatIsKnown) {
  const auto refusal = [](const char* entry) {
    Experiment e;
    translation_of(e).model.init = {entry};
    const auto problems = entry_problems(e);
    return problems.empty() ? "" : problems.front().what + " | " + problems.front().hint;
  };
  for (const char* sound :
       {"*.weight xavier_uniform", "a he_normal gain=1.5", "a  truncated_normal   std=0.02",
        "a uniform a=1e-3", "a constant value=-1", "* orthogonal", "b zeros", "b ones"}) {
    EXPECT_EQ(refusal(sound), "") << sound;
  }
  EXPECT_TRUE(refusal("*").starts_with("`*` names no initialiser")) << refusal("*");
  EXPECT_NE(refusal("* xavier_unifrom").find("did you mean xavier_uniform?"), std::string::npos);
  EXPECT_NE(refusal("* glorot").find("known: xavier_uniform gain=1, "), std::string::npos);
  EXPECT_NE(refusal("* normal").find("`normal` needs std"), std::string::npos);
  EXPECT_NE(refusal("* normal std=0").find("`std=0` needs a number above 0"), std::string::npos);
  EXPECT_NE(refusal("* constant value=1e38").find("a number between -1e30 and 1e30"),
            std::string::npos);
  EXPECT_NE(refusal("* normal std=nan").find("needs a number"), std::string::npos);
  EXPECT_NE(refusal("* normal std=0.1x").find("needs a number"), std::string::npos);
  EXPECT_NE(refusal("* normal a=0.1").find("unknown setting `a=0.1`"), std::string::npos);
  EXPECT_NE(refusal("* zeros gain=1").find("takes no setting"), std::string::npos);
  EXPECT_NE(refusal("* normal std=1 mean=2").find("`mean=2` is too much"), std::string::npos);
}

TEST(InitOnlyEntries, ArePatternsOrPairsOfNames) {
  const auto problem = [](const char* entry) {
    Experiment e;
    e.train.init_only = {entry};
    const auto problems = entry_problems(e);
    return problems.empty() ? "" : problems.front().what;
  };
  for (const char* sound :
       {"encoder.*", "*", "a.?.b", "encoder.* = other.*", "a.b=c.d", "a* = *"}) {
    EXPECT_EQ(problem(sound), "") << sound;
  }
  for (const char* broken : {"", "a b", "a =", "= b", "a = b c", "a = b = c"}) {
    EXPECT_NE(problem(broken).find("is no pattern of names"), std::string::npos) << broken;
  }
  for (const char* broken : {"a.* = b", "a = b.*", "*.a = *.b", "a.*.c* = b*", "a? = b?"}) {
    EXPECT_NE(problem(broken).find("both sides need one `*`"), std::string::npos) << broken;
  }
}

TEST(NamePatterns, OfEveryKeyAreJudgedTogether) {
  Experiment e;
  e.optim.groups = {"encodr.* lr_scale=2"};
  translation_of(e).model.init = {"*.wieght zeros", "decoder.*.weight orthogonal"};
  e.train.freeze = {"encoder.*", "encodr.*"};
  e.train.init_only = {"decodr.* = other.*", "decoder.*"};
  EXPECT_EQ(told(name_problems(e, kTensors)),
            (Lines{"optim.groups: `encodr.*` matches no parameter",
                   "model.init: `*.wieght` matches no parameter",
                   "train.freeze: `encodr.*` matches no parameter",
                   "train.init_only: `decodr.*` matches no parameter"}));
  EXPECT_TRUE(name_problems(e, kTensors)[2].hint.starts_with("names near it: encoder."));
}

TEST(NamePatterns, AnInitialiserOfMatricesListsTheVectorsThatItReaches) {
  Experiment e;
  translation_of(e).model.init = {"encoder.* xavier_uniform"};
  EXPECT_EQ(told(name_problems(e, kTensors)),
            Lines{"model.init: `encoder.*` reaches 2 vectors, and its initialiser needs rows and "
                  "columns: `encoder.layers.0.ffn.up.bias`, `encoder.layers.0.norm.weight`"});
  translation_of(e).model.init = {"*.bias zeros", "*norm* ones", "encoder.* xavier_uniform"};
  EXPECT_EQ(told(name_problems(e, kTensors)), Lines{}) << "the first that matches counts";
  translation_of(e).model.init = {"encoder.* normal std=0.1"};
  EXPECT_EQ(told(name_problems(e, kTensors)), Lines{}) << "a vector has a deviation";
}

TEST(NamePatterns, AWeightNormalisedMatrixHasNoRowsOfZeros) {
  const std::vector<optim::TensorName> tensors{{"out.weight"}, {"out.gain", true}, {"up.weight"}};
  Experiment e;
  for (const char* entry : {"*.weight zeros", "out.weight constant value=0"}) {
    translation_of(e).model.init = {entry};
    const auto problems = name_problems(e, tensors);
    EXPECT_EQ(told(problems), Lines{"model.init: `out.weight` is weight-normalised, and rows of "
                                    "zeros have no direction"});
    EXPECT_NE(problems.at(0).hint.find("\"out.gain zeros\""), std::string::npos);
  }
  for (const char* entry : {"up.weight zeros", "out.gain zeros", "out.weight normal std=0.1"}) {
    translation_of(e).model.init = {entry};
    EXPECT_EQ(told(name_problems(e, tensors)), Lines{}) << entry;
  }
}

TEST(NamePatterns, ThatFreezeEverythingAreRefused) {
  Experiment e;
  e.train.freeze = {"encoder.*", "decoder.*"};  // the embedding is the encoder's, too
  const auto lines = told(name_problems(e, kTensors));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("there is nothing to train"), std::string::npos) << lines[0];
  e.train.freeze = {"encoder.layers.*", "decoder.*"};
  EXPECT_EQ(told(name_problems(e, kTensors)), Lines{});
}

TEST(NamePatterns, OfWhatStaysOrIsTakenKnowWhatElseATiedTensorIs) {
  Experiment e;
  e.train.freeze = {"output.*"};
  e.train.init_only = {"output.*"};
  EXPECT_EQ(told(name_problems(e, kTensors)), Lines{});
  e.optim.groups = {"output.* lr_scale=2"};
  EXPECT_EQ(told(name_problems(e, kTensors)),
            Lines{"optim.groups: `output.*` matches no parameter"});
}

TEST(NamePatterns, AreWhatEachOfTheirKeysHas) {
  const auto keys = [](auto change) {
    Experiment e;
    change(e);
    auto found = keys_that_name_tensors(e);
    EXPECT_EQ(names_tensors(e), !found.empty());
    return found;
  };
  EXPECT_EQ(keys([](auto&) {}), Lines{});
  EXPECT_EQ(keys([](auto& e) { translation_of(e).model.init = {"* zeros"}; }), Lines{"model.init"});
  EXPECT_EQ(keys([](auto& e) { translation_of(e).model.lora.rank = 2; }), Lines{"model.lora.rank"});
  EXPECT_EQ(keys([](auto& e) { translation_of(e).model.adapter.dim = 2; }),
            Lines{"model.adapter.dim"});
  EXPECT_EQ(keys([](auto& e) { e.train.freeze = {"*"}; }), Lines{"train.freeze"});
  EXPECT_EQ(keys([](auto& e) { e.train.init_only = {"*"}; }), Lines{"train.init_only"});
}

TEST(NamePatterns, AreWhatAllOfTheirKeysHave) {
  Experiment e;
  EXPECT_EQ(keys_that_name_tensors(e), Lines{});
  e.train.init_only = {"*"};
  e.train.init_from = "other";  // its weights are no pattern
  e.train.unfreeze = {"* 5"};
  e.train.freeze = {"*"};
  e.optim.layer_decay = 0.9;
  translation_of(e).model.adapter.dim = 2;
  translation_of(e).model.lora.rank = 2;
  translation_of(e).model.init = {"* zeros"};
  e.optim.weight_noise_tensors = {"*"};
  e.optim.muon_adam_tensors = {"*"};
  e.optim.lazy_tables = {"*"};
  e.optim.no_decay = {"*"};
  e.optim.groups = {"* lr_scale=2"};
  EXPECT_EQ(
      keys_that_name_tensors(e),
      (Lines{"optim.groups", "optim.no_decay", "optim.lazy_tables", "optim.muon_adam_tensors",
             "optim.weight_noise_tensors", "model.init", "model.lora.rank", "model.adapter.dim",
             "optim.layer_decay", "train.freeze", "train.unfreeze", "train.init_only"}));
}

TEST(NamePatterns, AreLeftWithoutFirstWeightsInEveryFamily) {
  Experiment e;
  translation_of(e).model.init = {"* zeros"};
  e.train.freeze = {"encoder.*"};
  EXPECT_EQ(keys_that_name_tensors(without_init(e)), Lines{"train.freeze"});
  EXPECT_EQ(translation_of(e).model.init, Lines{"* zeros"}) << "the given one stays as it is";
  TextClassificationOptions labels;
  labels.model.as<models::BertOptions>().init = {"* zeros"};
  e.task = labels;
  EXPECT_EQ(keys_that_name_tensors(without_init(e)), Lines{"train.freeze"});
}

TEST(Rules, OfFirstWeightsLeaveTheModelKnown) {
  const auto known = [](const char* key) {
    return describes_a_model({{.place = "", .what = "", .hint = "", .key = key}});
  };
  EXPECT_TRUE(known("model.init"));
  EXPECT_TRUE(known("train.freeze"));
  for (const char* key : {"model", "model.init_std", "model.d_model", "tokenizer.vocab_size"}) {
    EXPECT_FALSE(known(key)) << key;
  }
}

TEST(Rules, APartOfAnotherRunNeedsThatRun) {
  Experiment e;
  e.train.init_only = {"encoder.*"};
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  int found = 0;
  for (const auto& problem : problems) {
    if (problem.key == "train.init_only") {
      ++found;
      EXPECT_EQ(problem.what, "there is no other run to take tensors from");
    }
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace stretto::experiment
