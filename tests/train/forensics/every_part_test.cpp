// Forensics for models of every kind of part: what is not finite is named where it came to be.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "nn/watch.h"
#include "tests/train/bare_task.h"
#include "train/forensics/forensics.h"

namespace stretto::train {
namespace {

using models::Seq2SeqOptions;

/// A model of any parts, with dropout.
class AnyPartsTask : public stretto::test::BareTask {
 public:
  explicit AnyPartsTask(const Seq2SeqOptions& options)
      : model_(stretto::test::small_transformer(options, /*vocabulary=*/24)) {}
  torch::nn::Module& model() override { return *model_; }
  Sums loss(const Prepared& batch, const StepContext& context) override {
    const auto output = model_->loss(
        batch, {.training = true, .dropout_key = static_cast<uint64_t>(context.update)});
    return sums(output.loss_sum, batch);
  }

 private:
  std::shared_ptr<models::Seq2SeqModel> model_;
};

/// Pairs of two sources, which a model of one encoder reads as one.
/// @param head  of several decoders the one that they are for
data::Batch pairs_for(int64_t head) {
  auto batch = data::pair_batch({1, 2});
  for (const int64_t sample : batch.sample_ids) {
    const std::vector<int64_t> source{4 + sample, 20, 3, 22, 9, 3}, target{21, 4 + sample, 3};
    data::source(batch).append(source);
    data::target(batch).append(target);
  }
  batch.stream = head;
  return batch;
}

Seq2SeqOptions of_parts(const models::EncoderChoice& encoder,
                        const models::DecoderChoice& decoder) {
  Seq2SeqOptions options = stretto::test::small_options(2);
  options.encoder = encoder;
  options.decoder = decoder;
  return options;
}

Seq2SeqOptions recurrent(const std::string& cell, int64_t num_layers) {
  models::LstmEncoderOptions encoder;
  models::LstmDecoderOptions decoder;
  encoder.cell = decoder.cell = cell;
  encoder.num_layers = decoder.num_layers = num_layers;
  return of_parts(encoder, decoder);
}

Seq2SeqOptions regularised_norm_lstm() {
  models::LstmEncoderOptions encoder;
  models::LstmDecoderOptions decoder;
  encoder.cell = decoder.cell = "norm_lstm";
  encoder.variational = decoder.variational = true;
  encoder.recurrent_dropout = decoder.recurrent_dropout = 0.1;
  encoder.zoneout_hidden = decoder.zoneout_hidden = 0.1;
  encoder.zoneout_cell = decoder.zoneout_cell = 0.1;
  decoder.attention = "luong_scaled";
  decoder.output = "attended";
  decoder.initial_state = "mean";
  return of_parts(encoder, decoder);
}

template <class Encoder, class Decoder>
Seq2SeqOptions light() {
  Encoder encoder;
  Decoder decoder;
  encoder.num_layers = decoder.num_layers = 2;
  encoder.num_heads = decoder.num_heads = 2;
  encoder.ffn_dim = decoder.ffn_dim = 24;
  encoder.kernels = decoder.kernels = {3};
  return of_parts(encoder, decoder);
}

Seq2SeqOptions transformer(const std::string& positions) {
  Seq2SeqOptions options = stretto::test::small_options(2);
  options.positions = positions;
  options.encoder.as<models::StackOptions>().num_kv_heads = 1;
  options.decoder.as<models::StackOptions>().num_kv_heads = 1;
  return options;
}

/// With root mean square norms, and with LayerDrop: update 6 leaves out the encoder's first layer
/// and the decoder's second one, update 5 none.
Seq2SeqOptions rotary() {
  Seq2SeqOptions options = transformer("rotary");
  options.norm_layer = "rms_norm";
  options.encoder.as<models::StackOptions>().layer_drop = 0.5;
  options.decoder.as<models::StackOptions>().layer_drop = 0.5;
  return options;
}

Seq2SeqOptions parallel_shaw() {
  Seq2SeqOptions options = stretto::test::small_options(2);
  options.positions = "shaw";
  options.max_distance = 2;
  options.parallel_residual = true;
  return options;
}

Seq2SeqOptions two_encoders() {
  Seq2SeqOptions options = stretto::test::small_options(2);
  models::LstmEncoderOptions first;
  first.num_layers = 1;  // two directions of half the width
  options.encoders = {first, options.encoder};
  return options;
}

Seq2SeqOptions two_decoders() {
  Seq2SeqOptions options = stretto::test::small_options(2);
  models::LstmDecoderOptions second;
  second.num_layers = 1;
  options.heads = {{.name = "first", .decoder = options.decoder},
                   {.name = "second", .decoder = second}};
  return options;
}

/// Models, by what they are made of.
std::map<std::string, Seq2SeqOptions> models_of_every_part() {
  return {
      {"lstm", recurrent("lstm", 2)},
      {"gru", recurrent("gru", 2)},
      {"gnmt", recurrent("lstm", 3)},
      {"norm_lstm", regularised_norm_lstm()},
      {"conv", of_parts(models::ConvEncoderOptions{.num_layers = 2},
                        models::ConvDecoderOptions{.num_layers = 2})},
      {"light_conv", light<models::LightEncoderOptions, models::LightDecoderOptions>()},
      {"dynamic_conv", light<models::DynamicEncoderOptions, models::DynamicDecoderOptions>()},
      {"parallel_shaw", parallel_shaw()},
      {"alibi", transformer("alibi")},
      {"t5", transformer("t5")},
      {"rotary", rotary()},
      {"two_encoders", two_encoders()},
      {"two_decoders", two_decoders()},
  };
}

struct InfiniteWeight {
  std::string model, weight;
  std::string module;  ///< whose output is the first that is not finite
  /// An infinite weight on a state saturates a gate, whose output is finite. The layer is named in
  /// forward or in backward.
  bool may_saturate = false;
};

const std::vector<InfiniteWeight>& infinite_weights() {
  static const std::vector<InfiniteWeight> all{
      {"lstm", "encoder.layers.0.backward.input.weight", "encoder.layers.0.backward.input"},
      {"lstm", "encoder.layers.1.hidden.weight", "encoder.layers.1", true},
      {"lstm", "decoder.attention.key.weight", "decoder.attention.key"},
      {"gru", "encoder.layers.1.input.bias", "encoder.layers.1.input"},
      {"gru", "decoder.layers.1.hidden.weight", "decoder.layers.1", true},
      {"gnmt", "encoder.layers.2.hidden.weight", "encoder.layers.2", true},
      {"gnmt", "decoder.layers.2.input.weight", "decoder.layers.2.input"},
      {"norm_lstm", "encoder.layers.1.input_norm.bias", "encoder.layers.1.input_norm"},
      {"norm_lstm", "decoder.layers.1.hidden_norm.weight", "decoder.layers.1", true},
      {"norm_lstm", "decoder.output.weight", "decoder.output"},
      // Its bias joins the gate behind it, which is the block's.
      {"conv", "encoder.layers.1.block.convolution.bias", "encoder.layers.1.block"},
      {"conv", "decoder.layers.1.block.convolution.weight", "decoder.layers.1.block.convolution"},
      {"conv", "decoder.layers.0.attention.out.bias", "decoder.layers.0.attention.out"},
      {"light_conv", "encoder.layers.1.convolution.in.bias", "encoder.layers.1.convolution"},
      {"light_conv", "decoder.layers.0.convolution.out.weight", "decoder.layers.0.convolution.out"},
      {"dynamic_conv", "encoder.layers.1.convolution.filters.weight",
       "encoder.layers.1.convolution.filters"},
      {"dynamic_conv", "decoder.layers.1.ffn.up.weight", "decoder.layers.1.ffn.up"},
      {"parallel_shaw", "encoder.layers.1.self_attention.relative_keys.weight",
       "encoder.layers.1.self_attention.relative_keys"},
      {"parallel_shaw", "decoder.layers.1.residual.norm.weight", "decoder.layers.1.residual.norm"},
      {"alibi", "decoder.layers.1.cross_attention.kv.weight",
       "decoder.layers.1.cross_attention.kv"},
      {"alibi", "encoder.layers.0.self_attention.qkv.weight",
       "encoder.layers.0.self_attention.qkv"},
      {"t5", "decoder.distance_bias.weight", "decoder.distance_bias"},  // two tokens back
      // Layers beside one that is left out:
      {"rotary", "encoder.layers.1.self_residual.norm.weight",
       "encoder.layers.1.self_residual.norm"},
      {"rotary", "decoder.layers.0.self_attention.qkv.weight",
       "decoder.layers.0.self_attention.qkv"},
      {"rotary", "decoder.layers.0.ffn_residual.norm.weight", "decoder.layers.0.ffn_residual.norm"},
      {"two_encoders", "encoders.0.layers.0.backward.input.weight",
       "encoders.0.layers.0.backward.input"},
      {"two_encoders", "encoders.1.layers.0.ffn.up.weight", "encoders.1.layers.0.ffn.up"},
      {"two_decoders", "decoders.second.layers.0.input.weight", "decoders.second.layers.0.input"},
  };
  return all;
}

torch::Tensor parameter_named(optim::Arena& arena, const std::string& name) {
  for (const auto& slot : arena.slots()) {
    if (slot.name == name) return optim::Arena::view(arena.params(), slot);
  }
  throw std::logic_error("no weight " + name);
}

void expect_to_be_named(const InfiniteWeight& c, const NonfiniteReport& report) {
  const FirstNonfinite& first = report.first;
  const bool is_of_module =
      first.name == c.module || (c.may_saturate && first.name.starts_with(c.module + "."));
  EXPECT_TRUE(is_of_module) << "`" << first.name << "` is named, behind `" << first.last_finite
                            << "`";
  if (!c.may_saturate) {
    EXPECT_EQ(first.kind, TensorKind::kOutput);
  }
  EXPECT_EQ(report.weights, (std::vector<NonfiniteWeight>{{c.weight, 1}}));
}

TEST(ForensicsOfEveryPart, AnInfiniteWeightIsNamedWithItsModule) {
  const auto all = models_of_every_part();
  std::set<std::string> seen;
  for (const InfiniteWeight& c : infinite_weights()) {
    SCOPED_TRACE(c.model + ", " + c.weight);
    seen.insert(c.model);
    AnyPartsTask task(all.at(c.model));
    optim::Arena arena(task.model());
    const data::Batch batch = pairs_for(/*head=*/c.model == "two_decoders" ? 1 : 0);
    const auto look = [&] {
      return examine(task, arena, {batch}, {.seed = 1, .update = 6}, /*loss_scale=*/1,
                     kernels::Compute::kFp32);
    };
    EXPECT_FALSE(look().found());
    parameter_named(arena, c.weight).view({-1})[5] = std::numeric_limits<float>::infinity();
    expect_to_be_named(c, look());
  }
  EXPECT_EQ(seen.size(), all.size()) << "a model has no infinite weight";
}

/// Paths of modules as the watcher has them: a shared one has the first of its names.
std::map<const torch::nn::Module*, std::string> paths_in(const torch::nn::Module& model) {
  std::map<const torch::nn::Module*, std::string> paths;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    paths.emplace(item.value().get(), item.key());
  }
  return paths;
}

/// Paths of the modules that tell their outputs in the forward passes of an update.
std::set<std::string> told_by(AnyPartsTask& task, size_t heads, int64_t update) {
  std::set<std::string> told;
  const nn::WatchScope scope(task.model(), [&](const nn::Watched& watched) {
    if (!watched.backward) told.insert(watched.module);
  });
  for (size_t head = 0; head < std::max<size_t>(heads, 1); ++head) {
    task.loss(Prepared(pairs_for(static_cast<int64_t>(head))), {.update = update});
  }
  return told;
}

// The parameters of a fused operator lie in modules that compute nothing: then the module around
// them tells what the operator gave.
TEST(ForensicsOfEveryPart, EachModuleWithWeightsIsWatchedOrTheOneAroundIt) {
  for (const auto& [name, options] : models_of_every_part()) {
    SCOPED_TRACE(name);
    AnyPartsTask task(options);
    const auto told = told_by(task, options.heads.size(), /*update=*/5);
    for (const auto& [module, path] : paths_in(task.model())) {
      if (module->parameters(/*recurse=*/false).empty()) continue;
      const std::string around = path.substr(0, path.rfind('.'));
      EXPECT_TRUE(told.contains(path) || told.contains(around)) << "nothing is told of " << path;
    }
  }
}

TEST(ForensicsOfEveryPart, ALayerThatIsLeftOutTellsNothing) {
  AnyPartsTask task(rotary());
  std::set<std::string> layers;
  for (const std::string& path : told_by(task, /*heads=*/0, /*update=*/6)) {
    for (const char* layer :
         {"encoder.layers.0", "encoder.layers.1", "decoder.layers.0", "decoder.layers.1"}) {
      if (path.starts_with(layer)) layers.insert(layer);
    }
  }
  EXPECT_EQ(layers, (std::set<std::string>{"encoder.layers.1", "decoder.layers.0"}));
}

}  // namespace
}  // namespace stretto::train
