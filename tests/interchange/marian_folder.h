#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/interchange/model_folder.h"
#include "text/tokenizer.h"

namespace stretto::testing {

/// A folder of MarianMTModel with 1 layer on each side, D = 4, 2 heads, a feed-forward part of 8,
/// 16 positions, and tokenizers of 24 ids.
inline ModelFolder marian_folder() {
  ModelFolder folder;
  std::vector<std::string> lines(40, "red house");
  const std::string model =
      text::train_sentencepiece(lines, {.algorithm = "bpe", .vocab_size = 16, .num_threads = 1});
  const auto tokenizer = text::make_sentencepiece(model, "test.model");
  auto vocab = nlohmann::json::object();
  vocab["</s>"] = 0;
  vocab["<unk>"] = 1;
  int64_t next = 2;
  for (int64_t id = 4; id < tokenizer->size(); ++id) vocab[tokenizer->piece(id)] = next++;
  while (next < 23) {
    const std::string spare = "spare" + std::to_string(next);
    vocab[spare] = next++;
  }
  vocab["<pad>"] = next;
  folder.dir->write("source.spm", model);
  folder.dir->write("target.spm", model);
  folder.dir->write("vocab.json", vocab.dump());
  folder.config = {{"architectures", {"MarianMTModel"}},
                   {"model_type", "marian"},
                   {"d_model", 4},
                   {"encoder_layers", 1},
                   {"decoder_layers", 1},
                   {"encoder_attention_heads", 2},
                   {"decoder_attention_heads", 2},
                   {"encoder_ffn_dim", 8},
                   {"decoder_ffn_dim", 8},
                   {"activation_function", "swish"},
                   {"scale_embedding", true},
                   {"max_position_embeddings", 16},
                   {"vocab_size", 24},
                   {"pad_token_id", 23},
                   {"decoder_start_token_id", 23},
                   {"eos_token_id", 0},
                   {"num_beams", 6}};
  folder.shapes["model.shared.weight"] = {24, 4};
  folder.shapes["final_logits_bias"] = {1, 24};
  for (const std::string side : {"encoder", "decoder"}) {
    const std::string layer = "model." + side + ".layers.0.";
    for (const std::string attention : {"self_attn", "encoder_attn"}) {
      if (side == "encoder" && attention == "encoder_attn") continue;
      for (const char* part : {".q_proj", ".k_proj", ".v_proj", ".out_proj"}) {
        folder.add_layer(layer + attention + part, 4, 4);
      }
      folder.add_norm(layer + attention + "_layer_norm");
    }
    folder.add_layer(layer + "fc1", 8, 4);
    folder.add_layer(layer + "fc2", 4, 8);
    folder.add_norm(layer + "final_layer_norm");
  }
  return folder;
}

}  // namespace stretto::testing
