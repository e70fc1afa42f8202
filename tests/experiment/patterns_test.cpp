// Patterns of optim.groups, optim.no_decay, optim.lazy_tables and optim.weight_noise_tensors beside
// the names of a model's tensors.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "experiment/load_experiment.h"
#include "experiment/rules.h"
#include "experiment/tensor_patterns.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using Change = std::function<void(Experiment&)>;

std::vector<config::Problem> pattern_problems(const Change& change,
                                              std::vector<config::Problem> problems = {}) {
  Experiment e;
  change(e);
  std::vector<config::Problem> of_rules;
  check_rules(e, {}, of_rules);
  for (const auto& problem : of_rules) {
    EXPECT_FALSE(problem.key.starts_with("optim.")) << "no names are known there: " << problem.what;
  }
  const std::vector<optim::TensorName> tensors{{"embedding.weight"},
                                               {"encoder.layers.0.ffn.up.weight"},
                                               {"decoder.layers.5.ffn.up.weight"},
                                               {"encoder.layers.0.ffn.up.bias", true},
                                               {"encoder.layers.0.ffn_residual.norm.weight", true}};
  check_patterns(e, {}, tensors, problems);
  return problems;
}

TEST(Patterns, MatchTensorsOfTheModel) {
  const auto told = [](const Change& change) {
    std::string all;
    for (const auto& problem : pattern_problems(change)) {
      all += problem.place + ": " + problem.what + "\n";
    }
    return all;
  };
  const auto group = [&](const char* entry) {
    return told([&](auto& e) { e.optim.groups = {"*.bias lr_scale=2", entry}; });
  };
  EXPECT_EQ(group("decoder.layers.5.* lr_scale=0.5"), "");
  EXPECT_EQ(group("encodr.* lr_scale=0.5"),
            "`optim.groups` (default): `encodr.*` matches no parameter\n");
  EXPECT_EQ(group("decoder.layers.6.* lr_scale=0.5"),
            "`optim.groups` (default): `decoder.layers.6.*` matches no parameter\n");
  const auto spared = [&](std::vector<std::string> patterns) {
    return told([&](auto& e) { e.optim.no_decay = patterns; });
  };
  EXPECT_EQ(spared({"*.bias", "*norm*"}), "");
  EXPECT_EQ(spared({"none"}), "");
  EXPECT_EQ(spared({"*.bias", "*.bais"}),
            "`optim.no_decay` (default): `*.bais` matches no parameter\n");
  const auto lazy = [&](const char* pattern) {
    return told([&](auto& e) { e.optim.lazy_tables = {pattern}; });
  };
  EXPECT_EQ(lazy("*embedding*"), "");
  EXPECT_EQ(lazy("*embeding*"),
            "`optim.lazy_tables` (default): `*embeding*` matches no parameter\n");
  EXPECT_EQ(told([](auto& e) { e.optim.muon_adam_tensors = {"*embeding*"}; }),
            "`optim.muon_adam_tensors` (default): `*embeding*` matches no parameter\n");
  const auto noisy = [&](const char* pattern) {
    return told([&](auto& e) { e.optim.weight_noise_tensors = {pattern}; });
  };
  EXPECT_EQ(noisy("decoder.*"), "");
  EXPECT_EQ(noisy("decodr.*"),
            "`optim.weight_noise_tensors` (default): `decodr.*` matches no parameter\n");
  const auto both = told([](auto& e) {
    e.optim.groups = {"encodr.* lr_scale=0.5"};
    e.optim.no_decay = {"*.bais"};
  });
  EXPECT_EQ(both,
            "`optim.groups` (default): `encodr.*` matches no parameter\n"
            "`optim.no_decay` (default): `*.bais` matches no parameter\n");
}

