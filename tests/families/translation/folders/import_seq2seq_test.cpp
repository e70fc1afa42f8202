#include "families/translation/folders/import_seq2seq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "families/translation/folders/export_seq2seq.h"
#include "families/translation/folders/marian_tokenizer.h"
#include "families/translation/translation_options.h"
#include "tests/base/failure.h"
#include "tests/interchange/marian_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::marian_folder;
using stretto::testing::ModelFolder;
using stretto::testing::TempDir;

const store::TensorView* tensor_called(const std::vector<store::TensorView>& tensors,
                                       const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string refused_folder(const ModelFolder& folder, const ImportOptions& options = {}) {
  return failure(ExitCode::kBadData, [&] { import_seq2seq(folder.dir->path(), options); })
      .message();
}

/// The message about a config.json in which one key is another.
std::string refused_key(const char* key, const nlohmann::json& value) {
  auto folder = marian_folder();
  folder.config[key] = value;
  folder.write();
  return refused_folder(folder);
}

std::string floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Writes a folder whose tensors have these bytes in the place of their own.
void write_with(const ModelFolder& folder, const std::map<std::string, std::string>& other) {
  folder.dir->write("config.json", folder.config.dump());
  std::filesystem::remove(*folder.dir / "model.safetensors");
  std::map<std::string, std::string> bytes;
  std::vector<store::TensorView> tensors;
  for (const auto& [name, shape] : folder.shapes) {
    const auto found = other.find(name);
    bytes[name] = found != other.end() ? found->second : folder.values_of(name);
    tensors.push_back({name, store::DType::kF32, shape, bytes[name]});
  }
  store::write_safetensors(*folder.dir / "model.safetensors", tensors, {{"format", "pt"}});
}

TEST(ImportSeq2Seq, OptionsAreThoseOfTheConfiguration) {
  const auto folder = marian_folder();
  folder.write();
  const auto model = import_seq2seq(folder.dir->path());
  EXPECT_EQ(model.experiment.task.name(), "translation");
  const auto& sections = model.experiment.task.as<experiment::TranslationOptions>();
  EXPECT_EQ(sections.model.d_model, 4);
  EXPECT_EQ(sections.model.norm, "post");
  EXPECT_EQ(sections.model.activation, "silu");
  EXPECT_EQ(sections.model.positions, "marian");
  EXPECT_EQ(sections.model.tie_embeddings, "all");
  EXPECT_EQ(sections.model.embedding_scale, "sqrt");
  EXPECT_TRUE(sections.model.output_bias);
  EXPECT_EQ(sections.decode.beam_size, 6);
  EXPECT_EQ(sections.model.encoder.as<models::StackOptions>().ffn_dim, 8);
  EXPECT_TRUE(model.tokenizers.joint);
  EXPECT_EQ(model.tokenizers.tgt->specials().bos, 23);
  EXPECT_TRUE(model.missing.empty());
  EXPECT_TRUE(model.left_out.empty());
}

TEST(ImportSeq2Seq, TensorsAreJoinedUnderTheNamesOfTheModel) {
  const auto folder = marian_folder();
  folder.write();
  const auto model = import_seq2seq(folder.dir->path());
  const auto* table = tensor_called(model.tensors, "embedding.weight");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->shape, (std::vector<int64_t>{24, 4}));
  EXPECT_EQ(table->bytes, folder.values_of("model.shared.weight"));
  const std::string cross = "model.decoder.layers.0.encoder_attn.";
  EXPECT_EQ(tensor_called(model.tensors, "decoder.layers.0.cross_attention.kv.bias")->bytes,
            folder.values_of(cross + "k_proj.bias") + folder.values_of(cross + "v_proj.bias"));
  EXPECT_EQ(tensor_called(model.tensors, "decoder.layers.0.cross_attention.q.weight")->bytes,
            folder.values_of(cross + "q_proj.weight"));
  EXPECT_EQ(tensor_called(model.tensors, "decoder.layers.0.cross_residual.norm.weight")->bytes,
            folder.values_of("model.decoder.layers.0.encoder_attn_layer_norm.weight"));
  EXPECT_EQ(tensor_called(model.tensors, "output.bias")->shape, (std::vector<int64_t>{24}));
}

