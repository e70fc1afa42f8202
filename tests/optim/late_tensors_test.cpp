// train.unfreeze: parameters that have a place in the arena, but train only from an update on.
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/adapter_options.h"
#include "nn/lora_options.h"
#include "optim/frozen_names.h"
#include "optim/gradient_noise.h"
#include "optim/weight_noise.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Toy;

constexpr int64_t kBegins = 3;

const std::vector<Arena::LateParameter> kLate{{"large", kBegins}, {"bias", kBegins}};

Arena late_arena(Toy& toy) {
  return Arena(toy, Arena::Gradients::kAllocated, kLate);
}

void step(Toy& toy, Arena& arena, Optimizer& optimizer, int number, int gradients_of) {
  toy.fill_gradients(gradients_of);
  for (const auto& slot : arena.slots()) {
    if (slot.begins >= number) Arena::view(arena.grads(), slot).zero_();
  }
  optimizer.step(arena, {.lr = testing::rate_at(gradients_of), .number = number});
}

/// The part of a flat state that belongs to a tensor; a number of zero where it has none.
torch::Tensor state_of(const Arena& arena, const StateTensor& state, const std::string& name) {
  for (const auto& slot : slots_in(state.held, arena.slots())) {
    if (slot.name == name) return Arena::view(state.values, slot);
  }
  return torch::zeros({1});
}

TEST(LateTensors, AreSteppedAsIfTrainingBeganWithThem) {
  for (const char* name : {"adam", "adamw", "radam", "lamb", "sgd", "lars", "larc", "novograd",
                           "adagrad", "rmsprop", "ftrl", "lazy_adam", "muon"}) {
    for (const char* form : {"rate_outside", "rate_inside"}) {
      SCOPED_TRACE(std::string(name) + " " + form);
      const OptimOptions options{.name = name, .weight_decay = 0.1, .momentum_form = form};
      Toy toy, fresh;
      Arena arena = late_arena(toy), fresh_arena(fresh);
      const auto optimizer = make_optimizer(options, arena);
      const auto begun = make_optimizer(options, fresh_arena);
      const auto before = arena.params().clone();
      const auto is_late = [](const auto& slot) { return slot.begins > 0; };
      for (int number = 1; number <= 8; ++number) {
        step(toy, arena, *optimizer, number, number);
        if (number > kBegins) {
          step(fresh, fresh_arena, *begun, static_cast<int>(number - kBegins), number);
        }
        for (size_t i = 0; i < arena.slots().size(); ++i) {
          const auto& slot = arena.slots()[i];
          if (!is_late(slot)) continue;
          const auto now = Arena::view(arena.params(), slot);
          EXPECT_TRUE(torch::equal(now, number <= kBegins
                                            ? Arena::view(before, slot)
                                            : Arena::view(fresh_arena.params(), slot)))
              << slot.name << " after update " << number;
          for (const auto& state : optimizer->state()) {
            if (!state.flat || number > kBegins) continue;
            EXPECT_EQ(state_of(arena, state, slot.name).abs().max().item<float>(), 0)
                << state.name << " of " << slot.name << " after update " << number;
          }
        }
      }
      EXPECT_FALSE(torch::equal(toy.tensors[0], before.narrow(0, 0, 15).view({5, 3})));
    }
  }
}

TEST(LateTensors, AreRefusedByAdafactor) {
  Toy toy;
  const Arena arena = late_arena(toy);
  EXPECT_THROW(make_optimizer({.name = "adafactor"}, arena), Error);
}

TEST(LateTensors, HaveNoGradientBeforeTheyTrain) {
  Toy toy;
  Arena arena = late_arena(toy);
  struct Row {
    int64_t updates;
    bool changes, late;
  };
  for (const Row& row : {Row{0, true, false}, Row{1, false, false}, Row{kBegins, true, true},
                         Row{9, false, true}, Row{2, true, false}, Row{kBegins, true, true}}) {
    EXPECT_EQ(arena.train_after(row.updates), row.changes) << row.updates;
    for (const auto& item : toy.named_parameters()) {
      const bool is_late = item.key() == "large" || item.key() == "bias";
      EXPECT_EQ(item.value().requires_grad(), !is_late || row.late) << item.key();
    }
    arena.zero_grads();
    torch::Tensor sum = torch::zeros({});
    for (const auto& tensor : toy.tensors) sum = sum + tensor.square().sum() + tensor.sum();
    sum.backward();
    for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
      const auto gradient = Arena::view(arena.grads(), arena.slots()[slot]);
      EXPECT_EQ(gradient.abs().max().item<float>() > 0, arena.trains(slot, row.updates))
          << arena.slots()[slot].name << " after " << row.updates;
    }
  }
}

