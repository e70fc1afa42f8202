#include "optim/groups.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/base/failure.h"

namespace stretto::optim {
namespace {

struct Part2 : torch::nn::Module {
  explicit Part2(int64_t width) {
    register_parameter("weight", torch::ones({width, 3}));
    register_parameter("bias", torch::ones({width}));
  }
};

/// decoder.embedding.{weight,bias}, decoder.output.{weight,bias}, encoder.{weight,bias}
struct Model : torch::nn::Module {
  Model() {
    struct Decoder : torch::nn::Module {
      Decoder() {
        register_module("embedding", std::make_shared<Part2>(5));
        register_module("output", std::make_shared<Part2>(4));
      }
    };
    register_module("decoder", std::make_shared<Decoder>());
    register_module("encoder", std::make_shared<Part2>(2));
  }
};

GroupSettings settings_of(const OptimOptions& options, const std::string& name) {
  Model model;
  const Arena arena(model);
  const auto settings = group_settings(options, arena);
  for (size_t i = 0; i < settings.size(); ++i) {
    if (arena.slots()[i].name == name) return settings[i];
  }
  ADD_FAILURE() << name;
  return {};
}

std::string message_of(const OptimOptions& options) {
  Model model;
  const Arena arena(model);
  return stretto::testing::failure(ExitCode::kUsage, [&] { make_optimizer(options, arena); })
      .message();
}

TEST(Glob, StarsStandForAnyCharactersAndQuestionMarksForOne) {
  struct Case {
    const char *pattern, *name;
    bool expected;
  };
  for (const Case& c : {Case{"*", "", true},
                        {"*", "a.b", true},
                        {"a.*", "a.b.c", true},
                        {"a.*", "a", false},
                        {"*.bias", "x.y.bias", true},
                        {"*.bias", "x.bias.y", false},
                        {"*a*b*", "xxaxxbxx", true},
                        {"*a*b*", "xxbxxaxx", false},
                        {"*aab", "aaab", true},
                        {"layer.?.weight", "layer.3.weight", true},
                        {"layer.?.weight", "layer.12.weight", false},
                        {"", "", true},
                        {"", "a", false},
                        {"a**", "a", true}}) {
    EXPECT_EQ(matches(c.pattern, c.name), c.expected) << c.pattern << " and " << c.name;
  }
}

TEST(Groups, BiasesAndNormsDoNotDecayByDefault) {
  const OptimOptions options{.weight_decay = 0.1};
  EXPECT_EQ(settings_of(options, "encoder.weight").weight_decay, 0.1);
  EXPECT_FALSE(settings_of(options, "encoder.weight").exempt);
  EXPECT_EQ(settings_of(options, "encoder.bias").weight_decay, 0);
  EXPECT_TRUE(settings_of(options, "encoder.bias").exempt);
}

TEST(Groups, PatternsOfNoDecayReplaceTheDefault) {
  const OptimOptions options{.weight_decay = 0.1, .no_decay = {"encoder.*", "*.embedding.weight"}};
  EXPECT_EQ(settings_of(options, "encoder.weight").weight_decay, 0);
  EXPECT_EQ(settings_of(options, "decoder.embedding.weight").weight_decay, 0);
  EXPECT_EQ(settings_of(options, "decoder.output.weight").weight_decay, 0.1);
  EXPECT_EQ(settings_of(options, "decoder.output.bias").weight_decay, 0.1);
}

TEST(Groups, MeanTheSameForWhatTrainsWhateverIsFrozen) {
  // Frozen matrices must not make of "encoder.*" a pattern that names biases alone.
  const OptimOptions options{
      .weight_decay = 0.1,
      .groups = {"encoder.* weight_decay=0.5", "decoder.embedding.* lr_scale=2"}};
  Model model;
  for (const auto& item : model.named_parameters()) {
    const bool frozen = item.key() == "encoder.weight" || item.key().starts_with("decoder.emb");
    item.value().set_requires_grad(!frozen);
  }
  const Arena arena(model);
  const auto settings = group_settings(options, arena);
  ASSERT_EQ(settings.size(), 3u);
  ASSERT_EQ(settings.size(), arena.slots().size());
  for (size_t i = 0; i < settings.size(); ++i) {
    EXPECT_EQ(settings[i], settings_of(options, arena.slots()[i].name)) << arena.slots()[i].name;
  }
}

TEST(Groups, NoneMakesEveryTensorDecay) {
  const OptimOptions options{.weight_decay = 0.1, .no_decay = {"none"}};
  EXPECT_EQ(settings_of(options, "encoder.bias").weight_decay, 0.1);
}

TEST(Groups, TheFirstMatchCountsAndStandsAboveNoDecay) {
  const OptimOptions options{.weight_decay = 0.1,
                             .groups = {"decoder.embedding.* lr_scale=0.1 weight_decay=0",
                                        "decoder.*.bias weight_decay=0.5", "decoder.* lr_scale=2"}};
  EXPECT_EQ(settings_of(options, "decoder.embedding.weight"),
            (GroupSettings{.lr_scale = 0.1, .weight_decay = 0, .exempt = false}));
  EXPECT_EQ(settings_of(options, "decoder.embedding.bias").lr_scale, 0.1);
  EXPECT_EQ(settings_of(options, "decoder.output.bias"),
            (GroupSettings{.lr_scale = 1, .weight_decay = 0.5, .exempt = false}));
  EXPECT_EQ(settings_of(options, "decoder.output.weight"),
            (GroupSettings{.lr_scale = 2, .weight_decay = 0.1, .exempt = false}));
  EXPECT_EQ(settings_of(options, "encoder.weight").lr_scale, 1);
}

TEST(Groups, DecayOfAGroupLeavesOutNoDecayUnlessThatIsAllThatItMatches) {
  struct Case {
    std::vector<std::string> no_decay, groups;
    const char* name;
    double weight_decay;
  };
  const std::vector<std::string> of_decoder{"decoder.* lr_scale=2 weight_decay=0.5"};
  for (const Case& c : {
           Case{{}, of_decoder, "decoder.output.weight", 0.5},
           {{}, of_decoder, "decoder.output.bias", 0},
           {{"none"}, of_decoder, "decoder.output.bias", 0.5},
           {{"*.bias", "*embedding*"}, of_decoder, "decoder.embedding.weight", 0},
           {{"*embedding*"}, of_decoder, "decoder.output.bias", 0.5},
           {{"*embedding*"}, {"*.embedding.* weight_decay=0.5"}, "decoder.embedding.weight", 0.5},
           {{}, {"*.bias weight_decay=0.5"}, "encoder.bias", 0.5},
           // What it matches counts, not what another entry left to it.
           {{}, {"*.weight lr_scale=2", "decoder.* weight_decay=0.5"}, "decoder.output.bias", 0},
           {{}, {"decoder.* weight_decay=0"}, "decoder.output.weight", 0},
       }) {
    const auto got =
        settings_of({.weight_decay = 0.1, .no_decay = c.no_decay, .groups = c.groups}, c.name);
    EXPECT_EQ(got.weight_decay, c.weight_decay) << c.groups.back() << ", " << c.name;
  }
  EXPECT_EQ(settings_of({.groups = of_decoder}, "decoder.output.bias").lr_scale, 2);
}

// Exemption comes from optim.no_decay and nothing else: a decay of 0 says nothing of the rate.
TEST(Groups, ExemptAreTensorsOfNoDecayThatNoGroupGivesADecay) {
  struct Case {
    std::vector<std::string> no_decay, groups;
    double weight_decay;  // optim.weight_decay
    const char* name;
    bool exempt;
  };
  for (const Case& c : {
           Case{{}, {}, 0.1, "encoder.bias", true},
           {{}, {}, 0.1, "encoder.weight", false},
           {{}, {}, 0, "encoder.weight", false},
           {{"none"}, {}, 0, "encoder.bias", false},
           {{"encoder.weight"}, {}, 0.1, "encoder.weight", true},
           {{}, {"encoder.* weight_decay=0"}, 0.1, "encoder.weight", false},
           {{}, {"encoder.* weight_decay=0"}, 0.1, "encoder.bias", true},
           {{}, {"encoder.* weight_decay=0.5"}, 0.1, "encoder.bias", true},
           {{}, {"*.bias lr_scale=2"}, 0.1, "encoder.bias", true},
           {{}, {"*.bias weight_decay=0"}, 0.1, "encoder.bias", true},
           {{}, {"*.bias weight_decay=0.5"}, 0.1, "encoder.bias", false},
           {{"none"}, {"*.bias weight_decay=0"}, 0.1, "encoder.bias", false},
       }) {
    const auto got = settings_of(
        {.weight_decay = c.weight_decay, .no_decay = c.no_decay, .groups = c.groups}, c.name);
    EXPECT_EQ(got.exempt, c.exempt)
        << (c.groups.empty() ? "no group" : c.groups.back()) << ", " << c.name;
  }
}

TEST(Groups, AGroupWithoutDecayIsScaledByLayerAsBefore) {
  for (const std::string name : {"lars", "larc", "lamb"}) {
    Model model, plain;
    Arena arena(model), reference(plain);
    const OptimOptions options{.name = name, .weight_decay = 0};
    OptimOptions grouped = options;
    grouped.groups = {"encoder.* weight_decay=0"};
    const auto one = make_optimizer(grouped, arena);
    const auto other = make_optimizer(options, reference);
    arena.grads().fill_(0.1);
    reference.grads().fill_(0.1);
    one->step(arena, {.lr = 3, .number = 1});
    other->step(reference, {.lr = 3, .number = 1});
    EXPECT_TRUE(torch::equal(arena.params(), reference.params())) << name;
  }
}

TEST(Groups, StepsUseTheRateAndDecayOfTheGroup) {
  // Not larc, whose clipped ratio undoes the rate.
  for (const std::string name : {"sgd", "adam", "adamw", "lamb", "adagrad", "rmsprop", "radam",
                                 "novograd", "lars", "adafactor", "ftrl", "lazy_adam"}) {
    Model model, plain;
    Arena arena(model), reference(plain);
    const auto scaled = make_optimizer({.name = name, .groups = {"encoder.* lr_scale=0.5"}}, arena);
    const auto whole = make_optimizer({.name = name}, reference);
    arena.grads().fill_(0.1);
    reference.grads().fill_(0.1);
    scaled->step(arena, {.lr = 0.02, .number = 1});
    whole->step(reference, {.lr = 0.02, .number = 1});
    for (const auto& slot : arena.slots()) {
      const auto moved = [&](const Arena& one) {
        return 1 - Arena::view(one.params(), slot).flatten()[0].item<double>();
      };
      const double share = slot.name.starts_with("encoder.") ? 0.5 : 1;
      EXPECT_NEAR(moved(arena), share * moved(reference), 1e-6) << name << ", " << slot.name;
      EXPECT_GT(moved(reference), 0) << name << ", " << slot.name;
    }
  }
}

TEST(Groups, EqualNeighboursAreOneStretch) {
  Model model;
  const Arena arena(model);
  const Layout plain({.weight_decay = 0.1}, arena, {0, arena.size()});
  EXPECT_EQ(plain.stretches().size(), 2U);  // matrices, then vectors
  EXPECT_EQ(plain.stretches().back().end, arena.size());
  EXPECT_EQ(plain.tensors().size(), 6U);
  const Layout cut({.weight_decay = 0.1, .groups = {"decoder.output.weight lr_scale=2"}}, arena,
                   {0, arena.size()});
  EXPECT_EQ(cut.stretches().size(), 4U);
}

TEST(Groups, BlocksAreThoseOfTheArenaHoweverItIsSliced) {
  struct Long : torch::nn::Module {
    Long() {
      register_parameter("a", torch::ones({3, kernels::kStepBlock}));
      register_parameter("b", torch::ones({5, 7}));
      register_parameter("c", torch::ones({2, kernels::kStepBlock}));
      register_parameter("d", torch::ones({9}));
    }
  } model;
  const Arena arena(model);
  const Layout whole({}, arena, {0, arena.size()});
  // c begins inside a block, so that it has parts of three.
  EXPECT_EQ(whole.block_slots(), (std::vector<size_t>{0, 0, 0, 1, 2, 2, 2, 3}));
  ASSERT_EQ(whole.blocks().size(), 8U);
  size_t next = 0;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 2 * kernels::kStepBlock},
                                   {2 * kernels::kStepBlock, 4 * kernels::kStepBlock},
                                   {4 * kernels::kStepBlock, arena.size()},
                                   {arena.size(), arena.size()}}) {
    const Layout layout({}, arena, {begin, end});
    EXPECT_EQ(layout.block_slots(), whole.block_slots());
    for (const Part& part : layout.blocks()) {
      const Part& same = whole.blocks().at(next++);
      EXPECT_EQ(part.begin + begin, same.begin);
      EXPECT_EQ(part.end + begin, same.end);
      EXPECT_EQ(part.slot, same.slot);
      EXPECT_EQ(part.block, same.block);
    }
  }
  EXPECT_EQ(next, 8U);
}

