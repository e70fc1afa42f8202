// What a classifier of texts takes from the run of a language model.
#include "families/text/causal_taken.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/task_rules.h"
#include "families/text/text_rules.h"
#include "families/text_classification/text_classification_options.h"
#include "store/safetensors.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

using KeyValues = std::map<std::string, std::string>;

constexpr const char* kCausalLstm =
    "[model]\nname = \"lstm\"\nnum_layers = 2\nd_model = 12\nhidden_dim = 20\nweight_drop = 0.25\n"
    "output_dropout = 0.3\ntie_embeddings = false\n";
constexpr const char* kCausalTransformer =
    "[model]\npreset = \"none\"\nnum_layers = 2\nd_model = 12\nnum_heads = 3\nffn_dim = 20\n"
    "activation = \"swiglu\"\npositions = \"rotary\"\n";

class CausalTaken : public ::testing::Test {
 protected:
  CausalTaken() {
    dir_.write("train.txt", "x\n");
    dir_.write("train.tsv", "text\tlabel\nx\t1\n");
  }

  static std::string task(const std::string& name, const std::string& data) {
    return "[task]\nname = \"" + name + "\"\n[data]\ntrain = [\"" + data +
           "\"]\nmax_text_tokens = 8\n[train]\nmax_steps = 9000\n";
  }
  static std::string labels(const std::string& model = "") {
    return task("text_classification", "train.tsv") + model;
  }

  void make_run(const std::string& name, const std::string& toml) const {
    const auto loaded = load_experiment(dir_.write(name + ".toml", toml), {});
    dir_.write(name + "/config.toml", loaded.resolved_toml);
  }
  Experiment run(const std::string& name) const {
    const auto path = dir_ / (name + "/config.toml");
    return load_stored_experiment(read_file(path, 1 << 20), path.string(), {}).options;
  }

  LoadedExperiment load(const std::string& toml, const std::string& from,
                        std::vector<std::string> more = {}) const {
    more.push_back("train.init_from=" + (dir_ / from).string());
    return load_experiment(dir_.write("own.toml", toml), more);
  }

  static KeyValues model_of(const Experiment& experiment) {
    Experiment copy = experiment;
    KeyValues values;
    for (const auto& key : experiment_schema(copy).keys) {
      if (key.path.starts_with("model.")) values[key.path] = config::value_text(key.value);
    }
    return values;
  }

  static std::vector<std::string> differences(const Experiment& theirs, const Experiment& own) {
    std::vector<std::string> lines;
    for (const auto& found : find_task_rules(own)->hidden_differences(theirs, own, {})) {
      lines.push_back(found.key + ": " + found.theirs + ", " + found.own);
    }
    return lines;
  }

  testing::TempDir dir_;
};

TEST_F(CausalTaken, TheStackIsThatOfTheRunAndTheHeadIsNew) {
  for (const char* model : {kCausalLstm, kCausalTransformer}) {
    make_run("lm", task("language_model", "train.txt") + model);
    const auto loaded = load(labels(), "lm");
    auto own = model_of(loaded.options);
    for (const auto& [key, value] : model_of(run("lm"))) {
      EXPECT_EQ(own[key], value) << key;
      own.erase(key);
    }
    EXPECT_EQ(own, (KeyValues{{"model.pooling", "\"last\""},
                              {"model.head_dropout", "0.1"},
                              {"model.head_norm", "\"none\""},
                              {"model.head_units", "0"},
                              {"model.head_units_dropout", "-1.0"}}));
    EXPECT_EQ(differences(run("lm"), loaded.options), std::vector<std::string>{});
  }
}

TEST_F(CausalTaken, KeysThatAreGivenCountThoughTheKindIsTheRuns) {
  make_run("lm", task("language_model", "train.txt") + kCausalLstm);
  const auto loaded =
      load(labels("[model]\npooling = \"concat\"\nhead_units = 5\noutput_dropout = 0.1\n"), "lm");
  auto own = model_of(loaded.options);
  EXPECT_EQ(own["model.name"], "\"lstm\"");
  EXPECT_EQ(own["model.pooling"], "\"concat\"");
  EXPECT_EQ(own["model.head_units"], "5");
  EXPECT_EQ(own["model.output_dropout"], "0.1");
  EXPECT_EQ(own["model.weight_drop"], "0.25");
}