TEST(Patterns, OfFirstWeightsAndFrozenPartsAreProblemsOfTheirKeys) {
  const auto problems = pattern_problems([](auto& e) {
    translation_of(e).model.init = {"encodr.* zeros", "encoder.* orthogonal"};
    e.train.freeze = {"*"};
    e.train.init_from = "elsewhere";
    e.train.init_only = {"decodr.*"};
  });
  std::vector<std::string> keys;
  for (const auto& problem : problems) keys.push_back(problem.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"model.init", "model.init", "train.freeze",
                                            "train.init_only"}));
}

TEST(Patterns, OfFineTuningAreProblemsOfTheirKeys) {
  const auto keys = [](const Change& change) {
    std::string all;
    for (const auto& problem : pattern_problems(change)) all += problem.key + " ";
    return all;
  };
  EXPECT_EQ(keys([](auto& e) {
              e.train.freeze = {"embedding.*"};
              e.train.unfreeze = {"encoder.layers.0.* 200"};
              e.optim.layer_decay = 0.9;
            }),
            "");
  EXPECT_EQ(keys([](auto& e) { e.train.unfreeze = {"encodr.* 200"}; }), "train.unfreeze ");
  EXPECT_EQ(keys([](auto& e) { e.train.unfreeze = {"* 200"}; }), "train.unfreeze ");
  EXPECT_EQ(keys([](auto& e) {
              translation_of(e).model.lora.rank = 2;
              translation_of(e).model.lora.train = {"haed.*"};
            }),
            "model.lora.maps model.lora.train ")
      << "the list of tensors has no lora_a";
  EXPECT_EQ(keys([](auto& e) { translation_of(e).model.lora.train = {"haed.*"}; }), "");
  EXPECT_EQ(keys([](auto& e) {
              translation_of(e).model.adapter.dim = 2;
              translation_of(e).model.adapter.train = {"haed.*"};
            }),
            "model.adapter.parts model.adapter.train ")
      << "the list of tensors has no adapter";

  Experiment unreadable;
  unreadable.train.unfreeze = {"encoder.*"};
  ASSERT_EQ(entry_problems(unreadable).size(), 1u);
  EXPECT_EQ(entry_problems(unreadable).front().key, "train.unfreeze");

  Experiment flat;
  flat.optim.layer_decay = 0.9;
  const auto problems =
      name_problems(flat, std::vector<optim::TensorName>{{"weight"}, {"bias", true}});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().key, "optim.layer_decay");
}

TEST(Patterns, ThatMatchNothingAreToldTheNamesNearThem) {
  const auto problems =
      pattern_problems([](auto& e) { e.optim.groups = {"encodr.* lr_scale=0.5"}; });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "optim.groups");
  EXPECT_TRUE(problems[0].hint.starts_with("names near it: encoder.")) << problems[0].hint;
}

TEST(Patterns, AreNotJudgedWhereNamesAreNotKnown) {
  const Change broken = [](auto& e) { e.optim.groups = {"encodr.* lr_scale=0.5"}; };
  for (const char* key : {"model.encoder.num_layers", "model", "optim.groups"}) {
    EXPECT_EQ(pattern_problems(broken, {{"a.toml:1:1", "is wrong", "", key}}).size(), 1u) << key;
  }
  EXPECT_EQ(pattern_problems(broken, {{"a.toml:1:1", "is wrong", "", "train.max_steps"}}).size(),
            2u);
  Experiment e;
  broken(e);
  std::vector<config::Problem> problems;
  check_patterns(e, {}, {}, problems);
  EXPECT_TRUE(problems.empty());
}