TEST(Groups, ASliceSeesTheTensorsInIt) {
  Model model;
  const Arena arena(model);
  const auto& second = arena.slots()[1];
  const Layout layout({}, arena, {second.offset + 2, second.offset + 5});
  ASSERT_EQ(layout.tensors().size(), 1U);
  EXPECT_EQ(layout.tensors()[0].slot, 1U);
  EXPECT_EQ(layout.tensors()[0].begin, 0);
  EXPECT_EQ(layout.tensors()[0].end, 3);
  EXPECT_FALSE(layout.is_whole());
}

TEST(Groups, APatternThatMatchesNothingListsNearNames) {
  const auto message = message_of({.groups = {"decoder.embeding.* lr_scale=0.1"}});
  EXPECT_NE(message.find("optim.groups: `decoder.embeding.*` matches no parameter"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("decoder.embedding.weight"), std::string::npos) << message;
  const auto other = message_of({.no_decay = {"encoder.weigth"}});
  EXPECT_NE(other.find("optim.no_decay: `encoder.weigth`"), std::string::npos) << other;
  EXPECT_NE(other.find("near it: encoder.weight,"), std::string::npos) << other;
}

TEST(Groups, EntriesThatCannotBeReadAreNamed) {
  for (const std::string entry :
       {"", "decoder.*", "decoder.* lr=2", "decoder.* lr_scale", "decoder.* lr_scale=fast",
        "decoder.* lr_scale=-1", "decoder.* weight_decay=", "decoder.* lr_scale=1x"}) {
    const auto message = message_of({.groups = {entry}});
    EXPECT_NE(message.find("optim.groups"), std::string::npos) << entry;
    EXPECT_NE(message.find("`" + entry + "`"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace stretto::optim
