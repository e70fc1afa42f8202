#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/families/image_classification/folders/image_weights.h"
#include "tests/interchange/model_folder.h"

namespace stretto::testing {

/// Folders of small models with three classes.
inline nlohmann::json three_classes() {
  return {{"0", "cat"}, {"1", "dog"}, {"2", "tench, Tinca tinca"}};
}

/// ResNetForImageClassification of small_resnet()'s sizes, and its processor.
inline ModelFolder resnet_folder() {
  ModelFolder folder;
  folder.config = {{"architectures", {"ResNetForImageClassification"}},
                   {"model_type", "resnet"},
                   {"embedding_size", 2},
                   {"hidden_sizes", {2, 4, 8, 16}},
                   {"depths", {2, 2, 2, 2}},
                   {"layer_type", "basic"},
                   {"hidden_act", "relu"},
                   {"id2label", three_classes()}};
  folder.shapes = small_resnet(transformers_names());
  folder.dir->write("preprocessor_config.json",
                    R"({"feature_extractor_type": "ConvNextFeatureExtractor", "size": 224,
                        "crop_pct": 0.875, "resample": 3, "do_resize": true, "do_normalize": true,
                        "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})");
  return folder;
}

/// ViTForImageClassification of small_vit()'s sizes, and its processor.
inline ModelFolder vit_folder() {
  ModelFolder folder;
  folder.config = {{"architectures", {"ViTForImageClassification"}},
                   {"model_type", "vit"},
                   {"hidden_size", 8},
                   {"num_hidden_layers", 2},
                   {"num_attention_heads", 2},
                   {"intermediate_size", 12},
                   {"patch_size", 4},
                   {"image_size", 8},
                   {"hidden_act", "gelu"},
                   {"layer_norm_eps", 1e-12},
                   {"id2label", three_classes()}};
  folder.shapes = {{"vit.embeddings.patch_embeddings.projection.weight", {8, 3, 4, 4}},
                   {"vit.embeddings.patch_embeddings.projection.bias", {8}},
                   {"vit.embeddings.cls_token", {1, 1, 8}},
                   {"vit.embeddings.position_embeddings", {1, 5, 8}},
                   {"vit.layernorm.weight", {8}},
                   {"vit.layernorm.bias", {8}}};
  folder.add_layer("classifier", 3, 8);
  for (const char* number : {"0", "1"}) {
    const std::string layer = std::string("vit.encoder.layer.") + number + ".";
    for (const char* norm : {"layernorm_before", "layernorm_after"}) {
      folder.shapes[layer + norm + ".weight"] = folder.shapes[layer + norm + ".bias"] = {8};
    }
    for (const char* map : {"query", "key", "value"}) {
      folder.add_layer(layer + "attention.attention." + map, 8, 8);
    }
    folder.add_layer(layer + "attention.output.dense", 8, 8);
    folder.add_layer(layer + "intermediate.dense", 12, 8);
    folder.add_layer(layer + "output.dense", 8, 12);
  }
  folder.dir->write("preprocessor_config.json",
                    R"({"image_processor_type": "ViTImageProcessor", "resample": 2,
                        "size": {"height": 8, "width": 8}})");
  return folder;
}

/// The same sizes as timm has them on the model hub.
inline ModelFolder timm_folder() {
  ModelFolder folder;
  folder.config = {{"architecture", "vit_tiny_patch16_224"},
                   {"num_classes", 3},
                   {"global_pool", "token"},
                   {"model_args", {{"num_heads", 2}, {"patch_size", 4}, {"img_size", 8}}},
                   {"label_names", {"cat", "dog", "fish"}},
                   {"pretrained_cfg",
                    {{"input_size", {3, 8, 8}},
                     {"interpolation", "bicubic"},
                     {"crop_pct", 0.8},
                     {"crop_mode", "center"},
                     {"mean", {0.5, 0.5, 0.5}},
                     {"std", {0.5, 0.5, 0.5}}}}};
  folder.shapes = small_vit();
  return folder;
}

}  // namespace stretto::testing