TEST_F(CausalTaken, AnotherClassifierGivesItsHeadToo) {
  make_run("labels", labels("[model]\nname = \"lstm\"\nd_model = 12\npooling = \"concat\"\n"
                            "head_units = 5\nhead_norm = \"batch_norm\"\n"));
  auto own = model_of(load(labels(), "labels").options);
  EXPECT_EQ(own, model_of(run("labels")));
  make_run("other", labels("[model]\nname = \"lstm\"\nd_model = 12\npooling = \"max\"\n"));
  EXPECT_EQ(differences(run("other"), run("labels")),
            (std::vector<std::string>{"model.pooling: \"max\", \"concat\"",
                                      "model.head_norm: \"none\", \"batch_norm\""}));
}

TEST_F(CausalTaken, AHeadThatBeginsAnewIsPooledAsItsOwnKeysSay) {
  make_run("labels", labels("[model]\nname = \"lstm\"\nd_model = 12\npooling = \"concat\"\n"));
  const std::string bytes(4, '\0');
  std::vector<store::TensorView> tensors;
  for (const char* name : {"decoder.layers.0.hidden.weight", "head.output.weight"}) {
    tensors.push_back({name, store::DType::kF32, {1}, bytes});
  }
  dir_.write("labels/checkpoints/step_00000003/manifest.json", "{}");
  store::write_safetensors(dir_ / "labels/checkpoints/step_00000003/model.safetensors", tensors,
                           {});
  const auto model = [&](const std::string& entry) {
    return model_of(load(labels(), "labels", {"train.init_only=[\"" + entry + "\"]"}).options);
  };
  const auto stack = model("decoder.*");
  EXPECT_EQ(stack.at("model.d_model"), "12");
  EXPECT_EQ(stack.at("model.pooling"), "\"last\"");
  EXPECT_EQ(model("*").at("model.pooling"), "\"concat\"");
}

TEST_F(CausalTaken, AnotherKindOfStackIsTold) {
  make_run("lm", task("language_model", "train.txt") + kCausalLstm);
  const auto bert = load(labels("[model]\nname = \"bert\"\n"), "lm");
  EXPECT_EQ(model_of(bert.options).at("model.preset"), "\"base\"") << "its keys have defaults";
  EXPECT_EQ(differences(run("lm"), bert.options),
            std::vector<std::string>{"model.name: \"lstm\", \"bert\""});
  const auto transformer = load(labels("[model]\nname = \"transformer\"\n"), "lm");
  EXPECT_EQ(model_of(transformer.options).at("model.preset"), "\"small\"");
  EXPECT_EQ(differences(run("lm"), transformer.options),
            std::vector<std::string>{"model.name: \"lstm\", \"transformer\""});
  make_run("bert", labels());
  EXPECT_EQ(differences(run("bert"), transformer.options),
            std::vector<std::string>{"model.name: \"bert\", \"transformer\""});
  make_run("gpt", task("language_model", "train.txt") + kCausalTransformer);
  const auto gelu = load(labels("[model]\nname = \"transformer\"\nactivation = \"gelu\"\n"), "gpt");
  EXPECT_EQ(differences(run("gpt"), gelu.options),
            std::vector<std::string>{"model.activation: \"swiglu\", \"gelu\""});
}

TEST_F(CausalTaken, APresetSaysTheSizesThatAreNotGiven) {
  make_run("gpt", task("language_model", "train.txt") + kCausalTransformer);
  auto own = model_of(load(labels("[model]\npreset = \"nano\"\n"), "gpt").options);
  EXPECT_EQ(own["model.name"], "\"transformer\"");
  EXPECT_EQ(own["model.preset"], "\"nano\"");
  EXPECT_EQ(own["model.d_model"], "0");
  EXPECT_EQ(own["model.activation"], "\"swiglu\"");
}

TEST_F(CausalTaken, FamiliesWithoutSuchAStackTakeNothing) {
  make_run("lm", task("language_model", "train.txt") + kCausalLstm);
  make_run("labels", labels("[model]\nname = \"lstm\"\nd_model = 12\n"));
  for (const char* other : {"lm", "labels"}) {
    const auto masked = load(task("masked_lm", "train.txt"), other);
    EXPECT_EQ(model_of(masked.options).at("model.preset"), "\"base\"") << other;
  }
  EXPECT_TRUE(find_causal_stack(run("lm")).has_value());
  EXPECT_TRUE(find_causal_stack(run("labels")).has_value());
  make_run("bert", labels());
  EXPECT_FALSE(find_causal_stack(run("bert")).has_value());
  EXPECT_FALSE(find_causal_stack(Experiment()).has_value()) << "translation";
  // A run of BERT is one of this family, which never had to name its model.
  const auto masked = load(task("masked_lm", "train.txt"), "bert");
  EXPECT_FALSE(model_of(masked.options).contains("model.name"));
}

}  // namespace
}  // namespace stretto::experiment
