#include <array>
#include <string>

#include "families/image_classification/folders/image_names.h"

namespace stretto::interchange {
namespace {

constexpr std::array kTorchvisionVit{
    NameRow{"conv_proj", "patches"},
    NameRow{"class_token", "class_token", Parts::kWhole},
    NameRow{"encoder.pos_embedding", "positions", Parts::kWhole},
    NameRow{"encoder.layers.encoder_layer_*.ln_1", "layers.*.self_residual.norm"},
    NameRow{"encoder.layers.encoder_layer_*.self_attention.in_proj_weight",
            "layers.*.self_attention.qkv.weight", Parts::kWhole},
    NameRow{"encoder.layers.encoder_layer_*.self_attention.in_proj_bias",
            "layers.*.self_attention.qkv.bias", Parts::kWhole},
    NameRow{"encoder.layers.encoder_layer_*.self_attention.out_proj",
            "layers.*.self_attention.out"},
    NameRow{"encoder.layers.encoder_layer_*.ln_2", "layers.*.ffn_residual.norm"},
    NameRow{"encoder.layers.encoder_layer_*.mlp.0", "layers.*.ffn.up"},
    NameRow{"encoder.layers.encoder_layer_*.mlp.3", "layers.*.ffn.down"},
    NameRow{"encoder.ln", "final_norm"},
    NameRow{"heads.head", "head"},
};
constexpr std::array kTimmVit{
    NameRow{"patch_embed.proj", "patches"},
    NameRow{"cls_token", "class_token", Parts::kWhole},
    NameRow{"pos_embed", "positions", Parts::kWhole},
    NameRow{"blocks.*.norm1", "layers.*.self_residual.norm"},
    NameRow{"blocks.*.attn.qkv", "layers.*.self_attention.qkv"},
    NameRow{"blocks.*.attn.proj", "layers.*.self_attention.out"},
    NameRow{"blocks.*.norm2", "layers.*.ffn_residual.norm"},
    NameRow{"blocks.*.mlp.fc1", "layers.*.ffn.up"},
    NameRow{"blocks.*.mlp.fc2", "layers.*.ffn.down"},
    NameRow{"norm", "final_norm"},
    NameRow{"head", "head"},
};
constexpr std::array kTransformersVit{
    NameRow{"vit.embeddings.patch_embeddings.projection", "patches"},
    NameRow{"vit.embeddings.cls_token", "class_token", Parts::kWhole},
    NameRow{"vit.embeddings.position_embeddings", "positions", Parts::kWhole},
    NameRow{"vit.encoder.layer.*.layernorm_before", "layers.*.self_residual.norm"},
    NameRow{"vit.encoder.layer.*.attention.attention.{query,key,value}",
            "layers.*.self_attention.qkv"},
    NameRow{"vit.encoder.layer.*.attention.output.dense", "layers.*.self_attention.out"},
    NameRow{"vit.encoder.layer.*.layernorm_after", "layers.*.ffn_residual.norm"},
    NameRow{"vit.encoder.layer.*.intermediate.dense", "layers.*.ffn.up"},
    NameRow{"vit.encoder.layer.*.output.dense", "layers.*.ffn.down"},
    NameRow{"vit.layernorm", "final_norm"},
    NameRow{"classifier", "head"},
};

std::span<const NameRow> vit_rows(ImageSpelling spelling) {
  switch (spelling) {
    case ImageSpelling::kTimm:
      return kTimmVit;
    case ImageSpelling::kTransformers:
      return kTransformersVit;
    case ImageSpelling::kTorchvision:
    case ImageSpelling::kCifar:
      break;
  }
  return kTorchvisionVit;
}

}  // namespace

std::vector<NamePair> vit_names(const models::VitOptions& options, ImageSpelling spelling) {
  auto names = expand(vit_rows(spelling), models::sizes_of(options).num_layers);
  if (options.pooling != "class_token") {
    std::erase_if(names, [](const NamePair& pair) { return pair.ours == kClassToken; });
  }
  return names;
}

}  // namespace stretto::interchange
