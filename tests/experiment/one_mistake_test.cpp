// One mistake is one error: what follows from it is not told as another.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "experiment/rules.h"
#include "experiment/schedule_length.h"
#include "tests/experiment/recipes.h"

namespace stretto::experiment {
namespace {

/// A configuration that gives a value to most keys that rules look at.
constexpr const char* kRich = R"(
[run]
device = "cpu"
[data]
train_src = ["a"]
train_tgt = ["b"]
train_weights = [0.5]
valid_src = ["c"]
valid_tgt = ["d"]
max_tokens = 2000
max_src_tokens = 300
max_tgt_tokens = 300
[tokenizer]
type = "sentencepiece"
joint = false
[model]
d_model = 96
norm = "res_post"
norm_layer = "batch_norm"
zero_gamma = true
positions = "learned"
max_positions = 300
tie_embeddings = "decoder"
[model.encoder]
num_layers = 2
num_heads = 4
ffn_dim = 64
[model.decoder]
num_layers = 2
num_heads = 4
ffn_dim = 64
[optim]
name = "sgd"
lr = 0.1
reference_batch = 1000
lr_scaling = "linear"
groups = ["encoder.* lr_scale=0.5"]
[schedule]
name = "tri_stage"
warmup = "constant"
warmup_init_lr = 0.1
warmup_steps = 100
total_steps = 900
hold_steps = 500
[train]
max_steps = 1000
update_freq = 4
patience = 4
save_every = 100
keep_last = 5
average_last = 5
precision = "mixed_fp16"
[train.loss_scale]
name = "backoff"
init = 64
min = 2
max = 128
[dist]
bucket_bytes = 8192
[eval]
every = 100
best_metric = "bleu"
bleu = true
[decode]
beam_size = 8
nbest = 8
alignment_layer = 1
)";

/// All problems of a configuration but missing files.
std::vector<config::Problem> problems_in(const std::string& toml) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  const auto origins =
      config::load_text(toml, "my.toml", "/nowhere", {}, experiment_schema(options),
                        experiment_schema(fallback), problems);
  if (readable(problems)) check_rules(options, origins, problems);
  return problems;
}

std::string all_of(const std::vector<config::Problem>& problems) {
  std::string text;
  for (const auto& problem : problems) text += "\n  " + problem.place + ": " + problem.what;
  return text;
}

struct Line {
  size_t number;  ///< from 0
  std::string key, value;
};

/// The lines of the form `key = value`.
std::vector<Line> keys_in(const std::vector<std::string>& lines) {
  std::vector<Line> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t equals = lines[i].find(" = ");
    if (equals == std::string::npos || lines[i].starts_with("#")) continue;
    found.push_back({i, lines[i].substr(0, equals), lines[i].substr(equals + 3)});
  }
  return found;
}

std::string with_line(std::vector<std::string> lines, size_t number, const std::string& line) {
  lines[number] = line;
  return join(lines, "\n");
}

TEST(OneMistake, IsOneErrorWhereAKeyIsMistyped) {
  ASSERT_EQ(all_of(problems_in(kRich)), "");
  const auto lines = split(kRich, '\n');
  for (const auto& line : keys_in(lines)) {
    // One letter twice.
    const std::string typed = line.key + line.key.back();
    const auto problems = problems_in(with_line(lines, line.number, typed + " = " + line.value));
    ASSERT_FALSE(problems.empty()) << typed;
    EXPECT_EQ(problems.size(), 1u) << typed << all_of(problems);
    EXPECT_NE(problems[0].hint.find("." + line.key + "`"), std::string::npos)
        << typed << ": " << problems[0].hint;
  }
}

TEST(OneMistake, IsOneErrorWhereAValueIsWrong) {
  const auto lines = split(kRich, '\n');
  for (const auto& line : keys_in(lines)) {
    // A table is no value of any key.
    for (const std::string value : {"{}", "\"zebra\"", "-1"}) {
      const auto problems = problems_in(with_line(lines, line.number, line.key + " = " + value));
      EXPECT_LE(problems.size(), 1u) << line.key << " = " << value << all_of(problems);
      EXPECT_TRUE(value != "{}" || problems.size() == 1) << line.key;
    }
  }
}

TEST(OneMistake, IsOneErrorWhereASectionIsMistyped) {
  const auto lines = split(kRich, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("[")) continue;
    std::string typed = lines[i];
    typed.insert(typed.size() - 1, "s");
    const auto problems = problems_in(with_line(lines, i, typed));
    ASSERT_FALSE(problems.empty()) << typed;
    EXPECT_EQ(problems.size(), 1u) << typed << all_of(problems);
  }
}

// Of each family, every key that a recipe gives, in the first that does.
TEST(OneMistake, IsOneErrorInTheRecipesToo) {
  std::set<std::string> tried;
  for (const auto& path : stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR)) {
    Experiment options, fallback;
    std::vector<config::Problem> sound;
    const auto origins =
        config::load_file(path, {}, experiment_schema(options), experiment_schema(fallback), sound);
    ASSERT_TRUE(sound.empty()) << path;
    for (const auto& key : experiment_schema(options).keys) {
      if (!origins.given(key.path)) continue;
      if (!tried.insert(options.task.name() + " " + key.path).second) continue;
      Experiment changed;
      std::vector<config::Problem> problems;
      const auto places = config::load_file(path, {key.path + "={}"}, experiment_schema(changed),
                                            experiment_schema(fallback), problems);
      resolve_defaults(changed, places);
      check_rules(changed, places, problems);
      // As a text it may be a name or a path.
      const bool is_text = std::holds_alternative<std::string*>(key.value);
      EXPECT_LE(problems.size(), 1u) << path << " " << key.path << all_of(problems);
      EXPECT_TRUE(is_text || problems.size() == 1) << path << " " << key.path;
    }
  }
}

TEST(ManyMistakes, AreToldInTheOrderOfTheirLines) {
  const auto problems = config::in_order(problems_in(
      "[train]\nmax_steps = 9000\n[model]\nzebra = 1\nd_model = 7\n[data]\ntrain_src = [\"a\"]\n"
      "[optim]\nlr = \"fast\"\nbeta1 = 2\n[decode]\nnbest = 9\n[garden]\n"));
  std::vector<std::string> places;
  for (const auto& problem : problems) places.push_back(problem.place);
  const auto line_of = [](const std::string& place) {
    const auto parts = split(place, ':');
    return parts.size() > 1 ? std::stoi(parts[1]) : 1'000'000;  // a default stands last
  };
  EXPECT_GE(places.size(), 6u) << all_of(problems);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end(), [&](const auto& a, const auto& b) {
    return line_of(a) < line_of(b);
  })) << all_of(problems);
}

}  // namespace
}  // namespace stretto::experiment