TEST(ImportSeq2Seq, ABiasOfZerosIsNone) {
  const auto folder = marian_folder();
  write_with(folder, {{"final_logits_bias", floats(std::vector<float>(24, 0.0F))}});
  const auto model = import_seq2seq(folder.dir->path());
  EXPECT_FALSE(model.description.model.output_bias);
  EXPECT_EQ(tensor_called(model.tensors, "output.bias"), nullptr);
}

TEST(ImportSeq2Seq, StoredPositionsOfMarianAreComputedAndOthersAreLearned) {
  auto folder = marian_folder();
  const char *encoder = "model.encoder.embed_positions.weight",
             *decoder = "model.decoder.embed_positions.weight";
  folder.shapes[encoder] = folder.shapes[decoder] = {16, 4};
  std::vector<float> table;
  for (int row = 0; row < 16; ++row) {
    for (const double w : {1.0, 0.01}) table.push_back(static_cast<float>(std::sin(row * w)));
    for (const double w : {1.0, 0.01}) table.push_back(static_cast<float>(std::cos(row * w)));
  }
  write_with(folder, {{encoder, floats(table)}, {decoder, floats(table)}});
  EXPECT_EQ(import_seq2seq(folder.dir->path()).description.model.positions, "marian");

  auto other = table;
  other[5] += 1e-3F;
  write_with(folder, {{encoder, floats(table)}, {decoder, floats(other)}});
  const auto model = import_seq2seq(folder.dir->path());
  EXPECT_EQ(model.description.model.positions, "learned");
  const auto& data = model.experiment.task.as<experiment::TranslationOptions>().data;
  EXPECT_EQ(data.max_src_tokens, 16);
  EXPECT_EQ(data.max_tgt_tokens, 16);
  EXPECT_EQ(tensor_called(model.tensors, "encoder.positions.weight")->bytes, floats(table));
  EXPECT_EQ(tensor_called(model.tensors, "decoder.positions.weight")->bytes, floats(other));

  folder.shapes[decoder] = {15, 4};
  write_with(folder, {{encoder, floats(table)}});
  EXPECT_NE(refused_folder(folder).find("max_position_embeddings"), std::string::npos);
}

TEST(ImportSeq2Seq, TablesAreTiedAsTheConfigurationSays) {
  auto folder = marian_folder();
  folder.config["tie_word_embeddings"] = false;
  folder.shapes["lm_head.weight"] = {24, 4};
  folder.write();
  const auto own = import_seq2seq(folder.dir->path());
  EXPECT_EQ(own.description.model.tie_embeddings, "none");
  EXPECT_EQ(tensor_called(own.tensors, "encoder.embedding.weight")->bytes,
            tensor_called(own.tensors, "decoder.embedding.weight")->bytes);
  EXPECT_EQ(tensor_called(own.tensors, "output.weight")->bytes, folder.values_of("lm_head.weight"));

  auto apart = marian_folder();
  apart.config["share_encoder_decoder_embeddings"] = false;
  apart.shapes.erase("model.shared.weight");
  for (const std::string side : {"encoder", "decoder"}) {
    apart.shapes["model." + side + ".embed_tokens.weight"] = {24, 4};
  }
  apart.write();
  const auto model = import_seq2seq(apart.dir->path());
  EXPECT_EQ(model.description.model.tie_embeddings, "decoder");
  EXPECT_EQ(tensor_called(model.tensors, "decoder.embedding.weight")->bytes,
            apart.values_of("model.decoder.embed_tokens.weight"));

  // As transformers 5 writes a model without ties: it reads the tables of both sides.
  const auto untied = [] {
    auto folder = marian_folder();
    folder.config["tie_word_embeddings"] = false;
    for (const std::string name :
         {"lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens"}) {
      folder.shapes[name + ".weight"] = {24, 4};
    }
    return folder;
  };
  auto both = untied();
  both.write();
  const auto sides = import_seq2seq(both.dir->path());
  EXPECT_EQ(sides.description.model.tie_embeddings, "none");
  for (const std::string side : {"encoder", "decoder"}) {
    EXPECT_EQ(tensor_called(sides.tensors, side + ".embedding.weight")->bytes,
              both.values_of("model." + side + ".embed_tokens.weight"));
  }

  // Where nothing is shared, a shared table is not the model's.
  auto extra = untied();
  extra.config["share_encoder_decoder_embeddings"] = false;
  extra.write();
  EXPECT_NE(refused_folder(extra).find("not in the model"), std::string::npos);

  auto copy = marian_folder();
  copy.shapes["lm_head.weight"] = {24, 4};
  copy.write();
  EXPECT_NE(refused_folder(copy).find("`lm_head.weight` is not `model.shared.weight` "
                                      "(`embedding.weight`), which config.json ties to it"),
            std::string::npos)
      << refused_folder(copy);
}