TEST(Patterns, AreWhatNamesTensors) {
  Experiment e;
  EXPECT_FALSE(names_tensors(e));
  e.optim.no_decay = {"none"};
  EXPECT_TRUE(names_tensors(e));
  e.optim.no_decay = {};
  e.optim.groups = {"*.bias lr_scale=2"};
  EXPECT_TRUE(names_tensors(e));
  e.optim.groups = {};
  e.optim.lazy_tables = {"embedding.weight"};
  EXPECT_TRUE(names_tensors(e));
  e.optim.lazy_tables = {};
  e.optim.weight_noise_tensors = {"embedding.weight"};
  EXPECT_TRUE(names_tensors(e));
  e.optim.weight_noise_tensors = {};
  e.optim.layer_decay = 0.9;
  EXPECT_TRUE(names_tensors(e));
  e.optim.layer_decay = 1;
  e.train.unfreeze = {"embedding.weight 5"};
  EXPECT_TRUE(names_tensors(e));
  e.train.unfreeze = {};
  translation_of(e).model.lora.rank = 2;
  EXPECT_TRUE(names_tensors(e));
  translation_of(e).model.lora.rank = 0;
  translation_of(e).model.adapter.dim = 2;
  EXPECT_TRUE(names_tensors(e));
}

// A model with these parts, of which those have an adapter that the patterns reach.
std::vector<optim::TensorName> with_adapters(const Experiment& e) {
  const auto& adapter = translation_of(e).model.adapter;
  std::vector<optim::TensorName> tensors{{"encoder.layers.0.ffn.up.weight"}};
  for (const char* part : {"encoder.layers.0.ffn_residual", "decoder.layers.0.block"}) {
    if (adapter.adapts(part)) tensors.push_back({std::string(part) + ".adapter.down.weight"});
  }
  return tensors;
}

TEST(Patterns, OfAdaptersMustReachPartsOfLayers) {
  const auto problems = [](std::vector<std::string> parts, const TensorLister& lister) {
    Experiment e;
    translation_of(e).model.adapter = {.dim = 2, .parts = std::move(parts)};
    return name_problems(e, with_adapters(e), lister);
  };
  EXPECT_TRUE(problems({}, with_adapters).empty());
  EXPECT_TRUE(problems({"*ffn*"}, with_adapters).empty());
  const auto misspelt = problems({"*ffn*", "decoder.*.blok"}, with_adapters);
  ASSERT_EQ(misspelt.size(), 1u);
  EXPECT_EQ(misspelt.front().key, "model.adapter.parts");
  EXPECT_EQ(misspelt.front().what, "`decoder.*.blok` matches no part of a layer of this model");
  EXPECT_EQ(misspelt.front().hint,
            "names near it: decoder.layers.0.block, encoder.layers.0.ffn_residual");
  EXPECT_EQ(problems({"decoder.*.blok"}, nullptr).front().hint, "\"*\" is every one");
}

TEST(Patterns, OfLoraAreToldTheMapsThatCanHaveIt) {
  const TensorLister lister = [](const Experiment& e) {
    std::vector<optim::TensorName> tensors{{"embedding.weight"},
                                           {"encoder.layers.0.ffn.up.weight"}};
    if (translation_of(e).model.lora.adapts("encoder.layers.0.ffn.up")) {
      tensors.push_back({"encoder.layers.0.ffn.up.lora_a"});
    }
    return tensors;
  };
  Experiment e;
  translation_of(e).model.lora = {.rank = 2, .maps = {"embedding"}};
  const auto problems = name_problems(e, lister(e), lister);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().what, "`embedding` matches no linear map of this model");
  EXPECT_EQ(problems.front().hint, "names near it: encoder.layers.0.ffn.up");
}

TEST(Patterns, StopARunOnlyWhereTensorsAreNamed) {
  LoadedExperiment loaded;
  int asked = 0;
  const TensorLister lister = [&](const Experiment&) {
    ++asked;
    return std::vector<optim::TensorName>{{"embedding.weight"}};
  };
  require_patterns_match(loaded, lister);
  EXPECT_EQ(asked, 0);
  loaded.options.optim.no_decay = {"embedding.*"};
  require_patterns_match(loaded, lister);
  EXPECT_EQ(asked, 1);
  loaded.options.optim.no_decay = {"embeding.*"};
  try {
    require_patterns_match(loaded, lister);
    FAIL() << "a pattern that matches nothing was let through";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("`embeding.*` matches no parameter"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stretto::experiment
