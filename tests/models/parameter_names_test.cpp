// The linter judges patterns of optim.groups by names that it lists without making the model.
#include <gtest/gtest.h>

#include <map>

#include "experiment/tensor_names.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "optim/arena.h"

namespace stretto::models {
namespace {

TEST(ParameterNames, OfTheLinterAreThoseOfTheModel) {
  for (const std::string ties : {"all", "decoder", "none"}) {
    for (const std::string norm : {"post", "pre", "res_post"}) {
      for (const std::string positions : {"sinusoidal", "learned", "rotary"}) {
        Seq2SeqOptions options;
        options.d_model = 8;
        options.encoder = StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 12};
        options.decoder = StackOptions{.num_layers = 2, .num_heads = 2, .ffn_dim = 12};
        options.norm = norm;
        options.norm_layer = norm == "res_post" ? "batch_norm" : "layer_norm";
        options.positions = positions;
        options.tie_embeddings = ties;
        options.activation = norm == "pre" ? "swiglu" : "relu";
        const auto model = make_model(options, {.src_rows = 9, .tgt_rows = 9, .num_tgt_classes = 9},
                                      losses::make_loss({}));
        const optim::Arena arena(*model);
        std::map<std::string, bool> made, listed;
        for (const auto& slot : arena.slots()) {
          made[slot.name] = slot.shape.size() <= 1;
        }
        for (const auto& tensor : experiment::tensors_of(options)) {
          listed[tensor.name] = tensor.is_vector;
        }
        EXPECT_EQ(listed, made) << ties << ", " << norm << ", " << positions;
      }
    }
  }
}

}  // namespace
}  // namespace stretto::models