TEST(ImportSeq2Seq, WhatTheTransformerCannotExpressIsRefusedByItsKey) {
  EXPECT_NE(refused_key("activation_function", "tanh").find("activation_function"),
            std::string::npos);
  EXPECT_NE(refused_key("normalize_before", true).find("normalize_before"), std::string::npos);
  EXPECT_NE(refused_key("normalize_embedding", true).find("normalize_embedding"),
            std::string::npos);
  EXPECT_NE(refused_key("tie_encoder_decoder", true).find("tie_encoder_decoder"),
            std::string::npos);
  EXPECT_NE(refused_key("decoder_vocab_size", 20).find("decoder_vocab_size"), std::string::npos);
  EXPECT_NE(refused_key("decoder_attention_heads", 3).find("decoder_attention_heads"),
            std::string::npos);
  EXPECT_NE(refused_key("architectures", {"MarianForCausalLM"}).find("MarianForCausalLM"),
            std::string::npos);
}

TEST(ImportSeq2Seq, SpecialIdsMustBeThoseOfTheVocabulary) {
  EXPECT_NE(refused_key("eos_token_id", 2).find("`eos_token_id` is 2, but `</s>`"),
            std::string::npos);
  EXPECT_NE(refused_key("pad_token_id", 22).find("pad_token_id"), std::string::npos);
  EXPECT_NE(refused_key("decoder_start_token_id", 1).find("decoder_start_token_id"),
            std::string::npos);
}

TEST(ImportSeq2Seq, ADecoderMayBeginWithAnotherTokenThanPadding) {
  auto folder = marian_folder();
  folder.config["decoder_start_token_id"] = 0;
  folder.write();
  const auto model = import_seq2seq(folder.dir->path());
  EXPECT_EQ(model.tokenizers.tgt->specials().bos, 0);
  EXPECT_EQ(model.assets.at("begin.piece"), "</s>");
}

TEST(ImportSeq2Seq, AVocabularyThatDoesNotFitIsRefused) {
  auto folder = marian_folder();
  folder.shapes["model.shared.weight"] = {23, 4};
  folder.write();
  EXPECT_NE(refused_folder(folder).find("does not fit"), std::string::npos);
}

TEST(ImportSeq2Seq, MissingAndExtraTensorsAreListed) {
  auto folder = marian_folder();
  folder.shapes.erase("model.decoder.layers.0.fc2.bias");
  folder.shapes["model.decoder.layers.1.fc2.bias"] = {4};
  folder.write();
  const std::string message = refused_folder(folder);
  EXPECT_NE(message.find("missing: model.decoder.layers.0.fc2.bias"), std::string::npos);
  EXPECT_NE(message.find("not in the model: model.decoder.layers.1.fc2.bias"), std::string::npos);
  const auto model =
      import_seq2seq(folder.dir->path(), {.ignore_extra = true, .allow_missing = true});
  EXPECT_EQ(model.missing, (std::vector<std::string>{"decoder.layers.0.ffn.down.bias"}));
  EXPECT_EQ(model.left_out, (std::vector<std::string>{"model.decoder.layers.1.fc2.bias"}));
}

TEST(ImportSeq2Seq, NeedsTheFilesOfItsTokenizer) {
  const auto folder = marian_folder();
  folder.write();
  std::filesystem::remove(*folder.dir / "target.spm");
  EXPECT_NE(failure(ExitCode::kUsage, [&] { import_seq2seq(folder.dir->path()); })
                .message()
                .find("target.spm"),
            std::string::npos);
}

