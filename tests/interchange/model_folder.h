#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "store/safetensors.h"
#include "tests/base/temp_dir.h"

namespace stretto::testing {

/// A folder as transformers writes it, of a model with 1 layer, D = 4, 2 heads, a feed-forward part
/// of 8, 16 positions and a vocabulary of 8.
class ModelFolder {
 public:
  std::shared_ptr<TempDir> dir = std::make_shared<TempDir>();
  nlohmann::json config;
  std::map<std::string, std::vector<int64_t>> shapes;  ///< of the tensors
  std::map<std::string, float> last_values = {};       ///< of some tensors, instead of their own

  /// Every element is a number of its own.
  void write(const std::string& file = "model.safetensors") const {
    std::map<std::string, std::string> bytes;
    std::vector<store::TensorView> tensors;
    for (const auto& [name, shape] : shapes) {
      tensors.push_back({name, store::DType::kF32, shape, bytes[name] = values_of(name)});
    }
    std::filesystem::remove(*dir / file);  // written anew
    store::write_safetensors(*dir / file, tensors, {{"format", "pt"}});
    dir->write("config.json", config.dump());
  }

  std::string values_of(const std::string& name) const {
    int64_t count = 1, number = 0;
    for (const int64_t size : shapes.at(name)) count *= size;
    for (const auto& [other, shape] : shapes) {
      if (other == name) break;
      number += 1000;
    }
    std::string bytes(static_cast<size_t>(count) * sizeof(float), '\0');
    const auto last = last_values.find(name);
    for (int64_t i = 0; i < count; ++i) {
      const bool is_given = i == count - 1 && last != last_values.end();
      const auto value = is_given ? last->second : static_cast<float>(number + i);
      std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(float), &value, sizeof(float));
    }
    return bytes;
  }

  void add_layer(const std::string& name, int64_t out, int64_t in) {
    shapes[name + ".weight"] = {out, in};
    shapes[name + ".bias"] = {out};
  }
  void add_norm(const std::string& name) {
    shapes[name + ".weight"] = {4};
    shapes[name + ".bias"] = {4};
  }
  void write_vocab() const {
    dir->write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n##s\n");
  }

  static ModelFolder bert(const std::string& model_class, const std::string& prefix = "bert.") {
    ModelFolder folder;
    folder.config = {{"architectures", {model_class}},
                     {"model_type", "bert"},
                     {"hidden_size", 4},
                     {"num_hidden_layers", 1},
                     {"num_attention_heads", 2},
                     {"intermediate_size", 8},
                     {"max_position_embeddings", 16},
                     {"type_vocab_size", 2},
                     {"vocab_size", 8},
                     {"pad_token_id", 0}};
    folder.add_bert_encoder(prefix, 16, 2);
    folder.write_vocab();
    return folder;
  }

  static ModelFolder roberta(const std::string& model_class) {
    ModelFolder folder = bert(model_class, "roberta.");
    folder.config["model_type"] = "roberta";
    folder.config["max_position_embeddings"] = 18;
    folder.config["type_vocab_size"] = 1;
    folder.config["pad_token_id"] = 1;
    folder.shapes["roberta.embeddings.position_embeddings.weight"] = {18, 4};
    folder.shapes["roberta.embeddings.token_type_embeddings.weight"] = {1, 4};
    return folder;
  }

  static ModelFolder distilbert(const std::string& model_class) {
    ModelFolder folder;
    folder.config = {{"architectures", {model_class}},
                     {"model_type", "distilbert"},
                     {"dim", 4},
                     {"n_layers", 1},
                     {"n_heads", 2},
                     {"hidden_dim", 8},
                     {"max_position_embeddings", 16},
                     {"vocab_size", 8},
                     {"pad_token_id", 0}};
    folder.shapes["distilbert.embeddings.word_embeddings.weight"] = {8, 4};
    folder.shapes["distilbert.embeddings.position_embeddings.weight"] = {16, 4};
    folder.add_norm("distilbert.embeddings.LayerNorm");
    const std::string layer = "distilbert.transformer.layer.0.";
    for (const char* part : {"q_lin", "k_lin", "v_lin", "out_lin"}) {
      folder.add_layer(layer + "attention." + part, 4, 4);
    }
    folder.add_norm(layer + "sa_layer_norm");
    folder.add_layer(layer + "ffn.lin1", 8, 4);
    folder.add_layer(layer + "ffn.lin2", 4, 8);
    folder.add_norm(layer + "output_layer_norm");
    folder.write_vocab();
    return folder;
  }

  ModelFolder& with_bert_masked_tokens() {
    add_layer("cls.predictions.transform.dense", 4, 4);
    add_norm("cls.predictions.transform.LayerNorm");
    shapes["cls.predictions.bias"] = {8};
    return *this;
  }
  ModelFolder& with_bert_labels(int64_t labels) {
    add_layer("bert.pooler.dense", 4, 4);
    add_layer("classifier", labels, 4);
    return *this;
  }

 private:
  void add_bert_encoder(const std::string& prefix, int64_t positions, int64_t segments) {
    shapes[prefix + "embeddings.word_embeddings.weight"] = {8, 4};
    shapes[prefix + "embeddings.position_embeddings.weight"] = {positions, 4};
    shapes[prefix + "embeddings.token_type_embeddings.weight"] = {segments, 4};
    add_norm(prefix + "embeddings.LayerNorm");
    const std::string layer = prefix + "encoder.layer.0.";
    for (const char* part : {"query", "key", "value"}) {
      add_layer(layer + "attention.self." + part, 4, 4);
    }
    add_layer(layer + "attention.output.dense", 4, 4);
    add_norm(layer + "attention.output.LayerNorm");
    add_layer(layer + "intermediate.dense", 8, 4);
    add_layer(layer + "output.dense", 4, 8);
    add_norm(layer + "output.LayerNorm");
  }
};

}  // namespace stretto::testing