TEST(LateTensors, HaveNoNoiseBeforeTheyTrain) {
  Toy toy;
  Arena arena = late_arena(toy);
  const auto before = arena.params().clone();
  WeightNoise noise({.weight_noise = 0.1}, arena);
  for (const int64_t updates : {int64_t{2}, kBegins}) {
    arena.zero_grads();
    add_gradient_noise(arena, {0, arena.size()}, 5, 0.1, updates);
    const auto noisy = noise.add(5, updates);
    for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
      const auto& place = arena.slots()[slot];
      const bool trains = arena.trains(slot, updates);
      EXPECT_EQ(!torch::equal(Arena::view(arena.grads(), place),
                              torch::zeros(torch::IntArrayRef(place.shape))),
                trains)
          << place.name;
      if (place.shape.size() < 2) continue;
      EXPECT_EQ(torch::equal(Arena::view(arena.params(), place), Arena::view(before, place)),
                !trains)
          << place.name;
    }
  }
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

TEST(TrainingPlan, SaysWhenEachTensorBegins) {
  const TrainingPlan plan{
      .freeze = {"encoder.*"},
      .unfreeze = {
          {"encoder.layers.1.*", 200}, {"*.layers.1.bias", 7}, {"encoder.layers.0.*", 400}}};
  const auto begins = [&](const char* name) { return plan.begins({name}); };
  EXPECT_EQ(begins("encoder.layers.1.bias"), 200) << "the first that matches";
  EXPECT_EQ(begins("encoder.layers.0.weight"), 400);
  EXPECT_EQ(begins("decoder.layers.1.bias"), 7);
  EXPECT_EQ(begins("encoder.embedding.weight"), std::nullopt);
  EXPECT_EQ(begins("head.weight"), 0);
  EXPECT_EQ(plan.begins({.name = "embedding.weight", .also = {"encoder.layers.0.x"}}), 400);

  TrainingPlan lora = plan;
  lora.freeze.clear();
  lora.adding.push_back({"model.lora", {"head.*"}, &nn::is_lora});
  EXPECT_EQ(lora.begins({"encoder.layers.2.qkv.lora_a"}), 0);
  EXPECT_EQ(lora.begins({"encoder.layers.2.qkv.weight"}), std::nullopt);
  EXPECT_EQ(lora.begins({"encoder.layers.1.qkv.weight"}), 200);
  EXPECT_EQ(lora.begins({"head.output.weight"}), 0);

  TrainingPlan both = lora;
  both.adding.push_back({"model.adapter", {"*norm*"}, &nn::is_adapter});
  EXPECT_EQ(both.begins({"encoder.layers.2.ffn_residual.adapter.down.weight"}), 0);
  EXPECT_EQ(both.begins({"encoder.layers.2.ffn_residual.adapter.up.bias"}), 0);
  EXPECT_EQ(both.begins({"encoder.layers.2.ffn.up.weight"}), std::nullopt);
  EXPECT_EQ(both.begins({"encoder.layers.2.qkv.lora_a"}), 0) << "each section adds to the other";
  EXPECT_EQ(both.begins({"encoder.layers.2.ffn_residual.norm.weight"}), 0);
  EXPECT_EQ(both.begins({"head.output.weight"}), 0);
  both.freeze = {"*.adapter.*"};
  EXPECT_EQ(both.begins({"encoder.layers.2.ffn_residual.adapter.up.bias"}), std::nullopt);
}

TEST(TrainingPlan, MustMatchAndLeaveSomethingToTrainAtFirst) {
  const std::vector<TensorName> tensors{{"encoder.weight"}, {"head.weight"}};
  const auto keys = [&](const TrainingPlan& plan) {
    std::string all;
    for (const auto& [key, problem] : plan_problems(plan, tensors)) all += key + ";";
    return all;
  };
  EXPECT_EQ(keys({}), "");
  EXPECT_EQ(keys({.unfreeze = {{"encoder.*", 5}}}), "");
  EXPECT_EQ(keys({.unfreeze = {{"encodr.*", 5}}}), "train.unfreeze;");
  EXPECT_EQ(keys({.freeze = {"head.*"}, .unfreeze = {{"encoder.*", 5}}}), "train.unfreeze;");
  EXPECT_EQ(keys({.freeze = {"*"}}), "train.freeze;");
  EXPECT_EQ(keys({.freeze = {"*"}, .unfreeze = {{"head.*", 0}}}), "");
}

TEST(TrainingPlan, ReadsAPatternAndANumberOfUpdates) {
  LateStart start;
  EXPECT_FALSE(read_late_start("encoder.layers.1.*  200", start));
  EXPECT_EQ(start.pattern, "encoder.layers.1.*");
  EXPECT_EQ(start.updates, 200);
  for (const char* entry : {"", "encoder.*", "encoder.* 2 3", "encoder.* -1", "encoder.* 1.5",
                            "encoder.* x", "encoder.* 99999999999999999999"}) {
    EXPECT_TRUE(read_late_start(entry, start)) << entry;
  }
}

}  // namespace
}  // namespace stretto::optim