TEST(ImportSeq2Seq, ADamagedFileOfItsTokenizerIsNamedWithItsPath) {
  const auto refused_file = [](const char* file, const std::string& bytes, bool separate) {
    auto folder = marian_folder();
    folder.config["share_encoder_decoder_embeddings"] = !separate;
    folder.write();
    if (separate) folder.dir->write("target_vocab.json", read_file(*folder.dir / "vocab.json"));
    folder.dir->write(file, bytes);
    const std::string message = refused_folder(folder);
    EXPECT_TRUE(message.starts_with((*folder.dir / file).string() + ":")) << message;
    return message;
  };
  for (const bool separate : {false, true}) {
    EXPECT_NE(refused_file("vocab.json", "{", separate).find("vocab.json:1:"), std::string::npos);
    refused_file("vocab.json", "[]", separate);
    EXPECT_NE(refused_file("vocab.json", R"({"</s>": 0, "<unk>": 1})", separate)
                  .find("the vocabulary has no `<pad>`"),
              std::string::npos);
    refused_file("source.spm", "damaged", separate);
    refused_file("target.spm", "damaged", separate);
  }
  refused_file("target_vocab.json", "{", true);
}

TEST(ImportSeq2Seq, TokenizersOfOtherSettingsAreRefused) {
  const auto folder = marian_folder();
  folder.write();
  folder.dir->write("tokenizer_config.json", R"({"eos_token": "<end>"})");
  EXPECT_NE(refused_folder(folder).find("<end>"), std::string::npos);
  folder.dir->write("tokenizer_config.json", R"({"separate_vocabs": true})");
  EXPECT_NE(refused_folder(folder).find("separate_vocabs"), std::string::npos);
}

TEST(ImportSeq2Seq, HasNoEncoderAlone) {
  const auto folder = marian_folder();
  folder.write();
  failure(ExitCode::kUsage, [&] { import_seq2seq(folder.dir->path(), {.encoder_only = true}); });
}

