#include "interchange/embed_recipe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::TempDir;

/// A modules.json with these types, of which Pooling has the folder 1_Pooling.
std::string modules_json(const std::vector<std::string>& types) {
  auto modules = nlohmann::json::array();
  for (const auto& type : types) {
    const std::string number = std::to_string(modules.size());
    modules.push_back({{"idx", modules.size()},
                       {"name", number},
                       {"path", type == "Transformer" ? "" : number + "_" + type},
                       {"type", "sentence_transformers.models." + type}});
  }
  return modules.dump();
}

EmbedRecipe recipe_with(const std::string& modules, const std::string& pooling) {
  const TempDir folder;
  folder.write("modules.json", modules);
  folder.write("1_Pooling/config.json", pooling);
  return read_embed_recipe(folder.path());
}

const std::string kNormalized = modules_json({"Transformer", "Pooling", "Normalize"});

TEST(EmbedRecipe, IsEmptyWithoutModules) {
  const TempDir folder;
  const auto recipe = read_embed_recipe(folder.path());
  EXPECT_EQ(recipe.options, "");
  EXPECT_EQ(recipe.problem, "");
}

TEST(EmbedRecipe, HasTheOptionsOfEmbed) {
  const std::string plain = modules_json({"Transformer", "Pooling"});
  const std::string cls = R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})";
  const auto options = [](const std::string& modules, const std::string& pooling) {
    const auto recipe = recipe_with(modules, pooling);
    EXPECT_EQ(recipe.problem, "");
    return recipe.options;
  };
  // As all-MiniLM-L6-v2 has it.
  EXPECT_EQ(options(kNormalized, R"({"word_embedding_dimension": 384, "pooling_mode_cls_token":
                    false, "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false,
                    "pooling_mode_mean_sqrt_len_tokens": false})"),
            "--pooling mean --normalize");
  EXPECT_EQ(options(plain, cls), "--pooling cls");
  EXPECT_EQ(options(kNormalized, R"({"pooling_mode": "cls"})"), "--pooling cls --normalize");
  EXPECT_EQ(options(plain, "{}"), "--pooling mean") << "the package's default";
}

TEST(EmbedRecipe, TellsWhatEmbedDoesNotMake) {
  const auto expect_told = [](const EmbedRecipe& recipe, const std::string& what) {
    EXPECT_EQ(recipe.options, "");
    EXPECT_NE(recipe.problem.find("modules.json asks for vectors that `stretto embed` does not "
                                  "make: " +
                                  what + "; it has the poolings mean and cls"),
              std::string::npos)
        << recipe.problem;
  };
  const std::string max = R"({"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": false})";
  expect_told(recipe_with(kNormalized, max), "the pooling `max`");
  expect_told(recipe_with(kNormalized, R"({"pooling_mode_cls_token": true})"),
              "the pooling `cls+mean`");
  expect_told(recipe_with(kNormalized, R"({"pooling_mode": "lasttoken"})"),
              "the pooling `lasttoken`");
  expect_told(recipe_with(kNormalized, R"({"pooling_mode_mean_tokens": false})"), "the pooling ``");
  expect_told(recipe_with(modules_json({"Transformer", "Pooling", "Dense", "Normalize"}), max),
              "the pooling `max`, the module `Dense`");
  expect_told(recipe_with(modules_json({"Transformer"}), "{}"), "no pooling");
  expect_told(recipe_with(modules_json({"Transformer", "Normalize"}), "{}"),
              "no pooling, the module `Normalize`");
}

TEST(EmbedRecipe, NamesThePlaceOfWhatCannotBeRead) {
  const auto expect_problem = [](const EmbedRecipe& recipe, const std::string& said) {
    EXPECT_EQ(recipe.options, "");
    EXPECT_NE(recipe.problem.find(said), std::string::npos) << recipe.problem;
    EXPECT_NE(recipe.problem.find("are not known"), std::string::npos) << recipe.problem;
  };
  expect_problem(recipe_with("[{", "{}"), "modules.json:1:");
  expect_problem(recipe_with(std::string(100'000, '['), "{}"), "nested deeper");
  expect_problem(recipe_with("{}", "{}"), "modules.json: no list of at most 16 modules");
  expect_problem(recipe_with(modules_json(std::vector<std::string>(17, "Dense")), "{}"),
                 "no list of at most 16 modules");
  expect_problem(recipe_with("[7]", "{}"), "modules.json: not a JSON object");
  expect_problem(recipe_with(R"([{"path": ""}])", "{}"), "`type` is missing of a module");
  expect_problem(recipe_with(R"([{"type": ["Pooling"]}])", "{}"), "`type` is no string");
  for (const char* elsewhere : {"", "..", "/etc", "a/../b"}) {
    const std::string modules =
        R"([{"type": "Pooling", "path": ")" + std::string(elsewhere) + "\"}]";
    expect_problem(recipe_with(modules, "{}"), "which is no folder beside it");
  }
  expect_problem(recipe_with(kNormalized, "{"), "1_Pooling/config.json:1:");
  expect_problem(recipe_with(kNormalized, "[]"), "1_Pooling/config.json: not a JSON object");
  expect_problem(recipe_with(kNormalized, R"({"pooling_mode_cls_token": 1})"),
                 "`pooling_mode_cls_token` is neither true nor false");
  const TempDir folder;
  folder.write("modules.json", kNormalized);
  expect_problem(read_embed_recipe(folder.path()), "1_Pooling/config.json");
}

}  // namespace
}  // namespace stretto::interchange