TEST(ExportSeq2Seq, AFolderThatWasImportedComesBack) {
  for (const std::string& ties : {std::string("all"), std::string("none")}) {
    auto folder = marian_folder();
    if (ties == "none") {
      folder.config["tie_word_embeddings"] = false;
      folder.shapes["lm_head.weight"] = {24, 4};
    }
    folder.write();
    const auto model = import_seq2seq(folder.dir->path());
    const TempDir place;
    require_seq2seq_class(model.description.model, model.tokenizers, "auto");
    EXPECT_EQ(export_seq2seq({.model = model.description.model,
                              .tokenizers = model.tokenizers,
                              .beam_size = 6,
                              .tensors = model.tensors},
                             place / "out"),
              "");
    const auto again = import_seq2seq(place / "out");
    EXPECT_EQ(again.assets, model.assets);
    EXPECT_EQ(again.description.model.activation, "silu");
    EXPECT_EQ(again.description.beam_size, 6);
    EXPECT_EQ(again.description.specials, model.description.specials);
    ASSERT_EQ(again.tensors.size(), model.tensors.size());
    for (const auto& tensor : model.tensors) {
      const auto* found = tensor_called(again.tensors, tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_EQ(found->bytes, tensor.bytes) << tensor.name;
    }
  }
}

TEST(ExportSeq2Seq, NormsInFrontAreThoseOfPegasus) {
  const auto folder = marian_folder();
  folder.write();
  const auto post = import_seq2seq(folder.dir->path());
  auto options = post.description.model;
  options.norm = "pre";
  require_seq2seq_class(options, post.tokenizers, "pegasus");
  auto tensors = post.tensors;
  const std::string norm = floats({1, 2, 3, 4}), positions = floats(std::vector<float>(64, 0.5F));
  for (const char* name : {"encoder.final_norm.weight", "encoder.final_norm.bias",
                           "decoder.final_norm.weight", "decoder.final_norm.bias"}) {
    tensors.push_back({name, store::DType::kF32, {4}, norm});
  }
  for (const char* name : {"encoder.positions.weight", "decoder.positions.weight"}) {
    tensors.push_back({name, store::DType::kF32, {16, 4}, positions});
  }
  const TempDir place;
  export_seq2seq({.model = options, .tokenizers = post.tokenizers, .tensors = tensors},
                 place / "out");
  const auto again = import_seq2seq(place / "out");
  EXPECT_EQ(again.model_class, "PegasusForConditionalGeneration");
  EXPECT_EQ(again.description.model.norm, "pre");
  EXPECT_EQ(again.description.model.positions, "learned");
  EXPECT_EQ(tensor_called(again.tensors, "decoder.final_norm.bias")->bytes, norm);
  EXPECT_EQ(tensor_called(again.tensors, "encoder.positions.weight")->bytes, positions);
}

TEST(ExportSeq2Seq, SentencePieceModelsOfARunGetAVocabulary) {
  const std::string model =
      text::train_sentencepiece(std::vector<std::string>(40, "red house"),
                                {.algorithm = "bpe", .vocab_size = 16, .num_threads = 1});
  const auto pair = text::load_tokenizers({}, {{"tokenizer.model", model}});
  const auto files = marian_tokenizer_files(pair, 50);
  EXPECT_EQ(files.at("source.spm"), model);
  EXPECT_EQ(files.at("target.spm"), model);
  const auto vocab = nlohmann::json::parse(files.at("vocab.json"));
  EXPECT_EQ(vocab.size(), 16u);
  for (int64_t id = 0; id < pair.src->size(); ++id) {
    EXPECT_EQ(vocab.at(pair.src->piece(id)).get<int64_t>(), id);
  }
  EXPECT_FALSE(files.contains("target_vocab.json"));
}

TEST(ExportSeq2Seq, OtherTokenizersHaveNoFiles) {
  const auto pair = text::load_tokenizers({.type = "vocab"}, {{"src.vocab", "a\nb\n"}});
  EXPECT_TRUE(marian_tokenizer_files(pair, 50).empty());
}

TEST(ExportSeq2Seq, WhatTheClassCannotExpressIsRefusedByItsKey) {
  const auto pair = text::load_tokenizers({.type = "vocab"}, {{"src.vocab", "a\nb\n"}});
  const auto reason = [&](auto change, const std::string& wanted = "auto") {
    models::Seq2SeqOptions model;
    change(model);
    return failure(ExitCode::kUsage, [&] { require_seq2seq_class(model, pair, wanted); }).message();
  };
  using O = models::Seq2SeqOptions;
  require_seq2seq_class(O(), pair, "auto");
  EXPECT_NE(reason([](O& o) { o.norm = "res_post"; }).find("model.norm = \"res_post\""),
            std::string::npos);
  const auto untied = [](O& o) {
    o.norm = "pre";
    o.tie_embeddings = "decoder";
  };
  EXPECT_NE(reason(untied).find("model.tie_embeddings"), std::string::npos);
  EXPECT_NE(reason([](O& o) { o.norm_layer = "rms_norm"; }).find("rms_norm"), std::string::npos);
  EXPECT_NE(reason([](O& o) { o.positions = "rotary"; }).find("rotary"), std::string::npos);
  EXPECT_NE(reason([](O& o) { o.activation = "swiglu"; }).find("swiglu"), std::string::npos);
  EXPECT_NE(reason([](O& o) { o.encoder = models::LstmEncoderOptions(); }).find("model.encoder"),
            std::string::npos);
  EXPECT_NE(reason([](O& o) { o.decoder = models::LstmDecoderOptions(); }).find("model.decoder"),
            std::string::npos);
  EXPECT_NE(reason([](O& o) { o.heads.resize(2); }).find("model.heads"), std::string::npos);
  EXPECT_NE(reason([](O& o) {
              o.decoder = models::StackOptions{.num_kv_heads = 2};
            }).find("num_kv_heads"),
            std::string::npos);
  EXPECT_NE(reason([](O& o) { o.adapter.dim = 8; }).find("model.adapter.dim = 8"),
            std::string::npos);
  EXPECT_NE(reason([](O&) {}, "bert").find("bert"), std::string::npos);
}

TEST(ExportSeq2Seq, SidesOfDifferentSizesAreRefused) {
  const auto pair =
      text::load_tokenizers({.type = "vocab"}, {{"src.vocab", "a\nb\n"}, {"tgt.vocab", "a\n"}});
  EXPECT_NE(failure(ExitCode::kUsage,
                    [&] { require_seq2seq_class(models::Seq2SeqOptions(), pair, "auto"); })
                .message()
                .find("its tables have the same rows"),
            std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
